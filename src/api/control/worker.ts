import type { Clock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { isConflict, isNotFound } from '../../kube/error.ts';

/** Looks at one thing; returns when to look again even if nothing happens. */
export type Work = (key: string) => Promise<Date | undefined> | Date | undefined;

const FIRST_PAUSE_MS = seconds(0.1);
const LONGEST_PAUSE_MS = seconds(30);

/**
 * Does the work for keys one after the other, once for each however often it was added meanwhile. What fails is tried
 * again after a pause that grows; what is no longer there, or changed under our hands, is not worth a pause: a change
 * adds the key again.
 */
export class Worker {
  readonly #clock: Clock;
  readonly #work: Work;
  readonly #onError: (key: string, error: unknown) => void;
  readonly #waiting = new Set<string>();
  readonly #failures = new Map<string, number>();
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;

  constructor(clock: Clock, work: Work, onError: (key: string, error: unknown) => void) {
    this.#clock = clock;
    this.#work = work;
    this.#onError = onError;
  }

  add(key: string): void {
    if (this.#stop.signal.aborted) return;
    this.#waiting.add(key);
    this.#running ??= this.#run();
  }

  /** Resolves when nothing is waiting any more. */
  async idle(): Promise<void> {
    while (this.#running !== undefined) await this.#running;
  }

  /** Finishes the key at hand and no other. */
  async close(): Promise<void> {
    this.#stop.abort();
    this.#waiting.clear();
    await this.#running;
  }

  async #run(): Promise<void> {
    // Whoever adds the first key is in the middle of something.
    await Promise.resolve();
    for (const key of this.#waiting) {
      this.#waiting.delete(key);
      await this.#doOne(key);
    }
    this.#running = undefined;
  }

  async #doOne(key: string): Promise<void> {
    try {
      const again = await this.#work(key);
      this.#failures.delete(key);
      if (again !== undefined) this.#addAt(key, again);
    } catch (error) {
      if (isNotFound(error)) return;
      if (isConflict(error)) {
        this.#waiting.add(key);
        return;
      }
      this.#onError(key, error);
      const failures = (this.#failures.get(key) ?? 0) + 1;
      this.#failures.set(key, failures);
      const pauseMs = Math.min(FIRST_PAUSE_MS * 2 ** (failures - 1), LONGEST_PAUSE_MS);
      this.#addAt(key, new Date(this.#clock.now().getTime() + pauseMs));
    }
  }

  #addAt(key: string, at: Date): void {
    this.#clock.until(at, this.#stop.signal).then(
      () => this.add(key),
      () => {},
    );
  }
}
