/** Growing pauses between attempts: doubled each time up to a longest one, and spread so that many do not come at once. */
export interface BackoffOptions {
  readonly firstMs: number;
  readonly longestMs: number;
  /** Gives numbers from 0 up to but not including 1. */
  readonly random?: (() => number) | undefined;
}

/** The pause before attempt number `failures` + 1: between half and the whole of what doubling gives. */
export function backoffMs(failures: number, { firstMs, longestMs, random = Math.random }: BackoffOptions): number {
  if (failures <= 0) return 0;
  const whole = Math.min(longestMs, firstMs * 2 ** Math.min(failures - 1, 50));
  return whole / 2 + (whole / 2) * random();
}
