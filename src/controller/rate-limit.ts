import { type Clock, mark } from '../kube/clock.ts';
import { milliseconds, seconds } from '../kube/duration.ts';

const FIRST_RETRY_MS = milliseconds(5);
const LONGEST_RETRY_MS = seconds(1000);
const RETRIES_PER_SECOND = 10;
const RETRY_BURST = 100;

/** The pause after so many failures in a row of one key: 5 ms, doubled each time, at most 1000 s (spec 30, 3.9). */
export function retryPauseMs(previousFailures: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** Math.min(previousFailures, 60), LONGEST_RETRY_MS);
}

/** Says how long each retry has to wait: the longer of the key's own pause and of what all keys together may do. */
export class RetryLimiter {
  readonly #clock: Clock;
  readonly #failures = new Map<string, number>();
  #tokens = RETRY_BURST;
  #filledAtMs: number;

  constructor(clock: Clock) {
    this.#clock = clock;
    this.#filledAtMs = mark(clock).monotonicMs;
  }

  /** Counts a failure of the key and returns its pause. */
  next(key: string): number {
    const failures = this.#failures.get(key) ?? 0;
    this.#failures.set(key, failures + 1);
    return Math.max(retryPauseMs(failures), this.#takeToken());
  }

  /** The key has succeeded: its next failure is a first one. */
  forget(key: string): void {
    this.#failures.delete(key);
  }

  /** A bucket that may run into debt: whoever comes then waits until the debt is paid. */
  #takeToken(): number {
    const nowMs = mark(this.#clock).monotonicMs;
    const gained = ((nowMs - this.#filledAtMs) / seconds(1)) * RETRIES_PER_SECOND;
    this.#tokens = Math.min(RETRY_BURST, this.#tokens + Math.max(0, gained)) - 1;
    this.#filledAtMs = nowMs;
    return this.#tokens >= 0 ? 0 : Math.ceil((-this.#tokens / RETRIES_PER_SECOND) * seconds(1));
  }
}
