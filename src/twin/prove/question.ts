import { type FamilyQuestion, isGood } from '../../hand-over/decide.ts';
import type { Receipt } from '../../hand-over/receipt.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { GENERATIONS, type Generation, has, type MaybeGeneration, NONE, type Operator, type World } from './world.ts';

/** A CA without keys and bytes: all that the decision looks at is which one it is, and when it ends. */
export function certificateOf(generation: MaybeGeneration): Certificate | undefined {
  return CERTIFICATES[generation];
}

export function generationOf({ der }: Certificate): Generation {
  return der[0] as Generation;
}

/** What `decide` is asked by an operator that was told this; the same that `stateOf` reads from objects. */
export function questionOf(world: World, told: Told): FamilyQuestion {
  const { signer, next, previous, leaf, bundle } = world;
  const current = CERTIFICATES[signer] as Certificate;
  const before = certificateOf(previous);
  const now = world.isLate ? LATE : EARLY;
  const held = CERTIFICATES.filter((_, generation) => (bundle & (1 << generation)) !== 0);
  return {
    current,
    next: certificateOf(next),
    due: whyDue(world),
    isTakenBack: next !== NONE && world.isTakenBack,
    isTurnedRound:
      world.isTurnedRound &&
      before !== undefined &&
      isGood(before, { now }) &&
      previous !== signer &&
      has(bundle, previous),
    isNextUnused: next !== NONE && world.beside === signer,
    leaves: leaf === NONE ? [] : [{ name: 'the leaf', isOfCurrent: leaf === signer, ...datesOf(leaf) }],
    bundle: held,
    retiring: held.filter(ca => ca !== current && ca !== certificateOf(next)),
    receipts: ca => {
      const generation = generationOf(ca);
      if (generation === told.askedNext) return receiptOf(told.isNextMissing);
      return generation === told.askedCurrent ? receiptOf(told.isCurrentMissing) : undefined;
    },
    isShown: world.noted === signer,
    presenters: () => (told.lookedFor === signer ? receiptOf(told.isOlderShown) : undefined),
    lastTookMs: 0,
    dayMs: DAY_MS,
    now,
  };
}

export type Told = Pick<
  Operator,
  'askedNext' | 'isNextMissing' | 'askedCurrent' | 'isCurrentMissing' | 'lookedFor' | 'isOlderShown'
>;

export const NOTHING_TOLD: Told = {
  askedNext: NONE,
  isNextMissing: false,
  askedCurrent: NONE,
  isCurrentMissing: false,
  lookedFor: NONE,
  isOlderShown: false,
};

/** The first CA is due by itself when it ends soon. */
export function whyDue({ isDue, isLate, signer }: World): string | undefined {
  if (isDue) return 'somebody asked';
  return isLate && signer === 0 ? 'it ends soon' : undefined;
}

/** CAs that sign nothing and stand in the bundle. */
export function isRetiring({ bundle, signer, next }: World, generation: MaybeGeneration): boolean {
  return has(bundle, generation) && generation !== signer && generation !== next;
}

/** `decide` only asks whether anybody is missing: one of them stands for all. */
function receiptOf(isMissing: boolean): readonly Receipt[] {
  return isMissing ? SOMEBODY : NOBODY;
}

const NOBODY: readonly Receipt[] = [];
const SOMEBODY: readonly Receipt[] = [
  { verifier: 'somebody', node: undefined, kind: 'asked', isLoaded: false, evidence: '', isWaived: false },
];

const DAY_MS = 1000;
/** All CAs are good; the first one ends so soon that nobody can wait any longer. */
const EARLY = new Date(10 * DAY_MS);
const LATE = new Date(29.5 * DAY_MS);

const CERTIFICATES: readonly Certificate[] = Array.from(
  { length: GENERATIONS },
  (_, generation) =>
    ({
      der: Buffer.of(generation),
      subject: { commonName: `CA ${generation}` },
      notBefore: new Date(0),
      notAfter: new Date((generation === 0 ? 30 : 300) * DAY_MS),
    }) as Certificate,
);

function datesOf(generation: Generation) {
  const { notBefore, notAfter } = CERTIFICATES[generation] as Certificate;
  return { notBefore, notAfter };
}
