import { minutes, seconds } from '../kube/duration.ts';

export type RestartPolicy = 'Always' | 'OnFailure' | 'Never';

/** A kubelet begins with ten; here nothing has to be pulled, and others on the same machine wait. */
const FIRST_PAUSE_MS = seconds(1);
const LONGEST_PAUSE_MS = minutes(5);
/** A run this long clears what went before. */
const FORGET_AFTER_MS = minutes(10);

/** Whether a container that ended is started again. */
export function isRestarted(policy: RestartPolicy, exitCode: number): boolean {
  return policy === 'Always' || (policy === 'OnFailure' && exitCode !== 0);
}

/** The pause before the next start: none the first time, then a second, doubled up to five minutes. */
export function restartPauseMs(restarts: number): number {
  return restarts <= 1 ? 0 : Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(restarts - 2, 30));
}

/** How many restarts in a row count after a run of that length. */
export function restartsInARow(before: number, ranMs: number): number {
  return ranMs >= FORGET_AFTER_MS ? 1 : before + 1;
}
