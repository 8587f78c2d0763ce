import type { Certificate } from '../pki/certificate.ts';
import type { Receipt } from './receipt.ts';

/** Where the hand-over of a signer stands (spec 90, section 2). */
export type Phase = 'Steady' | 'Distributing' | 'Signing' | 'Retiring';

/** Everything that the decision about one signer family rests on. */
export interface FamilyQuestion {
  /** What signs; undefined: there is none, or it has ended, or nobody can use it. */
  readonly current: Certificate | undefined;
  /** What is known already, and signs nothing yet. */
  readonly next: Certificate | undefined;
  /** Why current is to be replaced; undefined: it is good. */
  readonly due: string | undefined;
  /** Somebody has taken the hand-over back: `next` goes (HO-6). */
  readonly isTakenBack: boolean;
  /** Somebody wants the signer before this one back, and it is still there and good for long enough (HO-6). */
  readonly isTurnedRound: boolean;
  /** `current` is the one that `next` was made beside: `next` has never signed. */
  readonly isNextUnused: boolean;
  readonly leaves: readonly FamilyLeaf[];
  /** What the family's bundle holds: nobody who comes anew can have loaded what is not in it. */
  readonly bundle: readonly Certificate[];
  /** CAs of the family that sign nothing any more and still stand in its bundle. */
  readonly retiring: readonly Certificate[];
  /** What the verifiers say about a CA; undefined: nobody has asked them yet. */
  receipts(ca: Certificate): readonly Receipt[] | undefined;
  /** It is noted that everybody shows leaves of `current`: nobody has to look again. */
  readonly isShown: boolean;
  /** What those say who show leaves of the family; undefined: nobody has looked yet. */
  presenters(): readonly Receipt[] | undefined;
  /** How long the last hand-over took; 0: nobody knows. */
  readonly lastTookMs: number;
  /** A day, as long as the days of this cluster's rotation are. */
  readonly dayMs: number;
  readonly now: Date;
}

