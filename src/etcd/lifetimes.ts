import { days, hours, minutes } from '../kube/duration.ts';

/** How long a kind of certificate lives, and at which age it is replaced. */
export interface Lifetime {
  readonly validityMs: number;
  readonly refreshMs: number;
}

/** Signers live for so many days, however long a day is. */
export const SIGNER_DAYS = 1825;

export interface Lifetimes {
  readonly signer: Lifetime;
  readonly leaf: Lifetime;
}

/**
 * The lifetimes of section 1.2, with a "day" of any length. Signers are replaced at 80 % of their life, day 1460, because
 * that comes before their refresh time (spec 40, C-3).
 */
export function lifetimes(leaf: 'three years' | 'five years', dayMs: number = days(1)): Lifetimes {
  const fiveYears = { validityMs: SIGNER_DAYS * dayMs, refreshMs: 1533 * dayMs };
  return {
    signer: fiveYears,
    leaf: leaf === 'five years' ? fiveYears : { validityMs: 1095 * dayMs, refreshMs: 803 * dayMs },
  };
}

/** Those of the feature gate `ShortCertRotation` (spec 40, 12.1). */
export const SHORT_LIFETIMES: Lifetimes = {
  signer: { validityMs: hours(4), refreshMs: hours(3) },
  leaf: { validityMs: hours(2), refreshMs: minutes(90) },
};
