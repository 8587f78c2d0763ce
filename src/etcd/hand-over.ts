import type { RotationPolicy } from '../certrotation/config.ts';
import { decide, type FamilyDecision, isTooLate, type Patience } from '../hand-over/decide.ts';
import type { Receipt } from '../hand-over/receipt.ts';
import type { Certificate } from '../pki/certificate.ts';
import { SIGNER_DAYS } from './lifetimes.ts';

/** What is known about the two signers of a family. */
export interface HandOverQuestion {
  /** The signer the library keeps fresh (`openshift-etcd`). */
  readonly wanted: Certificate;
  /** The signer that leaves are signed with (`openshift-config`); undefined: there is none yet. */
  readonly inUse: Certificate | undefined;
  /**
   * Whether the wanted one was made to be used. 4.16 keeps a second CA that signs nothing; a cluster that comes from there is
   * not rotated before its own signer is due.
   */
  readonly isMeantForUse: boolean;
  /** Which of the two signed the leaves that are out there. */
  readonly leavesAreOf: 'wanted' | 'other' | 'nobody';
  /** Who checks leaves of the family, and whether they have loaded the wanted signer. */
  readonly receipts: readonly Receipt[];
  readonly mode: 'manual' | 'automatic';
  readonly policy: RotationPolicy;
  readonly now: Date;
}

export type HandOver =
  /** Leaves stay with the signer in use. */
  | { readonly do: 'keep' }
  | {
      readonly do: 'promote';
      readonly because: string;
      /** Who is left behind, because waiting any longer would harm everybody (spec 90, HO-7). */
      readonly leftBehind: readonly Receipt[];
      /** The signer in use ends soon: nobody else is waited for either. */
      readonly isUrgent: boolean;
    }
  | { readonly do: 'wait'; readonly for: readonly string[] };

/** What a family's objects say besides. */
export interface Surroundings {
  /** Leaves that are not of the signer in use. */
  readonly follow: readonly string[];
  /** CAs that sign nothing any more and still stand in the bundle. */
  readonly retiring: readonly Certificate[];
  /** Why they do not follow; undefined: they do. */
  readonly held?: string | undefined;
}

/**
 * Whether the wanted signer becomes the one in use (spec 40, section 12 and R-2): by the same rule as everywhere (spec 90), when everybody
 * who verifies has it in the bundle they run with. Until then the one in use goes on signing, for new nodes too.
 */
export function decideHandOver(question: HandOverQuestion): HandOver {
  const { wanted, inUse, isMeantForUse, leavesAreOf, receipts, mode, policy, now } = question;
  if (inUse?.der.equals(wanted.der) || mode === 'manual') return { do: 'keep' };
  if (leavesAreOf === 'wanted') {
    return { do: 'promote', because: 'it has signed the leaves in use already', leftBehind: [], isUrgent: false };
  }
  const isNeeded =
    inUse === undefined ||
    (isMeantForUse && wanted.notBefore >= inUse.notBefore) ||
    (isSignerDue(inUse, policy, now) && wanted.notAfter > inUse.notAfter);
  if (!isNeeded) return { do: 'keep' };
  const patience = patienceOf(policy, now);
  const { write, because, waitingFor, leftBehind } = decide({
    // Nothing is lost with a signer that is gone: what it has signed is as good as before, and waits for its successor.
    current: inUse ?? { ...wanted, der: NONE },
    next: wanted,
    due: 'a newer one is there',
    isTakenBack: false,
    isTurnedRound: false,
    isNextUnused: true,
    leaves: [],
    // Published before anybody is asked.
    bundle: [wanted],
    retiring: [],
    receipts: () => receipts,
    isShown: true,
    presenters: () => undefined,
    ...patience,
  });
  return write === 'promote'
    ? { do: 'promote', because, leftBehind, isUrgent: inUse !== undefined && isTooLate(inUse, patience) }
    : { do: 'wait', for: waitingFor.map(({ verifier }) => verifier) };
}

const NONE = Buffer.alloc(0);

/** How long anybody is waited for, with signers of this life (spec 90, HO-7). */
export function patienceOf({ validityMs }: Pick<RotationPolicy, 'validityMs'>, now: Date): Patience {
  return { lastTookMs: 0, dayMs: validityMs / SIGNER_DAYS, now };
}

