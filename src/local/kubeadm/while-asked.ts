import { sleep, systemClock } from '../../kube/clock.ts';
import { milliseconds } from '../../kube/duration.ts';

const LOOK_EVERY_MS = milliseconds(300);

/** Works as long as it is asked for, and begins again whenever it is asked for anew, until `signal` aborts. */
export async function whileAsked(
  isAsked: () => boolean,
  signal: AbortSignal,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  while (!signal.aborted) {
    await until(isAsked, signal);
    if (signal.aborted) return;
    const over = new AbortController();
    const working = work(AbortSignal.any([signal, over.signal]));
    await Promise.race([until(() => !isAsked(), signal), working.catch(() => {})]);
    over.abort(new Error('it is not asked for any more'));
    await working;
  }
}

async function until(isSo: () => boolean, signal: AbortSignal): Promise<void> {
  while (!signal.aborted && !isSo()) await sleep(systemClock, LOOK_EVERY_MS, signal).catch(() => {});
}
