import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { roleOf } from '../../certrotation/annotations.ts';
import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { etcdTrust } from '../../etcd/trust.ts';
import { isRevisionCopy } from '../../inventory/certificates.ts';
import { isConflict } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { kubeApiserverTrust } from '../../kube-apiserver/trust.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { verifyChain } from '../../pki/chain.ts';
import { encodeCertificates, readCertificates } from '../../pki/pem.ts';
import { effectOfChange } from '../../trust/effect.ts';
import { joinGraphs } from '../../trust/graph.ts';
import type { ObjectRef } from '../../trust/object.ts';
import { withCluster } from '../cluster.ts';
import { confirm } from '../confirm.ts';
import { momentFrom } from '../moment.ts';
import { visible } from '../table.ts';
import { UsageError } from '../usage-error.ts';
import type { RemoveTrustFlags } from './command.ts';
import { certificatesInUse, type UsedCertificate } from './in-use.ts';
import { type Outcome, printLocal, printOutcomes, reportMissing, verbFormat } from './outcome.ts';
import { readLocal, readSelected, selectedFrom } from './selection.ts';
import { certificatesServed } from './served.ts';
import { StillShown } from './still-shown.ts';

const FIELD_MANAGER = 'remove-old-trust';
const CONFLICT_RETRIES = 5;

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
  const needed = inUse.flatMap(({ where, certificate: leaf, intermediates }) => {
    if (leaf.isCA) return [];
    const accept = (roots: readonly Certificate[]) => verifyChain({ leaf, intermediates, roots, now, usage: 'any' });
    const before = accept(certificates);
    if (!before.ok || accept(kept).ok) return [];
    return [`${where} still needs "${before.chain.at(-1)?.subject.commonName}"`];
  });
  if (needed.length > 0) return { do: 'refuse', because: 'certificates in use would no longer be accepted', needed };
  return { do: 'prune', text: encodeCertificates(kept), removed };
}

export async function runRemoveOldTrust(words: readonly string[], flags: RemoveTrustFlags): Promise<void> {
  const format = verbFormat(flags.output);
  const createdBefore = momentFrom('--created-before', flags.createdBefore);
  const excluded = new Set((flags.excludeBundles ?? []).map(excludedFrom));
  const isExcluded = ({ metadata }: ConfigMap) => excluded.has(`${metadata?.namespace}/${metadata?.name}`);
  const isChosen = (configMap: ConfigMap) => isBundle(configMap) && !isExcluded(configMap);
  const passedOver = (objects: readonly ConfigMap[]): Outcome[] =>
    objects
      .filter(object => !isChosen(object))
      .map(object => ({
        object: refOf(object),
        outcome: 'skipped',
        text: isBundle(object) ? 'excluded' : 'it is no managed CA bundle',
      }));
  // What is wrong with the call is said before any cluster is asked.
  const selected = selectedFrom(CONFIG_MAPS, words, flags, '');
  if (flags.local) {
    const { objects, missing, warnings } = readLocal(CONFIG_MAPS, flags, selected);
    const now = new Date();
    const decided = objects.filter(isChosen).map(bundle => ({
      bundle,
      decision: decidePrune(bundle.data?.[BUNDLE_KEY] ?? '', createdBefore, [], now),
    }));
    const items = decided.flatMap(({ bundle, decision: it }) =>
      it.do === 'prune' ? [withBundle(bundle, it.text)] : [],
    );
    const left = decided.flatMap(({ bundle, decision: it }) => (it.do === 'prune' ? [] : [leftAlone(bundle, it)]));
    const outcomes = [...passedOver(objects), ...left];
    printLocal(items, { outcomes, missing, warnings }, format, flags.verbose ?? false);
    return;
  }
  await withCluster(flags, async ({ kube, namespace }) => {
    const { objects, missing } = await readSelected(
      kube,
      CONFIG_MAPS,
      selectedFrom(CONFIG_MAPS, words, flags, namespace),
    );
    const bundles = objects.filter(isChosen);
    const checks = bundles.length === 0 ? undefined : await checksOf(kube);
    const inUse = checks?.inUse ?? [];
    const now = new Date();
    const stillShown = await StillShown.read(kube, now);
    const judge: Judge = async ({ data }) =>
      unlessShown(decidePrune(data?.[BUNDLE_KEY] ?? '', createdBefore, inUse, now), stillShown);
    const decided = await Promise.all(bundles.map(async bundle => ({ bundle, decision: await judge(bundle) })));
    const pruned = decided.filter(({ decision }) => decision.do === 'prune');
    if (pruned.length > 0 && !flags.dryRun) {
      const names = pruned.map(({ bundle }) => bundle.metadata?.name).join(', ');
      await confirm(`CAs will be removed from ${pruned.length} bundles: ${names}.`, flags.yes);
    }
    const outcomes = passedOver(objects);
    for (const { bundle, decision } of decided) {
      outcomes.push(await carryOut(kube, bundle, decision, { judge, dryRun: flags.dryRun ?? false }));
    }
    printOutcomes(outcomes, format, { dryRun: flags.dryRun ?? false, verbose: flags.verbose ?? false });
    reportMissing(missing);
    if (checks !== undefined) reportChecks(checks, flags.verbose ?? false);
  });
}

