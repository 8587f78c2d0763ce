import type { Refusal } from './edges.ts';

/** What the faults of a life make inevitable, worked out from what was off, and for how long. */
export interface Excuses {
  /** Why nobody could have kept this from happening; undefined: somebody could have. */
  whyRefused(refusal: Refusal, nowMs: number): string | undefined;
  /** Whether a machine is down for a reason that is not ours. */
  isOff(node: string, nowMs: number): boolean;
}
