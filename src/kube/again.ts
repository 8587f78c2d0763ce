import { backoffMs } from './backoff.ts';
import { type Clock, randomOf, sleep, systemClock } from './clock.ts';
import { minutes, seconds } from './duration.ts';
import { isTransient } from './error.ts';

export interface AgainOptions {
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock | undefined;
  /** How long after the first failure the last attempt may begin. */
  readonly limitMs?: number | undefined;
  /** What is worth another attempt; `isTransient` unless given. */
  readonly passes?: ((error: unknown) => boolean) | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
}

const BACKOFF = { firstMs: 100, longestMs: seconds(5) };
/** An API that is away for longer is gone: whoever waits is told. */
const LIMIT_MS = minutes(10);

/**
 * Does something that may be done twice, again and again while the API does not answer, fails or is too busy. Any other failure, the
 * end of the time and an abort come out as they are.
 */
export async function againWhileTransient<T>(
  attempt: () => Promise<T>,
  { signal, clock = systemClock, limitMs = LIMIT_MS, passes = isTransient, onError }: AgainOptions = {},
): Promise<T> {
  let giveUpAtMs: number | undefined;
  for (let failures = 1; ; failures++) {
    signal?.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      const nowMs = clock.now().getTime();
      giveUpAtMs ??= nowMs + limitMs;
      const pauseMs = backoffMs(failures, { ...BACKOFF, random: randomOf(clock) });
      if (!passes(error) || nowMs + pauseMs > giveUpAtMs) throw error;
      onError?.(error);
      await sleep(clock, pauseMs, signal);
    }
  }
}
