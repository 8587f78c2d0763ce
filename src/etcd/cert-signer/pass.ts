import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { BundleSigner } from '../../certrotation/bundle.ts';
import type { Rotation } from '../../certrotation/ensure.ts';
import { earlier } from '../../controller/reconcile.ts';
import { tellLeftBehind } from '../../hand-over/left-behind.ts';
import type { Receipt } from '../../hand-over/receipt.ts';
import { applyConfigMap, applySecret } from '../../kube/apply.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import {
  aggregateEntries,
  allBundles,
  allCerts,
  chainsIn,
  hasAggregateMetadata,
  holdsLeaf,
  isSameData,
  rolloutRevisionOf,
} from '../aggregate.ts';
import { BundleFailure, type EnsuredBundle, ensureBundleOf } from '../bundle.ts';
import { FAMILY_TABLE } from '../cert-table.ts';
import { bundleConfig, type CertificateOptions, type NodeLeaf, nodeLeaves } from '../certificates.ts';
import { decideLeaves, type HandOver, type LeafGate, signerDueTime } from '../hand-over.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE } from '../names.ts';
import { FAMILIES, type Family } from '../profile.ts';
import { receiptsForBundles, type TrustSurvey } from '../verifiers.ts';
import { failedAt } from './failure.ts';
import { endsFirst, mostAreReady, planHandOver, whoWaits, whyHeld } from './gate.ts';
import { ensureClient, ensureNodeLeaf, type LeafContext, type LeafScope } from './leaves.ts';
import type { CertSignerOptions } from './options.ts';
import { certificateOf, type PerFamily, perFamily } from './per-family.ts';
import { ensureWanted, promote, readInUse, readWanted, type SignerPair } from './signers.ts';
import { type FamilyStanding, standingsOf } from './standing.ts';
import type { ClusterState } from './state.ts';

export interface PassResult {
  /** When the next rule fires. */
  readonly until: Date | undefined;
  /** Why leaves were left alone. */
  readonly held: string | undefined;
  /** Where the signers stand; undefined: they were not looked at. */
  readonly standings?: PerFamily<FamilyStanding> | undefined;
}

/** One pass over all certificates of etcd, with what is needed to carry it out. */
export interface Pass {
  readonly options: CertSignerOptions;
  readonly rotation: Rotation;
  readonly state: ClusterState;
  /** Nobody runs who could be locked out. */
  readonly isGateOff: boolean;
  readonly trust: TrustSurvey;
  /** Nodes that nobody waits for (spec 90, HO-7). */
  readonly waived: ReadonlySet<string>;
  readonly signal: AbortSignal | undefined;
}

/** Signers, bundles, then leaves and their aggregate; leaves only behind the gate (spec 40, S-2 to S-14 and N-5). */
export async function rotateAll(pass: Pass): Promise<PassResult> {
  const { options, rotation, state } = pass;
  // What cannot be read stops the pass before it has written anything.
  if (options.profile.aggregatesBundles) rolloutRevisionOf(state.allBundles);
  const inUse = await perFamily(family => readInUse(family, rotation));
  if (options.profile.handOver === 'manual') {
    for (const family of FAMILIES) if (inUse[family] === undefined) throw missingSigner(family);
  }
  for (const family of FAMILIES) reportSigner(pass, family, inUse[family]);
  const certificates = certificateOptions(options);
  const leaves = nodeLeaves(state.nodes, certificates);
  const wanted = await perFamily(family => ensureWanted(family, certificates, rotation));
  const bundles = await perFamily(family => ensureBundle(family, inUse[family], wanted[family], leaves, pass));

  const gate = await publishBundles(pass, bundles, leaves);
  const plans = await planHandOver(pass, { inUse, wanted, leaves }, gate);
  const signers = await perFamily(family => carryOut(plans[family], family, inUse[family], wanted[family], pass));
  const held = await whyHeld(pass, { gate, plans, signers, leaves });
  if (held !== undefined) options.log?.info({ held }, 'leaves stay as they are');

  const scope = held === undefined ? 'all' : 'needed';
  const { until, expired } = await ensureLeaves(pass, { signers, bundles, leaves, scope });
  for (const family of FAMILIES) reportSigner(pass, family, signers[family]);
  requireUnexpired(pass, signers, expired, held);
  const dueTimes = FAMILIES.flatMap(family => [
    bundles[family].until,
    wanted[family].until,
    ...(signers[family] === undefined ? [] : [afterDue(certificateOf(signers[family]), options)]),
  ]).filter(time => time !== undefined && time > rotation.clock.now());
  const standings = await standingsOf(pass, { plans, signers, wanted, leaves, held });
  return { until: dueTimes.reduce(earlier, until), held, standings };
}

