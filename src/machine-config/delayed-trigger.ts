import type { Source, Trigger } from '../controller/trigger.ts';
import { type Clock, sleep } from '../kube/clock.ts';
import type { KubeObject } from '../kube/resource.ts';

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

/** Asks for the keys of a change by what was before and what is now; `before` or `after` is missing at the ends. */
export function onTransition<T extends KubeObject>(
  source: Source<T>,
  keys: (before: T | undefined, after: T | undefined) => readonly string[],
): Trigger {
  return {
    synced: source.synced,
    start(enqueue) {
      const tell = (before: T | undefined, after: T | undefined) => {
        for (const key of keys(before, after)) enqueue(key);
      };
      return source.subscribe({
        add: object => tell(undefined, object),
        update: (before, after) => tell(before, after),
        delete: last => tell(last, undefined),
      });
    },
  };
}