type Judge = (bundle: ConfigMap) => Promise<PruneDecision>;

/** What is signed by a CA may be shown although no object holds it any more: its presenters are looked at (spec 90, HO-3). */
async function unlessShown(decision: PruneDecision, stillShown: StillShown): Promise<PruneDecision> {
  if (decision.do !== 'prune') return decision;
  const needed = await stillShown.of(decision.removed);
  if (needed.length === 0) return decision;
  return { do: 'refuse', because: 'not everybody shows a certificate of the signer in use', needed };
}

interface Checks {
  readonly inUse: readonly UsedCertificate[];
  readonly unreadable: readonly string[];
  readonly asked: number;
  readonly silent: readonly string[];
}

/** Who may still need an old CA, as far as the API and the servers themselves can tell. */
async function checksOf(kube: Kube): Promise<Checks> {
  const [stored, served] = await Promise.all([certificatesInUse(kube), certificatesServed(kube, GRAPH)]);
  return { ...stored, ...served, inUse: [...stored.inUse, ...served.inUse] };
}

/** Nobody should think that more was looked at than was. */
function reportChecks({ inUse, unreadable, asked, silent }: Checks, verbose: boolean): void {
  process.stderr.write(
    `checked against ${inUse.length} certificates: in Secrets, ConfigMaps, kubeconfigs and signing requests of all namespaces ` +
      `(${unreadable.length} could not be read), and of ${asked} servers (${silent.length} did not answer)\n`,
  );
  if (!verbose) return;
  for (const where of unreadable) process.stderr.write(`not checked: ${visible(where)}: it cannot be read\n`);
  for (const where of silent) process.stderr.write(`not checked: ${visible(where)}: no answer\n`);
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

function leftAlone(bundle: ConfigMap, decision: Exclude<PruneDecision, { do: 'prune' }>): Outcome {
  const object = refOf(bundle);
  if (decision.do === 'nothing') return { object, outcome: 'unchanged', text: decision.because };
  return { object, outcome: 'failed', text: decision.because, details: decision.needed };
}

async function carryOut(
  kube: Kube,
  bundle: ConfigMap,
  decision: PruneDecision,
  question: { readonly judge: Judge; readonly dryRun: boolean },
): Promise<Outcome> {
  const object = refOf(bundle);
  if (decision.do !== 'prune') return leftAlone(bundle, decision);
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
      answer = await question.judge(current);
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

function refOf({ metadata }: ConfigMap): ObjectRef {
  return { kind: 'ConfigMap', namespace: metadata?.namespace ?? '', name: metadata?.name ?? '' };
}
