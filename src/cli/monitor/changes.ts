import type { ConfigMap, Event, Node, Secret } from 'kubernetes-types/core/v1.d.ts';
import { NOT_AFTER } from '../../certrotation/annotations.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import type { Condition } from '../../controller/condition.ts';
import { isRevisionCopy } from '../../inventory/certificates.ts';
import { FORCED } from '../../inventory/forced.ts';
import type { ObjectChange } from '../../inventory/live-source.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { parseRfc3339 } from '../../kube/time.ts';
import type { MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import {
  CURRENT_CONFIG,
  DAEMON_STATE,
  DESIRED_CONFIG,
  LAST_SYNCED_CONTROLLER_CONFIG,
  SERVER_CA_DIGEST,
} from '../../machine-config-api/names.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { readNodeStatus } from '../../staticpod/node-status.ts';
import type { StaticPodOperatorResource } from '../../staticpod/operator.ts';
import { isRevisionStatus, revisionOfStatus } from '../../staticpod/revision/number.ts';
import { leftBehindNews, signerNews, waiverNews } from './hand-overs.ts';

/** Something that happened, for people and for machines. */
export interface Happening {
  /** `CertificateChanged`, `BundleChanged`, ... */
  readonly what: string;
  readonly object: string;
  readonly namespace?: string | undefined;
  readonly text: string;
}

/** What a change of an object means (spec 70, 2.6 and 9.7). */
export function happeningsOf(change: ObjectChange): Happening[] {
  switch (change.resource.kind) {
    case 'Secret':
      return secretHappenings(change.before as Secret | undefined, change.after as Secret | undefined);
    case 'ConfigMap':
      return configMapHappenings(change.before as ConfigMap | undefined, change.after as ConfigMap | undefined);
    case 'Node':
      return nodeHappenings(change.before as Node | undefined, change.after as Node | undefined);
    case 'Event':
      return eventHappenings(change.before as Event | undefined, change.after as Event | undefined);
    case 'ClusterOperator':
      return operatorHappenings(change.before, change.after);
    case 'MachineConfigPool':
      return poolHappenings(change.before, change.after);
    default:
      return operandHappenings(change);
  }
}

function secretHappenings(before: Secret | undefined, after: Secret | undefined): Happening[] {
  const secret = after ?? before;
  if (secret === undefined || isRevisionCopy(secret)) return [];
  const about = aboutOf('secret', secret);
  const [old, current] = [before, after].map(object => object && certificatesIn(dataText(object, TLS_CERT))[0]);
  const happened: Happening[] = [];
  const isNew = current !== undefined && !old?.der.equals(current.der);
  const regeneration =
    before && after && regenerationOf(annotationsOf(before)[NOT_AFTER], annotationsOf(after)[NOT_AFTER], isNew);
  if (regeneration?.what === 'RegenerationStarted') happened.push({ ...about, ...regeneration });
  if (isNew) {
    const verb = old === undefined ? 'appeared' : 'changed';
    happened.push({ ...about, what: 'CertificateChanged', text: `certificate ${verb}: ${summaryOf(current)}` });
  }
  if (regeneration?.what === 'RegenerationFinished') happened.push({ ...about, ...regeneration });
  if (old !== undefined && after === undefined)
    happened.push({ ...about, what: 'CertificateDeleted', text: 'deleted' });
  happened.push(...signerNews(before, after).map(news => ({ ...about, ...news })));
  const credential = credentialOf(secret);
  if (credential !== undefined && (before === undefined) !== (after === undefined)) {
    const text = `${credential} ${after === undefined ? 'deleted' : 'created'}`;
    happened.push({ ...about, what: 'TokenChanged', text });
  }
  return happened;
}

/**
 * What the noted end of validity says about a regeneration: begun when a date, or anything else, gives way to the wish for one; over when
 * it is a date again. Where there was none at all, a date is the end of one only if the certificate is new too.
 */
function regenerationOf(
  before: string | undefined,
  after: string | undefined,
  isNew: boolean,
): Pick<Happening, 'what' | 'text'> | undefined {
  const isDate = (text: string | undefined) => text !== undefined && parseRfc3339(text) !== undefined;
  if (!isDate(after) && (isDate(before) || (after === FORCED && before !== FORCED))) {
    return {
      what: 'RegenerationStarted',
      text: `regeneration asked for: the date became ${JSON.stringify(after ?? '')}`,
    };
  }
  if (!isDate(before) && isDate(after) && (before !== undefined || isNew)) {
    return { what: 'RegenerationFinished', text: `regeneration finished: good until ${after}` };
  }
  return undefined;
}

const PULL_SECRET_TYPES = ['kubernetes.io/dockercfg', 'kubernetes.io/dockerconfigjson'];

/** Tokens and pull secrets, found the way upstream finds them: by what is in them and on them, whatever their type. */
function credentialOf(secret: Secret): 'image pull secret' | 'service account token' | undefined {
  const { type = '', data = {} } = secret;
  const annotations = annotationsOf(secret);
  if (PULL_SECRET_TYPES.includes(type) || '.dockercfg' in data || 'openshift.io/token-secret.name' in annotations) {
    return 'image pull secret';
  }
  const isToken = type === 'kubernetes.io/service-account-token' || 'kubernetes.io/service-account.name' in annotations;
  return isToken ? 'service account token' : undefined;
}

function configMapHappenings(before: ConfigMap | undefined, after: ConfigMap | undefined): Happening[] {
  const configMap = after ?? before;
  if (configMap === undefined) return [];
  const about = aboutOf('configmap', configMap);
  if (isRevisionStatus(configMap)) {
    const revision = revisionOfStatus(configMap);
    if (before === undefined)
      return [
        {
          ...about,
          what: 'RevisionCreated',
          text: `revision ${revision} of ${operandOf(configMap)}: ${configMap.data?.reason ?? ''}`,
        },
      ];
    if (after === undefined)
      return [{ ...about, what: 'RevisionPruned', text: `revision ${revision} of ${operandOf(configMap)} pruned` }];
    return [];
  }
  if (isRevisionCopy(configMap)) return [];
  const [old, current] = [casOf(before), casOf(after)];
  if (old.length === 0 && current.length === 0) return [];
  const added = current.filter(({ der }) => !old.some(other => other.der.equals(der)));
  const removed = old.filter(({ der }) => !current.some(other => other.der.equals(der)));
  if (added.length === 0 && removed.length === 0) return [];
  const parts = [
    ...(added.length > 0 ? [`+ ${added.map(nameOf).join(', ')}`] : []),
    ...(removed.length > 0 ? [`- ${removed.map(nameOf).join(', ')}`] : []),
  ];
  return [{ ...about, what: 'BundleChanged', text: `CA bundle has ${current.length} CAs now: ${parts.join('; ')}` }];
}

function nodeHappenings(before: Node | undefined, after: Node | undefined): Happening[] {
  const node = after ?? before;
  if (node === undefined) return [];
  const about = aboutOf('node', node);
  if (before === undefined || after === undefined) {
    return [
      {
        ...about,
        what: after === undefined ? 'NodeDeleted' : 'NodeAdded',
        text: after === undefined ? 'deleted' : 'added',
      },
    ];
  }
  const happened = conditionHappenings('node', before, after, ['Ready']);
  for (const [key, what] of [
    [CURRENT_CONFIG, 'current config'],
    [DESIRED_CONFIG, 'desired config'],
    [DAEMON_STATE, 'agent'],
  ] as const) {
    const current = newAnnotation(before, after, key);
    if (current !== undefined) happened.push({ ...about, what: 'NodeConfigChanged', text: `${what} is ${current}` });
  }
  for (const [key, receipt] of RECEIPTS) {
    const current = newAnnotation(before, after, key);
    if (current !== undefined) happened.push({ ...about, what: 'NodeReceipt', text: receipt(current) });
  }
  happened.push(...waiverNews(before, after).map(news => ({ ...about, ...news })));
  if ((before.spec?.unschedulable ?? false) !== (after.spec?.unschedulable ?? false)) {
    happened.push({ ...about, what: 'NodeCordoned', text: after.spec?.unschedulable ? 'cordoned' : 'uncordoned' });
  }
  return happened;
}

/** What agents write on their node once certificates are on its disk; revisions of static pods have receipts of their own. */
const RECEIPTS: readonly (readonly [key: string, text: (value: string) => string])[] = [
  [LAST_SYNCED_CONTROLLER_CONFIG, value => `has the certificates of controllerconfig version ${value} on its disk`],
  [SERVER_CA_DIGEST, value => `its kubelet verifies the API with the bundle of sha256 ${value.slice(0, 16)}`],
];

function newAnnotation(before: Node, after: Node, key: string): string | undefined {
  const current = annotationsOf(after)[key];
  return current === annotationsOf(before)[key] ? undefined : current;
}

/** Events are told where nothing else says the same. */
function eventHappenings(before: Event | undefined, after: Event | undefined): Happening[] {
  const { kind = '', name = '' } = after?.involvedObject ?? {};
  return before === undefined
    ? leftBehindNews(after).map(news => ({ object: `${kind.toLowerCase()}/${name}`, ...news }))
    : [];
}

function poolHappenings(before: MachineConfigPool | undefined, after: MachineConfigPool | undefined): Happening[] {
  const happened = conditionHappenings('machineconfigpool', before, after, ['Updated', 'Updating', 'Degraded']);
  if (before === undefined || after === undefined) return happened;
  const [old, current] = [before.status?.updatedMachineCount, after.status?.updatedMachineCount];
  if (old !== current) {
    const text = `${current ?? 0} of ${after.status?.machineCount ?? 0} machines updated`;
    happened.push({ ...aboutOf('machineconfigpool', after), what: 'PoolProgress', text });
  }
  return happened;
}

/** The revisions of a static pod, node by node. */
function operandHappenings({ before, after, resource }: ObjectChange): Happening[] {
  const statuses = (object: StaticPodOperatorResource | undefined) =>
    (object?.status?.nodeStatuses ?? []).map(readNodeStatus);
  const about = { object: `${resource.kind.toLowerCase()}/cluster` };
  return statuses(after).flatMap(({ nodeName, currentRevision, targetRevision, lastFailedRevision }) => {
    const old = statuses(before).find(status => status.nodeName === nodeName);
    const found: Happening[] = [];
    if (targetRevision !== (old?.targetRevision ?? 0) && targetRevision > 0)
      found.push({
        ...about,
        what: 'NodeTargetRevisionChanged',
        text: `${nodeName} goes from revision ${currentRevision} to ${targetRevision}`,
      });
    if (currentRevision !== (old?.currentRevision ?? 0))
      found.push({
        ...about,
        what: 'NodeCurrentRevisionChanged',
        text: `${nodeName} runs revision ${currentRevision}`,
      });
    if (lastFailedRevision !== (old?.lastFailedRevision ?? 0) && lastFailedRevision > 0)
      found.push({
        ...about,
        what: 'NodeRevisionFailed',
        text: `revision ${lastFailedRevision} failed on ${nodeName}`,
      });
    return found;
  });
}

function conditionHappenings(
  kind: string,
  before: KubeObject | undefined,
  after: KubeObject | undefined,
  types: readonly string[],
): Happening[] {
  if (after === undefined) return [];
  return types
    .map(type => [conditionOf(before, type), conditionOf(after, type)] as const)
    .filter(([old, current]) => old.status !== current.status || old.reason !== current.reason)
    .map(([, current]) => ({ ...aboutOf(kind, after), what: 'ConditionChanged', text: conditionText(current) }));
}

/** In a healthy cluster. */
const STABLE = { Available: 'True', Progressing: 'False', Degraded: 'False' } as const;

/** Every condition that changed, its message counting too, under a heading that says where the operator is going (spec 70, 2.6). */
function operatorHappenings(before: KubeObject | undefined, after: KubeObject | undefined): Happening[] {
  if (before === undefined || after === undefined) return [];
  const isStable = (object: KubeObject) =>
    Object.entries(STABLE).every(([type, wanted]) => conditionOf(object, type).status === wanted);
  const [was, is] = [isStable(before), isStable(after)];
  const heading = was ? (is ? 'Stable' : 'Destabilized') : is ? 'Stabilized' : 'Unstable';
  return Object.keys(STABLE)
    .map(type => [conditionOf(before, type), conditionOf(after, type)] as const)
    .filter(
      ([old, current]) =>
        old.status !== current.status || old.reason !== current.reason || messageOf(old) !== messageOf(current),
    )
    .map(([, current]) => ({
      ...aboutOf('clusteroperator', after),
      what: `Operator${heading}`,
      text: conditionText(current),
    }));
}

function conditionOf(object: KubeObject | undefined, type: string): Condition {
  const { conditions = [] } = (object as { status?: { conditions?: readonly Condition[] } } | undefined)?.status ?? {};
  return conditions.find(condition => condition.type === type) ?? { type, status: 'Unknown', reason: 'Missing' };
}

function conditionText(condition: Condition): string {
  const why = [condition.reason, messageOf(condition).split('\n', 1)[0]].filter(Boolean).join(': ');
  return `${condition.type}=${condition.status}${why ? ` (${why})` : ''}`;
}

/** Conflicting writes are tried again at once, and say nothing about an operator. */
function messageOf({ message = '' }: Condition): string {
  return message
    .split('\n')
    .filter(line => !line.includes('the object has been modified'))
    .join('\n');
}

function casOf(configMap: ConfigMap | undefined): readonly Certificate[] {
  return Object.values(configMap?.data ?? {}).flatMap(text =>
    text.includes('BEGIN CERTIFICATE') ? certificatesIn(text) : [],
  );
}

function aboutOf(kind: string, { metadata }: KubeObject): Pick<Happening, 'object' | 'namespace'> {
  const namespace = metadata?.namespace;
  return { object: `${kind}/${metadata?.name ?? ''}`, ...(namespace === undefined ? {} : { namespace }) };
}

function operandOf({ metadata }: ConfigMap): string {
  return (metadata?.namespace ?? '').replace(/^openshift-/, '');
}

function nameOf({ subject }: Certificate): string {
  return subject.commonName;
}

function summaryOf({ subject, issuer, notAfter }: Certificate): string {
  return `"${subject.commonName}" by "${issuer.commonName}", good until ${notAfter.toISOString().slice(0, 19)}Z`;
}