/**
 * While members are being restarted: nothing is rotated, but what somebody cannot run without is made (spec 40, N-4 and N-5). That
 * includes bundles that are gone: the rollout would wait for them for ever (N-3).
 */
export async function makeMissing(pass: Pass, held: string): Promise<PassResult & { readonly lacking: boolean }> {
  const { options, rotation, state } = pass;
  const leaves = nodeLeaves(state.nodes, certificateOptions(options));
  const signers = await perFamily(family => readInUse(family, rotation).catch(failForcedSync(family)));
  const bundles = await perFamily(async family => ({
    certificates: [signers[family]].flatMap(pair => pair?.chain ?? []),
  }));
  if (options.profile.aggregatesBundles && state.allBundles === undefined) {
    const wanted = await perFamily(family => readWanted(family, rotation));
    if (FAMILIES.every(family => (signers[family] ?? wanted[family]) !== undefined)) {
      await publishBundles(
        pass,
        await perFamily(family => ensureBundle(family, signers[family], wanted[family], leaves, pass)),
        leaves,
      );
    }
  }
  const { published } = await ensureLeaves(pass, { signers, bundles, leaves, scope: 'needed' });
  const standings = await whileRolling(pass, signers, leaves);
  return { until: undefined, held, lacking: lacksLeaves(published, state.nodes), standings };
}

/** A roll-out that does not end is what a hand-over waits for longest: who is missing is said all the same. */
async function whileRolling(
  pass: Pass,
  inUse: PerFamily<SignerPair | undefined>,
  leaves: readonly NodeLeaf[],
): Promise<PassResult['standings']> {
  try {
    const { server, metrics } = await perFamily(family => readWanted(family, pass.rotation));
    if (server === undefined || metrics === undefined) return undefined;
    const wanted = { server, metrics };
    const plans = await planHandOver(pass, { inUse, wanted, leaves }, { open: true });
    return await standingsOf(pass, { plans, signers: inUse, wanted, leaves });
  } catch (error) {
    pass.options.log?.warn({ err: error }, 'nobody knows where the hand-over of signers stands');
    return undefined;
  }
}

/** Whether a node is to run without its serving key in the aggregate: what makes a forced leaf sync (spec 40, N-4). */
export function lacksLeaves(data: Readonly<Record<string, string>> | undefined, nodes: readonly Node[]): boolean {
  return nodes.some(({ metadata }) => !data?.[`etcd-serving-${metadata?.name}.key`]);
}

function failForcedSync(family: Family): (error: unknown) => never {
  const signer = family === 'server' ? 'signer ca' : 'metrics signer ca';
  return error => {
    throw failedAt(`error while reading ${signer} during forced leaf sync`, error);
  };
}

/** What has run out and cannot be replaced now is no state to call as expected, whatever the reason (spec 40, R-6). */
function requireUnexpired(
  { rotation }: Pass,
  signers: PerFamily<SignerPair | undefined>,
  leaves: readonly string[],
  held: string | undefined,
): void {
  const isExpired = (pair: SignerPair | undefined) =>
    pair !== undefined && certificateOf(pair).notAfter <= rotation.clock.now();
  const inUse = FAMILIES.filter(family => isExpired(signers[family])).map(
    family => `${CONFIG_NAMESPACE}/${FAMILY_TABLE[family].signer}`,
  );
  const expired = [...inUse, ...leaves.map(name => `${ETCD_NAMESPACE}/${name}`)];
  if (expired.length === 0) return;
  throw new Error(`expired and not replaced: ${expired.join(', ')}${held === undefined ? '' : `; ${held}`}`);
}

