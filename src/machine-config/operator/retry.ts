import { errorText } from '../../controller/aggregate-error.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { isConflict } from '../../kube/error.ts';

const TRIES = 5;
const PAUSE_MS = 10;

/**
 * Does work again that failed because somebody else wrote at the same time, or the API's own store was away for a moment
 * (spec 50, OP-8). The work is told when it is not the first try: what it knew from memory is old then.
 */
export async function retried<T>(
  work: (isAgain: boolean) => Promise<T>,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<T> {
  for (let tries = 1; ; tries++) {
    try {
      return await work(tries > 1);
    } catch (error) {
      const isBrief = isConflict(error) || errorText(error).includes('rpc error');
      if (tries === TRIES || !isBrief) throw error;
      await sleep(clock, PAUSE_MS, signal);
    }
  }
}