/** A certificate of the family that somebody is to show: it is there, can be used and has not ended. */
export interface FamilyLeaf {
  readonly name: string;
  readonly isOfCurrent: boolean;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export interface FamilyDecision {
  readonly phase: Phase;
  readonly write: FamilyWrite;
  /**
   * What becomes of leaves that are not of `current`: `follow`: they are made anew, now; `hold`: they stay, because somebody would refuse
   * what `current` signs. Leaves that are missing or have ended are made in either case: nobody can be worse off.
   */
  readonly leaves: 'follow' | 'hold';
  /** Who holds the hand-over up, by name and with what would end it. */
  readonly waitingFor: readonly Receipt[];
  /** Who is left behind because waiting any longer would harm everybody (HO-7). */
  readonly leftBehind: readonly Receipt[];
  /** One sentence for people. */
  readonly because: string;
}

export type FamilyWrite =
  | 'nothing'
  /** A new signer in place of one that nobody can use: it signs at once, as upstream's does. */
  | 'replace'
  /** A key pair beside the signer, for everybody to load. */
  | 'begin'
  /** Another one, because the one before it would end too soon. */
  | 'begin-again'
  /** `next` becomes `current`, in one write. */
  | 'promote'
  /** `next` goes, from the bundle too. */
  | 'discard'
  /** `next` is not needed any more, and is cleared away; where its CA is, it stays. */
  | 'clear'
  /** It is noted that nobody shows anything of an older signer. */
  | 'retire';

/** A hand-over is expected to take no longer than so many times what the last one took (HO-7). */
const TIMES_THE_LAST = 3;

/** What is to be done about one signer family at one moment (spec 90, HO-1 to HO-7). */
export function decide(question: FamilyQuestion): FamilyDecision {
  const { current, next, due } = question;
  if (current === undefined) {
    const answer =
      next === undefined || question.isTakenBack || !isGood(next, question)
        ? decision('Signing', 'replace', 'there is no signer that could be used')
        : decision('Signing', 'promote', 'there is no signer but the next one');
    // Leaves of a signer that was lost are as good as before.
    return { ...answer, leaves: 'hold' };
  }
  if (next !== undefined) return decideNext(current, next, question);
  if (question.isTurnedRound) {
    return { ...decision('Distributing', 'begin', 'somebody turned the hand-over round'), leaves: 'hold' };
  }
  const others = question.leaves.filter(({ isOfCurrent }) => !isOfCurrent);
  if (others.length > 0) return decideLeaves(current, others, question);
  if (due !== undefined) return decision('Distributing', 'begin', due);
  return question.retiring.length > 0 ? decideRetiring(question) : decision('Steady', 'nothing', 'the signer is good');
}

/**
 * Signing lasts until everybody shows what is signed anew (HO-3). It harms nobody, for the older CA is trusted meanwhile, so that it needs
 * no end but that of the older CA; it holds nothing up either, a signer that is due least of all.
 */
function decideRetiring({ retiring, isShown, presenters }: FamilyQuestion): FamilyDecision {
  const mayGo = `${retiring.map(({ subject }) => subject.commonName).join(', ')} may go`;
  if (isShown) return decision('Retiring', 'nothing', mayGo);
  const sights = presenters();
  if (sights === undefined) return decision('Signing', 'nothing', 'nobody has looked yet at who shows what');
  const waitingFor = missingOf(sights);
  if (waitingFor.length === 0) return decision('Retiring', 'retire', mayGo);
  return { ...decision('Signing', 'nothing', waitingText(waitingFor)), waitingFor };
}

/** Distributing: `next` waits for everybody. What becomes of leaves meanwhile has nothing to do with it. */
function decideNext(current: Certificate, next: Certificate, question: FamilyQuestion): FamilyDecision {
  const rest = decide({ ...question, next: undefined, due: undefined, isTurnedRound: false, presenters: nobodyLooks });
  if (next.der.equals(current.der)) {
    return { ...rest, phase: 'Signing', write: 'clear', because: 'the next signer signs already' };
  }
  // One that may have signed, before it was replaced itself, stays in the bundle (HO-3).
  if (question.isTakenBack) {
    const write = question.isNextUnused ? 'discard' : 'clear';
    return { ...rest, write, because: 'somebody took the hand-over back' };
  }
  if (question.due === undefined && !question.isTurnedRound)
    return { ...rest, write: 'clear', because: 'the signer has been replaced otherwise' };
  const waiting: FamilyDecision = { ...rest, phase: 'Distributing', write: 'nothing', waitingFor: [] };
  if (!isGood(next, question)) {
    return { ...waiting, write: 'begin-again', because: 'the next signer would end too soon' };
  }
  if (!isInBundle(next, question)) {
    // One that may have signed was in it: somebody has taken it out, and may load the bundle without it at any moment.
    if (!question.isNextUnused) return { ...rest, write: 'clear', because: 'its CA has left the bundle' };
    return { ...waiting, because: 'it is not in the bundle yet' };
  }
  const receipts = question.receipts(next);
  if (receipts === undefined) return { ...waiting, because: 'nobody has been asked yet' };
  const { waitingFor, leftBehind } = heldUpBy(receipts, current, question);
  if (waitingFor.length > 0) return { ...waiting, waitingFor, because: waitingText(waitingFor) };
  if (leftBehind.length === 0) return decision('Signing', 'promote', everybodyText(receipts));
  return { ...decision('Signing', 'promote', 'the signer in use ends soon'), leftBehind };
}

/** The CAs whose receipts decide: that of next, if it is to sign, and that of current as long as a leaf is not its own. */
export function askedAbout({ current, next, due, isTakenBack, isTurnedRound, leaves }: AskedFor): Certificate[] {
  if (current === undefined) return [];
  const isWanted = (due !== undefined || isTurnedRound) && !isTakenBack;
  const isNextToSign = next !== undefined && isWanted && !next.der.equals(current.der);
  const isFollowed = leaves.every(({ isOfCurrent }) => isOfCurrent);
  return [...(isNextToSign ? [next] : []), ...(isFollowed ? [] : [current])];
}

type AskedFor = Pick<FamilyQuestion, 'current' | 'next' | 'due' | 'isTakenBack' | 'isTurnedRound' | 'leaves'>;

/** Whether it depends on what presenters show. */
export function isLookWanted(question: Omit<FamilyQuestion, 'presenters'>): boolean {
  let isWanted = false;
  const presenters = () => {
    isWanted = true;
    return undefined;
  };
  decide({ ...question, presenters });
  return isWanted;
}

/** Signing: leaves follow, unless somebody has not loaded what would sign them, as in the middle of a wait of upstream's (HO-4). */
function decideLeaves(current: Certificate, others: readonly FamilyLeaf[], question: FamilyQuestion): FamilyDecision {
  if (!isInBundle(current, question))
    return { ...decision('Signing', 'nothing', 'the signer is not in the bundle yet'), leaves: 'hold' };
  const receipts = question.receipts(current);
  if (receipts === undefined) return { ...decision('Signing', 'nothing', 'nobody has been asked yet'), leaves: 'hold' };
  const endsFirst = others.reduce((a, b) => (b.notAfter < a.notAfter ? b : a));
  const { waitingFor, leftBehind } = heldUpBy(receipts, endsFirst, question);
  if (waitingFor.length > 0)
    return { ...decision('Signing', 'nothing', waitingText(waitingFor)), leaves: 'hold', waitingFor };
  const names = others.map(({ name }) => name).join(', ');
  const because = leftBehind.length === 0 ? `${names} follow` : `${endsFirst.name} ends soon`;
  return { ...decision('Signing', 'nothing', because), leftBehind };
}

/** Who holds up what ends then; or is left behind, because waiting any longer would harm everybody (HO-7). */
export function heldUpBy(
  receipts: readonly Receipt[],
  ending: Ending | undefined,
  patience: Patience,
): { readonly waitingFor: readonly Receipt[]; readonly leftBehind: readonly Receipt[] } {
  const missing = missingOf(receipts);
  return ending !== undefined && isTooLate(ending, patience)
    ? { waitingFor: [], leftBehind: missing }
    : { waitingFor: missing, leftBehind: [] };
}

function isInBundle({ der }: Certificate, { bundle }: FamilyQuestion): boolean {
  return bundle.some(ca => ca.der.equals(der));
}

/** Who was waived by name holds nothing up (HO-7). */
function missingOf(receipts: readonly Receipt[]): Receipt[] {
  return receipts.filter(({ isLoaded, isWaived }) => !isLoaded && !isWaived);
}

/**
 * Whether a hand-over might not be done before this end: three times what the last one took, and a day at least (HO-7). One that was slow
 * for a reason of its own must not keep the next from waiting at all, so that it counts for no more than the last fifth of the life.
 */
export function isTooLate(ending: Ending, patience: Patience): boolean {
  return patience.now >= waitsUntil(ending, patience);
}

/** Until when anybody is waited for, for the sake of what ends then. */
export function waitsUntil(ending: Ending, { lastTookMs, dayMs }: Pick<FamilyQuestion, 'lastTookMs' | 'dayMs'>): Date {
  const neededMs = Math.max(dayMs, Math.min(TIMES_THE_LAST * lastTookMs, lastFifthMs(ending)));
  return new Date(ending.notAfter.getTime() - neededMs);
}

/** Since when leaves are there that somebody does not show yet. */
export function signedSince(
  { leaves }: Pick<FamilyQuestion, 'leaves'>,
  { waitingFor }: FamilyDecision,
): Date | undefined {
  if (waitingFor.length === 0 || leaves.length === 0) return undefined;
  return new Date(Math.max(...leaves.map(({ notBefore }) => notBefore.getTime())));
}

/** What ends when nobody does anything. */
export type Ending = Pick<Certificate, 'notBefore' | 'notAfter'>;
/** What it depends on how long anybody is waited for. */
export type Patience = Pick<FamilyQuestion, 'lastTookMs' | 'dayMs' | 'now'>;

/** Whether a signer that waits is still worth waiting for: less than four fifths of its life are over (spec 10, S-4). */
export function isGood(signer: Certificate, { now }: Pick<FamilyQuestion, 'now'>): boolean {
  return now.getTime() < signer.notAfter.getTime() - lastFifthMs(signer);
}

function lastFifthMs({ notBefore, notAfter }: Ending): number {
  return (notAfter.getTime() - notBefore.getTime()) / 5;
}

/** While a next one is there it does not matter yet who shows what. */
function nobodyLooks(): undefined {
  return undefined;
}

function everybodyText(receipts: readonly Receipt[]): string {
  const waived = receipts.filter(({ isLoaded }) => !isLoaded).map(({ verifier }) => verifier);
  const but = waived.length === 0 ? '' : `, but for ${waived.join(', ')}, waived by somebody`;
  return `everybody who verifies has loaded it${but}`;
}

function waitingText(waitingFor: readonly Receipt[]): string {
  return `waiting for ${waitingFor.map(({ verifier }) => verifier).join(', ')}`;
}

function decision(phase: Phase, write: FamilyWrite, because: string): FamilyDecision {
  return { phase, write, leaves: 'follow', waitingFor: [], leftBehind: [], because };
}