function missingSigner(family: Family): Error {
  const { signer } = FAMILY_TABLE[family];
  return new Error(`error getting openshift-config/${signer}: secrets "${signer}" not found`);
}

function certificateOptions({ profile, keyAlgorithm }: CertSignerOptions): CertificateOptions {
  return { lifetimes: profile.lifetimes, keyAlgorithm };
}

/** A signer is due strictly after its time. */
function afterDue(signer: Certificate, { profile }: CertSignerOptions): Date {
  return new Date(signerDueTime(signer, profile.lifetimes.signer).getTime() + 1);
}

/** The gauge shows the signer that leaves depend on (spec 40, S-3). */
function reportSigner({ options, rotation }: Pass, family: Family, pair: CertificateAndKey | undefined): void {
  if (pair === undefined) return;
  options.metrics.signer(FAMILY_TABLE[family].gauge, certificateOf(pair).notAfter, rotation.clock.now());
}

/** The bundle holds the signer in use, the wanted one, and whoever signed a leaf that is still out there. */
async function ensureBundle(
  family: Family,
  inUse: SignerPair | undefined,
  wanted: SignerPair | undefined,
  leaves: readonly NodeLeaf[],
  { rotation, state }: Pass,
): Promise<EnsuredBundle> {
  const { signer: name, errors } = FAMILY_TABLE[family];
  const names = leaves.filter(({ row }) => row.family === family).map(({ target }) => target.name);
  const now = rotation.clock.now();
  const issuers = chainsIn(state.allCerts, names)
    .flatMap(chain => chain.slice(1))
    .filter(({ isCA }) => isCA);
  const signerOf = (namespace: string, certificate: Certificate): BundleSigner => ({ namespace, name, certificate });
  const signers = [
    ...[...(inUse?.chain.slice(0, 1) ?? []), ...issuers].map(certificate => signerOf(CONFIG_NAMESPACE, certificate)),
    ...(wanted?.chain.slice(0, 1) ?? []).map(certificate => signerOf(ETCD_NAMESPACE, certificate)),
  ];
  try {
    const unexpired = signers.filter(({ certificate }) => certificate.notAfter > now);
    return await ensureBundleOf(bundleConfig(family), unexpired, rotation);
  } catch (error) {
    const isInUse = error instanceof BundleFailure && error.signer?.namespace === CONFIG_NAMESPACE;
    throw failedAt(isInUse ? errors.bundleInUse : errors.bundleWanted, error);
  }
}

/** Publishes both bundles as one object and says whether leaves may follow. */
async function publishBundles(
  pass: Pass,
  bundles: PerFamily<EnsuredBundle>,
  leaves: readonly NodeLeaf[],
): Promise<LeafGate> {
  const { options, rotation, state, isGateOff, signal } = pass;
  if (!options.profile.aggregatesBundles) return { open: true };
  const currentRevision = state.etcd.latestAvailableRevision ?? 0;
  const bundleRevision = rolloutRevisionOf(state.allBundles);
  const required = allBundles(
    { server: bundles.server.certificates, metrics: bundles.metrics.certificates },
    currentRevision,
  );
  const bundleChangedNow = !isSameData(state.allBundles?.data, required.data);
  let published = state.allBundles ?? required;
  if (bundleChangedNow) {
    try {
      const { kube, events, clock } = rotation;
      ({ object: published } = await applyConfigMap({ kube, events, clock, signal }, required));
    } catch (error) {
      throw failedAt('error on ensuring bundles: could not apply bundle configmap', error);
    }
    options.log?.info(
      { revision: currentRevision },
      'published new CA bundles, leaves follow when every node runs with them',
    );
  }
  const receipts =
    isGateOff || bundleChangedNow
      ? undefined
      : await receiptsForBundles(published, { ...options, etcd: state.etcd, waived: pass.waived, signal });
  const waitingFor = receipts && mostAreReady(pass, receipts, endsFirst(pass, leaves)).waitingFor;
  return decideLeaves({
    currentRevision,
    bundleRevision,
    bundleChangedNow,
    nodesWithOtherBundles: waitingFor?.map(({ verifier }) => verifier),
    isGateOff,
  });
}

