import type { IntOrString } from '../../machine-config-api/machine-config.ts';

/** A value of `maxUnavailable` that means nothing. */
export class MaxUnavailableError extends Error {
  override readonly name = 'MaxUnavailableError';
}

const LONGEST_TEXT = 32;

/**
 * How many of so many nodes may be unavailable: 1 unless set; a number as it is; a percentage rounded down; never less than 1
 * (spec 50, ND-20). Throws `MaxUnavailableError`.
 */
export function maxUnavailable(value: IntOrString | undefined, nodeCount: number): number {
  if (value === undefined || value === null) return 1;
  if (typeof value === 'number') return Math.max(1, Math.trunc(value));
  const [, percent] = (value.length <= LONGEST_TEXT && /^([+-]?\d+)%$/.exec(value)) || [];
  if (percent === undefined) {
    throw new MaxUnavailableError(
      `spec.maxUnavailable: expected a number or a percentage like "10%", found ${JSON.stringify(value.slice(0, LONGEST_TEXT))}`,
    );
  }
  return Math.max(1, Math.floor((Number(percent) * nodeCount) / 100));
}
