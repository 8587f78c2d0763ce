import { nextKey, previousKey } from '../../hand-over/family.ts';
import { KUBEADM_SIGNERS, type SignerName } from '../chains.ts';
import type { ClusterStatus, FamilyStatus } from '../cluster-record.ts';
import { PKI_NAMESPACE } from '../names.ts';
import type { NodeReport } from '../report.ts';
import { SERVICE_ACCOUNT, SERVICE_ACCOUNT_KEYS } from '../service-account-keys.ts';
import type { ReportedNode } from './compare.ts';

/** What the release of a cluster is decided by (spec 80, KA-4). */
export interface ReleaseQuestion {
  readonly nodes: readonly ReportedNode[];
  readonly status: ClusterStatus | undefined;
  /** The Secrets of our own namespace, and whether there is a private key in each. */
  readonly secrets: readonly { readonly name: string; readonly hasKey: boolean }[];
  /** By node: the round that is wanted of it. A node that is not among these was never changed. */
  readonly wanted: ReadonlyMap<string, string>;
}

export interface ReleaseDecision {
  /** Why it cannot be released now, with what to wait for or to do; one sentence each. */
  readonly refused: readonly string[];
  /** What agents are doing at this moment so that it can be: it ends by itself. */
  readonly awaited: readonly string[];
}

/** Phases in which nothing is handed over; in the second one, roles come together again (KA-7). */
const AT_REST = ['Steady', 'Joining'];

/**
 * Whether the files on nodes are those of a kubeadm cluster, so that everything else can go: one CA a file, roles together, no round under
 * way, and every key that is in a Secret on a disk too.
 */
export function decideRelease(question: ReleaseQuestion): ReleaseDecision {
  const handedOver = KUBEADM_SIGNERS.flatMap(({ name }) => handOver(name, question));
  const keys = question.status?.serviceAccount;
  const isJoining = Object.values(question.status?.families ?? {}).some(family => family?.phase === 'Joining');
  const rounds = roundsIn(question);
  const refused = [
    ...handedOver,
    ...(keys === undefined || AT_REST.includes(keys.phase)
      ? []
      : [
          `The keys of service accounts are being replaced (${phaseText(keys)}): wait until it is over. rotunda rotate ${SERVICE_ACCOUNT} --retire and --take-back end it.`,
        ]),
    ...(handedOver.length > 0 || isJoining ? [] : rounds),
    ...silent(question),
    ...lonelyKeys(question),
  ];
  const odd = question.nodes.flatMap(({ name, report }) => (report === undefined ? [] : oddities(name, report)));
  return { refused, awaited: refused.length > 0 ? [] : [...(isJoining ? rounds : []), ...odd] };
}

function handOver(name: SignerName, { status, secrets }: ReleaseQuestion): string[] {
  const family = status?.families[name];
  const place = { namespace: PKI_NAMESPACE, name };
  const beside = [nextKey(place).name, previousKey(place).name].filter(key =>
    secrets.some(secret => secret.name === key),
  );
  const isUnderWay = family !== undefined && !AT_REST.includes(family.phase);
  if (!isUnderWay && beside.length === 0) return [];
  const what = isUnderWay ? phaseText(family) : `there is Secret ${beside.join(' and ')}`;
  return [
    `${name} is being handed over (${what}): wait until it is over. rotunda rotate ${name} --retire and --take-back end it.`,
  ];
}

function phaseText({ phase, because }: FamilyStatus): string {
  return because === '' ? phase : `${phase}: ${because}`;
}

function roundsIn({ status, nodes, wanted }: ReleaseQuestion): string[] {
  const round = status?.round;
  if (round !== undefined)
    return [`${round.node} is being changed since ${round.since} (${round.because}): wait until it is done.`];
  return nodes
    .filter(({ name, report }) => report !== undefined && wanted.has(name) && wanted.get(name) !== report.done)
    .map(({ name, report }) => {
      const problem = report?.problem === undefined ? '' : ` (${report.problem})`;
      return `${name} is being changed${problem}: wait until it is done.`;
    });
}

/** A node that was changed once, and that nobody can look at now. */
function silent({ nodes, wanted }: ReleaseQuestion): string[] {
  return nodes
    .filter(({ name, report }) => report === undefined && wanted.has(name))
    .map(
      ({ name }) => `${name} does not report, so that its files cannot be looked at: repair it, or delete the Node.`,
    );
}

/** With the Secret goes the only copy there is. */
function lonelyKeys({ nodes, secrets }: ReleaseQuestion): string[] {
  const isOnDisk = (name: SignerName) => nodes.some(({ report }) => report?.signers[name]?.key === 'fits');
  const lonely = KUBEADM_SIGNERS.filter(
    ({ name }) => secrets.some(secret => secret.name === name && secret.hasKey) && !isOnDisk(name),
  ).map(
    ({ name, base }) =>
      `The key of ${name} is on no node, only in Secret ${PKI_NAMESPACE}/${name}: put it into ${base}.key of the control-plane nodes.`,
  );
  const isAccountKeyOnDisk = nodes.some(({ report }) => report?.serviceAccount?.signs !== undefined);
  if (isAccountKeyOnDisk || !secrets.some(({ name }) => name === SERVICE_ACCOUNT_KEYS.name)) return lonely;
  const { name } = SERVICE_ACCOUNT_KEYS;
  return [
    ...lonely,
    `The key of service accounts is on no node, only in Secret ${PKI_NAMESPACE}/${name}: put it into sa.key of the control-plane nodes.`,
  ];
}

/** What is on a node that kubeadm would not have put there. */
function oddities(name: string, { signers, signing, serviceAccount }: NodeReport): string[] {
  const several = KUBEADM_SIGNERS.filter(signer => (signers[signer.name]?.cas.length ?? 0) > 1);
  return [
    ...several.map(({ base }) => `${base}.crt on ${name} still holds more than one CA`),
    ...(signing?.isSeparate ? [`kube-controller-manager on ${name} still signs with files of its own`] : []),
    ...((serviceAccount?.accepts.length ?? 0) > 1 ? [`sa.pub on ${name} still holds more than one key`] : []),
  ];
}