/** The signer that leaves are signed with from now on. */
async function carryOut(
  plan: HandOver,
  family: Family,
  inUse: SignerPair | undefined,
  wanted: SignerPair,
  { options, rotation }: Pass,
): Promise<SignerPair | undefined> {
  if (plan.do !== 'promote') return inUse;
  const promoted = await promote(family, wanted, rotation, plan.because);
  tellLeftBehind(rotation.events, signerPlace(family), plan.leftBehind);
  options.log?.info(
    { signer: certificateOf(wanted).subject.commonName, because: plan.because },
    'the wanted signer is now in use',
  );
  return promoted;
}

function signerPlace(family: Family) {
  return { namespace: CONFIG_NAMESPACE, name: FAMILY_TABLE[family].signer };
}

interface LeafWork {
  readonly signers: PerFamily<SignerPair | undefined>;
  readonly bundles: PerFamily<Pick<EnsuredBundle, 'certificates'>>;
  readonly leaves: readonly NodeLeaf[];
  /** `needed`: only those without which somebody cannot run. */
  readonly scope: LeafScope;
}

interface EnsuredLeaves {
  /** When the first of them is due. */
  readonly until: Date | undefined;
  /** Those that have run out and stay as they are. */
  readonly expired: readonly string[];
  /** What the aggregate holds now. */
  readonly published: Readonly<Record<string, string>>;
}

/** The leaves and their aggregate. */
async function ensureLeaves(pass: Pass, { signers, bundles, leaves, scope }: LeafWork): Promise<EnsuredLeaves> {
  const { options, rotation, state } = pass;
  const behind: PerFamily<readonly Receipt[]> = { server: [], metrics: [] };
  const contexts = await perFamily(async (family): Promise<LeafContext | undefined> => {
    const signer = signers[family];
    if (signer === undefined) return undefined;
    const { waitingFor, leftBehind } = await whoWaits(pass, family, certificateOf(signer), leaves);
    behind[family] = leftBehind;
    return {
      signer,
      bundle: bundles[family].certificates,
      rotation,
      scope,
      mayIssue: waitingFor.length === 0,
      metrics: options.metrics,
    };
  });
  const dueTimes: (Date | undefined)[] = [];
  const expired: string[] = [];
  const renewed = new Set<Family>();
  for (const family of FAMILIES) {
    const { changed, until, isExpired } = await ensureClient(family, certificateOptions(options), contexts[family]);
    if (changed) renewed.add(family);
    dueTimes.push(until);
    if (isExpired) expired.push(FAMILY_TABLE[family].client.secret);
  }
  const data: Record<string, string> = scope === 'all' ? {} : { ...state.allCerts?.data };
  for (const leaf of leaves) {
    const { secret, changed, until, isExpired } = await ensureNodeLeaf(leaf, contexts[leaf.row.family]);
    if (changed) renewed.add(leaf.row.family);
    dueTimes.push(until);
    if (isExpired) expired.push(leaf.target.name);
    // What was prepared behind a closed gate is published when it opens, not before.
    if (secret !== undefined && (scope === 'all' || changed || !holdsLeaf(state.allCerts, leaf.target.name))) {
      Object.assign(data, aggregateEntries(secret));
    }
  }
  for (const family of renewed) tellLeftBehind(rotation.events, signerPlace(family), behind[family]);
  options.metrics.keepLeaves([
    ...leaves.map(({ target }) => target.name),
    ...FAMILIES.map(family => FAMILY_TABLE[family].client.secret),
  ]);
  await publishLeaves(pass, data);
  return { until: dueTimes.reduce(earlier, undefined), expired, published: data };
}

async function publishLeaves({ options, rotation, state, signal }: Pass, data: Record<string, string>): Promise<void> {
  if (Object.keys(data).length === 0) return;
  const isSame = isSameData(state.allCerts?.data, data);
  if (isSame && state.allCerts !== undefined && hasAggregateMetadata(state.allCerts)) return;
  // Only data makes a revision; the rest may be put right at any time (spec 40, C-9 and P-1).
  if (!isSame) await options.secondCheck();
  const { kube, events, clock } = rotation;
  await applySecret({ kube, events, clock, signal }, allCerts(data));
  options.log?.info({ leaves: Object.keys(data).length / 2 }, 'published leaves of all nodes');
}
