import type { Check } from '../controller/health.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { type Clock, type Mark, mark } from '../kube/clock.ts';
import { formatGoDuration, minutes } from '../kube/duration.ts';

/** A controller whose last pass ended longer ago than this hangs somewhere (spec 40, A-5). */
export const ALIVE_LIMIT_MS: number = minutes(5);

/** Notes when each controller last finished a pass, well or not: it finds what hangs, not what fails. */
export class Liveness {
  readonly #clock: Clock;
  readonly #controllers = new Map<string, { limitMs: number; last: Mark }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** The same pass, watched. Counts as having run when it is added. */
  watch(name: string, reconcile: Reconcile, limitMs: number = ALIVE_LIMIT_MS): Reconcile {
    const controller = { limitMs, last: mark(this.#clock) };
    this.#controllers.set(name, controller);
    return async (key, context) => {
      try {
        return await reconcile(key, context);
      } finally {
        controller.last = mark(this.#clock);
      }
    };
  }

  /** The controllers that have not come back in time. */
  stuck(): string[] {
    const now = mark(this.#clock).monotonicMs;
    return [...this.#controllers]
      .filter(([, { limitMs, last }]) => now - last.monotonicMs >= limitMs)
      .map(([name]) => name);
  }

  /** For the health server: fails while a controller is stuck. */
  readonly check: Check = () => {
    const stuck = this.stuck();
    if (stuck.length === 0) return;
    const limits = stuck.map(name => `${name} (${formatGoDuration(this.#controllers.get(name)?.limitMs ?? 0)})`);
    throw new Error(`no pass has ended in time: ${limits.join(', ')}`);
  };
}
