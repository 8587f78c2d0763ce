import type { IntOrString } from '../../machine-config-api/machine-config.ts';

/** A value of `maxUnavailable` that means nothing. */
export class MaxUnavailableError extends Error {
  override readonly name = 'MaxUnavailableError';
}

const LONGEST_TEXT = 32;
/** Percentages are numbers of 64 bits. */
const PERCENT_LIMIT = 2 ** 63;

/**
 * How many of so many nodes may be unavailable: 1 unless set; a number as it is; a percentage rounded down; 1 instead of 0
 * (spec 50, ND-20). Less than 0 stops a rollout. Throws `MaxUnavailableError`.
 */
export function maxUnavailable(value: IntOrString | undefined, nodeCount: number): number {
  if (value === undefined || value === null) return 1;
  if (typeof value === 'number') return Math.trunc(value) || 1;
  const [, percent] = (value.length <= LONGEST_TEXT && /^([+-]?\d+)%$/.exec(value)) || [];
  if (percent === undefined || Math.abs(Number(percent)) >= PERCENT_LIMIT) {
    throw new MaxUnavailableError(
      `spec.maxUnavailable: expected a number or a percentage like "10%", found ${JSON.stringify(value.slice(0, LONGEST_TEXT))}`,
    );
  }
  return Math.floor((Number(percent) * nodeCount) / 100) || 1;
}
