import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { roleOf } from '../../certrotation/annotations.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { etcdTrust } from '../../etcd/trust.ts';
import { isConflict } from '../../kube/error.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { verifyChain } from '../../pki/chain.ts';
import { encodeCertificates, readCertificates } from '../../pki/pem.ts';
import { effectOfChange } from '../../trust/effect.ts';
import { joinGraphs } from '../../trust/graph.ts';
import type { ObjectRef } from '../../trust/object.ts';
import { withCluster } from '../cluster.ts';
import { confirm } from '../confirm.ts';
import { isRevisionCopy } from '../inventory/certificates.ts';
import { certificatesIn } from '../inventory/relations.ts';
import { momentFrom } from '../moment.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { RemoveTrustFlags } from './command.ts';
import { type Outcome, printObjects, printOutcomes, verbFormat } from './outcome.ts';
import { readLocal, readSelected, selectedFrom } from './selection.ts';

const FIELD_MANAGER = 'remove-old-trust';
const CONFLICT_RETRIES = 5;

/** A certificate in use somewhere, and where. */
export interface UsedCertificate {
  readonly where: string;
  readonly certificate: Certificate;
}

/** What becomes of one bundle. */
export type PruneDecision =
  | { readonly do: 'nothing'; readonly because: string }
  | { readonly do: 'refuse'; readonly because: string; readonly needed: readonly string[] }
  | { readonly do: 'prune'; readonly text: string; readonly removed: readonly Certificate[] };

/**
 * Takes CAs out of a bundle that began at or before a moment (spec 70, 2.3). Never leaves it empty, and refuses while a certificate that is
 * in use was verified by it before and would not be after (9.6).
 */
export function decidePrune(
  text: string,
  createdBefore: Date,
  inUse: readonly UsedCertificate[],
  now: Date,
): PruneDecision {
  let certificates: Certificate[];
  try {
    ({ certificates } = readCertificates(text));
  } catch (error) {
    return { do: 'refuse', because: `the bundle cannot be read: ${(error as Error).message}`, needed: [] };
  }
  const kept = certificates.filter(({ notBefore }) => notBefore > createdBefore);
  const removed = certificates.filter(({ notBefore }) => notBefore <= createdBefore);
  if (removed.length === 0) return { do: 'nothing', because: 'it holds nothing as old as that' };
  if (kept.length === 0) {
    return {
      do: 'refuse',
      because: `all ${certificates.length} CAs are as old as that, and an empty bundle trusts nobody`,
      needed: [],
    };
  }
  const accepts = (roots: readonly Certificate[], leaf: Certificate) => verifyChain({ leaf, roots, now, usage: 'any' });
  const needed = inUse.flatMap(({ where, certificate }) => {
    if (certificate.isCA) return [];
    const before = accepts(certificates, certificate);
    if (!before.ok || accepts(kept, certificate).ok) return [];
    return [`${where} still needs "${before.chain.at(-1)?.subject.commonName}"`];
  });
  if (needed.length > 0) return { do: 'refuse', because: 'certificates in use would no longer be accepted', needed };
  return { do: 'prune', text: encodeCertificates(kept), removed };
}

export async function runRemoveOldTrust(words: readonly string[], flags: RemoveTrustFlags): Promise<void> {
  const format = verbFormat(flags.output);
  const createdBefore = momentFrom('--created-before', flags.createdBefore);
  const excluded = new Set((flags.excludeBundles ?? []).map(excludedFrom));
  const isChosen = ({ metadata }: ConfigMap) => !excluded.has(`${metadata?.namespace}/${metadata?.name}`);
  // What is wrong with the call is said before any cluster is asked.
  const selected = selectedFrom(CONFIG_MAPS, words, flags, '');
  if (flags.local) {
    const chosen = readLocal(CONFIG_MAPS, flags, selected).filter(isChosen);
    const items = chosen.flatMap(configMap => {
      const decision = decidePrune(configMap.data?.[BUNDLE_KEY] ?? '', createdBefore, [], new Date());
      return decision.do === 'prune' ? [withBundle(configMap, decision.text)] : [];
    });
    printObjects(items, format);
    return;
  }
  await withCluster(flags, async ({ kube, namespace }) => {
    const { objects, missing } = await readSelected(
      kube,
      CONFIG_MAPS,
      selectedFrom(CONFIG_MAPS, words, flags, namespace),
    );
    const bundles = objects.filter(isBundle).filter(isChosen);
    const passed: Outcome[] = objects
      .filter(object => !bundles.includes(object))
      .map(object => ({
        object: refOf(object),
        outcome: 'skipped',
        text: isBundle(object) ? 'excluded' : 'it is no managed CA bundle',
      }));
    const inUse = bundles.length === 0 ? [] : await certificatesInUse(kube);
    const now = new Date();
    const decided = bundles.map(bundle => ({
      bundle,
      decision: decidePrune(bundle.data?.[BUNDLE_KEY] ?? '', createdBefore, inUse, now),
    }));
    const pruned = decided.filter(({ decision }) => decision.do === 'prune');
    if (pruned.length > 0 && !flags.dryRun) {
      const names = pruned.map(({ bundle }) => bundle.metadata?.name).join(', ');
      await confirm(`CAs will be removed from ${pruned.length} bundles: ${names}.`, flags.yes);
    }
    const outcomes = [...passed];
    for (const { bundle, decision } of decided) {
      outcomes.push(
        await carryOut(kube, bundle, decision, { createdBefore, inUse, now, dryRun: flags.dryRun ?? false }),
      );
    }
    printOutcomes(outcomes, format, { dryRun: flags.dryRun ?? false, verbose: flags.verbose ?? false });
    for (const text of missing) process.stderr.write(`error: ${visible(text)}\n`);
    if (missing.length > 0) process.exitCode = 1;
    process.stderr.write(
      `checked against ${inUse.length} certificates in Secrets, kubeconfigs and signing requests of all namespaces\n`,
    );
  });
}

