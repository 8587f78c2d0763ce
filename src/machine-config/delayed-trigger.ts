import type { Trigger } from '../controller/trigger.ts';
import { type Clock, sleep } from '../kube/clock.ts';

export { onTransition } from '../controller/trigger.ts';

/**
 * The same triggers, each key some time after it was first asked for; what comes in between is one with it (spec 50, RN-1, ND-5,
 * DR-2). Changes come in swarms, and a rollout is better decided once.
 */
export function delayed(triggers: readonly Trigger[], clock: Clock, delayMs: number): Trigger[] {
  const waiting = new Set<string>();
  return triggers.map(trigger => ({
    synced: trigger.synced,
    start(enqueue) {
      const stopping = new AbortController();
      const stop = trigger.start(key => {
        if (waiting.has(key)) return;
        waiting.add(key);
        sleep(clock, delayMs, stopping.signal).then(
          () => {
            waiting.delete(key);
            enqueue(key);
          },
          () => waiting.delete(key),
        );
      });
      return () => {
        stop();
        stopping.abort(new Error('the controller has stopped'));
      };
    },
  }));
}
