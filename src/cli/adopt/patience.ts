import { type Clock, sleep, systemClock } from '../../kube/clock.ts';
import { formatGoDuration, minutes, seconds } from '../../kube/duration.ts';
import { isTransient } from '../../kube/error.ts';

export interface PatienceOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly clock?: Clock | undefined;
  /** Told once of each change of what is waited for. */
  readonly onProgress: (text: string) => void;
}

export type Answer<T> = { readonly done: T } | { readonly missing: readonly string[] };

const ASK_EVERY_MS = seconds(1);
const ASK_EVERY_LATER_MS = seconds(5);
const LATER_MS = minutes(1);

/** Asks until there is an answer; an API that is away for a while is waited for too. Throws what the question throws, and when the time is over. */
export async function untilTrue<T>(options: PatienceOptions, question: () => Promise<Answer<T>>): Promise<T> {
  const { timeoutMs, signal, clock = systemClock, onProgress } = options;
  const began = clock.now().getTime();
  let told = '';
  for (;;) {
    signal?.throwIfAborted();
    const answer = await question().catch((error: unknown): Answer<T> => {
      if (!isTransient(error)) throw error;
      return { missing: [`the API does not answer: ${(error as Error).message}`] };
    });
    if ('done' in answer) return answer.done;
    const text = answer.missing.join('; ');
    if (text !== told) onProgress(text);
    told = text;
    const passedMs = clock.now().getTime() - began;
    if (passedMs >= timeoutMs) throw new Error(`gave up after ${formatGoDuration(timeoutMs)}, still waiting: ${told}`);
    await sleep(clock, Math.min(passedMs < LATER_MS ? ASK_EVERY_MS : ASK_EVERY_LATER_MS, timeoutMs - passedMs), signal);
  }
}