function excludedFrom(text: string): string {
  if (!/^[^/]+\/[^/]+$/.test(text))
    throw new UsageError(`--exclude-bundles must be <namespace>/<name>, found "${text}"`);
  return text;
}

/** Copies of revisions are what running pods have: they never change. */
function isBundle(configMap: ConfigMap): boolean {
  const { metadata, data } = configMap;
  return roleOf(metadata?.labels) === 'ca-bundle' && Boolean(data?.[BUNDLE_KEY]) && !isRevisionCopy(configMap);
}

async function carryOut(
  kube: Kube,
  bundle: ConfigMap,
  decision: PruneDecision,
  question: { createdBefore: Date; inUse: readonly UsedCertificate[]; now: Date; dryRun: boolean },
): Promise<Outcome> {
  const object = refOf(bundle);
  if (decision.do === 'nothing') return { object, outcome: 'unchanged', text: decision.because };
  if (decision.do === 'refuse') return { object, outcome: 'failed', text: decision.because, details: decision.needed };
  let [current, answer] = [bundle, decision as PruneDecision];
  for (let attempt = 1; answer.do === 'prune'; attempt++) {
    try {
      await kube.update(CONFIG_MAPS, withBundle(current, answer.text), {
        fieldManager: FIELD_MANAGER,
        dryRun: question.dryRun,
      });
      const removed = answer.removed.map(({ subject }) => `removed "${subject.commonName}"`);
      return { object, outcome: 'done', text: 'trust purged', details: [...removed, ...consequences(object)] };
    } catch (error) {
      if (!isConflict(error) || attempt > CONFLICT_RETRIES)
        return { object, outcome: 'failed', text: (error as Error).message };
      // Somebody wrote in between: what they wrote is judged anew.
      current = await kube.get(CONFIG_MAPS, { namespace: object.namespace, name: object.name });
      answer = decidePrune(current.data?.[BUNDLE_KEY] ?? '', question.createdBefore, question.inUse, question.now);
    }
  }
  return carryOut(kube, current, answer, question);
}

const GRAPH = joinGraphs(kubeApiserverTrust(), etcdTrust());

/** Who verifies with the bundle, or with what is made from it. */
function consequences(object: ObjectRef): string[] {
  return effectOfChange(GRAPH, object).map(({ kind, delivery, uses }) => {
    const who = [...new Set(uses.map(({ process }) => process))].join(', ');
    return `then ${kind}: ${who} on ${delivery.nodes} nodes (${delivery.object.kind.toLowerCase()}/${delivery.object.name})`;
  });
}

function withBundle(configMap: ConfigMap, text: string): ConfigMap {
  return { ...configMap, data: { ...configMap.data, [BUNDLE_KEY]: text } };
}

function refOf({ metadata }: ConfigMap | Secret): ObjectRef {
  return { kind: 'ConfigMap', namespace: metadata?.namespace ?? '', name: metadata?.name ?? '' };
}

/** Every certificate that somebody may show: in Secrets of all namespaces, in kubeconfigs, in signing requests. Broken ones are passed over. */
async function certificatesInUse(kube: Kube): Promise<UsedCertificate[]> {
  const [secrets, requests] = await Promise.all([
    listAll(kube, SECRETS),
    listAll(kube, CERTIFICATE_SIGNING_REQUESTS).catch(() => ({ items: [] as CertificateSigningRequest[] })),
  ]);
  const inSecrets = secrets.items.flatMap(({ metadata, data = {} }) =>
    Object.entries(data).flatMap(([key, value]) => {
      const text = Buffer.from(value, 'base64').toString('latin1');
      const where = `secret/${metadata?.name} in ${metadata?.namespace} (${key})`;
      const [first] = text.includes('BEGIN CERTIFICATE') ? certificatesIn(text) : certificatesOfKubeconfig(text);
      return first === undefined ? [] : [{ where, certificate: first }];
    }),
  );
  const inRequests = requests.items.flatMap(({ metadata, status }) => {
    const text = Buffer.from(status?.certificate ?? '', 'base64').toString('latin1');
    const [first] = certificatesIn(text);
    return first === undefined ? [] : [{ where: `certificatesigningrequest/${metadata?.name}`, certificate: first }];
  });
  return [...inSecrets, ...inRequests];
}

function certificatesOfKubeconfig(text: string): readonly Certificate[] {
  const [, encoded] = /client-certificate-data:\s*"?([A-Za-z0-9+/=]+)/.exec(text) ?? [];
  return encoded === undefined ? [] : certificatesIn(Buffer.from(encoded, 'base64').toString('latin1'));
}
