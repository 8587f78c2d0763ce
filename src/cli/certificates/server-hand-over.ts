import { BUNDLE_KEY } from '../../certrotation/bundle.ts';
import { type RotationUnit, rotationUnit } from '../../certrotation/config.ts';
import { servingCreator } from '../../certrotation/creator.ts';
import { liveObjects } from '../../certrotation/ensure.ts';
import { ObjectLocks } from '../../certrotation/locks.ts';
import { dataText, TLS_CERT } from '../../certrotation/secret.ts';
import type { FamilyDecision } from '../../hand-over/decide.ts';
import { nextKey } from '../../hand-over/family.ts';
import { TAKEN_BACK } from '../../hand-over/names.ts';
import { syncByReceipts } from '../../hand-over/sync.ts';
import { certificatesIn } from '../../inventory/relations.ts';
import { type Clock, systemClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { CLUSTER, INFRASTRUCTURES, internalUrlOf } from '../../kube-apiserver/resources.ts';
import { hostOfUrl } from '../../kube-apiserver/rotation/hostnames.ts';
import { MACHINE_API_NAMESPACE } from '../../machine-config-api/names.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { verifyChain } from '../../pki/chain.ts';
import { type Keys, systemKeys } from '../../pki/keys.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { authoritiesIn } from './ignition-ca.ts';
import { currentJoinCa, distributeJoinCa, JOIN_SERVING, JOIN_SIGNER, joinCaIfThere } from './join-ca.ts';
import { joinReceipts } from './join-receipts.ts';
import type { Outcome } from './outcome.ts';

/** Machines join when they join: rotation that is sped up does not speed them up. */
export const SERVER_DAY_MS = days(1);
/** Ten years, replaced after nine (spec 70, 2.4). */
export const SERVER_LIFETIME = { validityMs: days(3650), refreshMs: days(3285) };

const SIGNER = { kind: 'Secret', ...JOIN_SIGNER };
const PARTS = {
  signer: SIGNER,
  bundle: { kind: 'ConfigMap', ...JOIN_SIGNER },
  target: { kind: 'Secret', ...JOIN_SERVING },
};
/** One to make a CA, one to let it sign when machines have it, one to clear away; more would turn in a circle. */
const MOST_PASSES = 5;

/** The signer, bundle and certificate that new machines meet first. */
export function serverUnit(hostnames: readonly string[]): RotationUnit {
  return rotationUnit({
    name: 'MachineConfigServer',
    signer: { ...JOIN_SIGNER, ...SERVER_LIFETIME },
    bundle: JOIN_SIGNER,
    target: { ...JOIN_SERVING, ...SERVER_LIFETIME, creator: servingCreator({ hostnames }) },
  });
}

export interface ServerHandOver {
  readonly unit: RotationUnit;
  /** Bring CAs into the user data of machines. */
  readonly updateIgnition: boolean;
  /** Also where it reboots all nodes and the platform does not need it. */
  readonly updateRootCa?: boolean | undefined;
  readonly clock?: Clock | undefined;
  readonly keys?: Keys | undefined;
}

/**
 * Runs the rotation rules over the family of the machine-config server until nothing is left to do, or somebody has to be waited for: a
 * new CA is made, reaches everything that machines to come begin with, and only then does the server get a certificate of it (spec 90,
 * HO-2). The old one stays in bundle and user data. Begun anew after an end at any moment, it goes on where it was: everything it rests on
 * is in the objects.
 */
export async function handServerOver(kube: Kube, options: ServerHandOver, outcomes: Outcome[]): Promise<void> {
  const { unit, updateIgnition, updateRootCa, clock = systemClock, keys = systemKeys } = options;
  let decision: FamilyDecision | undefined;
  const sync = syncByReceipts([unit], {
    receipts: joinReceipts(kube, clock),
    dayMs: SERVER_DAY_MS,
    onDecision: (_family, made) => (decision = made),
  });
  const rotation = {
    kube,
    objects: liveObjects(kube),
    clock,
    keys,
    events: { event: () => {} },
    locks: new ObjectLocks(),
  };
  await keepTrustOfLeaf(kube, clock.now());
  const done = new Set<keyof typeof PARTS>();
  const distributed: Outcome[] = [];
  for (let pass = 1; pass <= MOST_PASSES; pass++) {
    await withdrawTakenBack(kube);
    const result = await sync(unit, rotation);
    if (result.outcome === 'lost')
      throw new Error(`somebody else wrote the ${result.object} at the same time: try again`);
    for (const part of result.regenerated) done.add(part);
    // Before anything is signed by it, and again where it was made meanwhile: what has it is not written.
    const isFirst = pass === 1;
    if (updateIgnition && (isFirst || result.regenerated.length > 0)) {
      const given = await distributeJoinCa(kube, await currentJoinCa(kube), { dryRun: false, updateRootCa });
      distributed.push(...(isFirst ? given : given.filter(({ outcome }) => outcome === 'done')));
    }
    if (!isFirst && result.regenerated.length === 0) break;
  }
  for (const [part, object] of Object.entries(PARTS))
    outcomes.push(outcomeOf(object, done.has(part as keyof typeof PARTS)));
  outcomes.push(...distributed, ...heldUp(decision));
}

function outcomeOf(object: Outcome['object'], isNew: boolean): Outcome {
  return isNew
    ? { object, outcome: 'done', text: 'regenerated' }
    : { object, outcome: 'unchanged', text: 'unchanged', isNoted: true };
}

/** Who is waited for, by name. */
function heldUp(decision: FamilyDecision | undefined): Outcome[] {
  if (decision === undefined || decision.waitingFor.length === 0) return [];
  const details = decision.waitingFor.map(({ verifier, evidence }) => `${verifier}: ${evidence}`);
  const text = `${decision.phase}: ${decision.because}; run this again when they have it`;
  return [{ object: SIGNER, outcome: 'held', text, details }];
}

/**
 * A certificate of the installer's is of a CA that our bundle does not know; by the rules nobody could accept it, and it would be replaced
 * at once. Machines accept it by what is in their user data: from there its CA comes into the bundle, before anything else.
 */
async function keepTrustOfLeaf(kube: Kube, now: Date): Promise<void> {
  const serving = await getIfPresent(kube, SECRETS, JOIN_SERVING);
  const [leaf, ...intermediates] = certificatesIn(serving && dataText(serving, TLS_CERT));
  if (leaf === undefined) return;
  const found = await getIfPresent(kube, CONFIG_MAPS, JOIN_SIGNER);
  const text = found?.data?.[BUNDLE_KEY] ?? '';
  const anchorOf = (roots: readonly Certificate[]) => {
    const answer = verifyChain({ leaf, intermediates, roots, now, usage: 'serverAuth' });
    return answer.ok ? answer.chain.at(-1) : undefined;
  };
  if (anchorOf(certificatesIn(text)) !== undefined) return;
  const anchor = anchorOf(await trustOfMachines(kube));
  if (anchor === undefined) return;
  const data = { ...found?.data, [BUNDLE_KEY]: encodeCertificates([anchor, ...certificatesIn(text)]) };
  if (found === undefined) await kube.create(CONFIG_MAPS, { metadata: { ...JOIN_SIGNER }, data });
  else await kube.update(CONFIG_MAPS, { ...found, data });
}

/** Every CA that a machine may begin with. */
async function trustOfMachines(kube: Kube): Promise<Certificate[]> {
  const { items } = await listAll(kube, SECRETS, { namespace: MACHINE_API_NAMESPACE });
  return items.flatMap(secret => authoritiesIn(dataText(secret, 'userData') ?? '') ?? []).flatMap(certificatesIn);
}

/** A CA that somebody took back leaves the user data too, first: the Secret that names it is there until the end (HO-6). */
async function withdrawTakenBack(kube: Kube): Promise<void> {
  const next = await getIfPresent(kube, SECRETS, nextKey(JOIN_SIGNER));
  if (next?.metadata?.annotations?.[TAKEN_BACK] === undefined) return;
  const [withdrawn] = certificatesIn(dataText(next, TLS_CERT));
  const current = await joinCaIfThere(kube);
  if (withdrawn === undefined || current === undefined || withdrawn.der.equals(current.der)) return;
  await distributeJoinCa(kube, current, { dryRun: false, withdrawn });
}

type PlatformAddresses = Readonly<
  Record<string, { apiServerInternalIP?: string; apiServerInternalIPs?: readonly string[] } | undefined>
>;
const PLATFORMS_WITH_ADDRESSES = ['baremetal', 'ovirt', 'openstack', 'vsphere', 'nutanix'] as const;

/** The names that machines call the server by (spec 70, 2.4). */
export async function serverNames(kube: Kube): Promise<string[]> {
  const infrastructure = await getIfPresent(kube, INFRASTRUCTURES, CLUSTER);
  const host = infrastructure && hostOfUrl(internalUrlOf(infrastructure));
  if (host === undefined) throw new Error('infrastructures.config.openshift.io/cluster names no internal API URL');
  const platform = (infrastructure?.status?.platformStatus ?? {}) as PlatformAddresses;
  const addresses = PLATFORMS_WITH_ADDRESSES.flatMap(name => {
    const { apiServerInternalIPs, apiServerInternalIP } = platform[name] ?? {};
    return apiServerInternalIPs ?? (apiServerInternalIP ? [apiServerInternalIP] : []);
  });
  return [...new Set([host, ...addresses])];
}