/** Whether a signer has reached 80 % of its life or its refresh time; judged by the certificate, for its annotations are not ours. */
export function isSignerDue(signer: Certificate, policy: RotationPolicy, now: Date): boolean {
  return now > signerDueTime(signer, policy);
}

export function signerDueTime({ notBefore, notAfter }: Certificate, { refreshMs }: RotationPolicy): Date {
  const latestMs = notAfter.getTime() - (notAfter.getTime() - notBefore.getTime()) / 5;
  return new Date(Math.min(latestMs, notBefore.getTime() + refreshMs));
}

/** Both signers change in one go where both can: a restart of every member is saved (spec 40, N-6). */
export function together<K extends string>(plans: Readonly<Record<K, HandOver>>): Record<K, HandOver> {
  const waiting = Object.values<HandOver>(plans).flatMap(plan => (plan.do === 'wait' ? plan.for : []));
  const entries = Object.entries<HandOver>(plans).map(([key, plan]) => [
    key,
    plan.do === 'promote' && !plan.isUrgent && waiting.length > 0 ? { do: 'wait', for: waiting } : plan,
  ]);
  return Object.fromEntries(entries) as Record<K, HandOver>;
}

/** The same as everywhere, for people: the phase, and who is waited for (spec 90, HO-1). */
export function decisionOf(plan: HandOver, { follow, retiring, held }: Surroundings): FamilyDecision {
  const none = { write: 'nothing', leaves: 'follow', waitingFor: [], leftBehind: [] } as const;
  if (plan.do === 'wait') {
    const because = `waiting for ${plan.for.join(', ')}`;
    return { ...none, phase: 'Distributing', leaves: 'hold', waitingFor: plan.for.map(waitedFor), because };
  }
  if (plan.do === 'promote')
    return { ...none, phase: 'Signing', write: 'promote', leftBehind: plan.leftBehind, because: plan.because };
  if (follow.length > 0 && held !== undefined)
    return { ...none, phase: 'Signing', leaves: 'hold', waitingFor: [waitedFor(held)], because: held };
  if (follow.length > 0) return { ...none, phase: 'Signing', because: `${follow.join(', ')} follow` };
  if (retiring.length === 0) return { ...none, phase: 'Steady', because: 'the signer is good' };
  const names = retiring.map(({ subject }) => subject.commonName).join(', ');
  return { ...none, phase: 'Retiring', because: `${names} may go` };
}

/** A plan knows names: of processes on nodes, or what the whole waits for. */
function waitedFor(verifier: string): Receipt {
  const evidence = 'runs without it';
  return { verifier, node: undefined, kind: 'started', isLoaded: false, evidence, isWaived: false };
}

export interface LeafQuestion {
  /** The revision that runs on all nodes. */
  readonly currentRevision: number;
  /** The revision that was current when the bundles last changed. */
  readonly bundleRevision: number;
  readonly bundleChangedNow: boolean;
  /** Nodes whose revision has other bundles than the published ones; undefined: nobody has looked. */
  readonly nodesWithOtherBundles?: readonly string[] | undefined;
  /** While installing and rendering, when nobody runs who could be locked out (spec 40, N-2 and N-7). */
  readonly isGateOff: boolean;
}

export type LeafGate = { readonly open: true } | { readonly open: false; readonly reason: string };

/** Whether leaves may change now: only after every node runs a revision with the newest bundles (spec 40, N-5). */
export function decideLeaves(question: LeafQuestion): LeafGate {
  const { currentRevision, bundleRevision, bundleChangedNow, nodesWithOtherBundles, isGateOff } = question;
  if (isGateOff) return { open: true };
  if (bundleChangedNow) return closed('skipping leaf cert generation as revision rollout has been triggered');
  if (nodesWithOtherBundles !== undefined && nodesWithOtherBundles.length > 0) {
    return closed(
      `skipping leaf cert generation as these nodes run without the newest bundles: ${nodesWithOtherBundles.join(', ')}`,
    );
  }
  // Bundles that were deleted and made again just as they were need no revision: everybody has them.
  if (nodesWithOtherBundles === undefined && currentRevision <= bundleRevision) {
    const where = `currently at ${currentRevision} - rotation happened at ${bundleRevision}`;
    return closed(`skipping leaf cert generation as safe revision is not yet achieved, ${where}`);
  }
  return { open: true };
}

function closed(reason: string): LeafGate {
  return { open: false, reason };
}
