import { type Clock, sleep } from '../kube/clock.ts';
import { RetryLimiter } from './rate-limit.ts';

/** More waiting keys than this mean that something is wrong with the keys. */
const MOST_KEYS = 1_000_000;

/** Counts what goes through a queue; all optional. */
export interface QueueObserver {
  added?(): void;
  retried?(): void;
  /** How many keys wait to be taken. */
  depth?(keys: number): void;
}

/**
 * A queue of keys to work on. A key waits at most once; one that is added while it is worked on waits until that is done;
 * the same key is never out twice at a time (spec 30, 3.1).
 */
export class WorkQueue {
  readonly #clock: Clock;
  readonly #limiter: RetryLimiter;
  readonly #observer: QueueObserver;
  /** In the order of arrival. */
  readonly #ready = new Set<string>();
  readonly #inWork = new Set<string>();
  /** Added while in work. */
  readonly #again = new Set<string>();
  readonly #delayed = new Map<string, { atMs: number; cancel: AbortController }>();
  readonly #takers: ((key: string | undefined) => void)[] = [];
  #isClosed = false;

  constructor(clock: Clock, observer: QueueObserver = {}) {
    this.#clock = clock;
    this.#limiter = new RetryLimiter(clock);
    this.#observer = observer;
  }

  /** How many keys wait to be taken now, not counting delayed ones. */
  get size(): number {
    return this.#ready.size;
  }

  /** At once, whatever limits there are on retries. */
  add(key: string): void {
    if (this.#isClosed) return;
    if (this.#inWork.has(key)) {
      this.#again.add(key);
      return;
    }
    if (this.#ready.has(key)) return;
    if (this.#ready.size >= MOST_KEYS) throw new RangeError(`a queue holds at most ${MOST_KEYS} keys`);
    this.#observer.added?.();
    const taker = this.#takers.shift();
    if (taker === undefined) this.#ready.add(key);
    else {
      this.#inWork.add(key);
      taker(key);
    }
    this.#observer.depth?.(this.#ready.size);
  }

  /** At that time; of several times for one key the earliest counts. Is no failure (spec 30, 3.9). */
  addAt(key: string, at: Date): void {
    const waitMs = at.getTime() - this.#clock.now().getTime();
    this.#delay(key, waitMs, signal => this.#clock.until(at, signal));
  }

  /** After a failure: later each time, until `forget`. */
  retry(key: string): void {
    if (this.#isClosed) return;
    this.#observer.retried?.();
    const pauseMs = this.#limiter.next(key);
    this.#delay(key, pauseMs, signal => sleep(this.#clock, pauseMs, signal));
  }

  /** The key has succeeded. */
  forget(key: string): void {
    this.#limiter.forget(key);
  }

  /** The next key, which is then in work until `done`. Undefined when the queue is closed. */
  take(): Promise<string | undefined> {
    if (this.#isClosed) return Promise.resolve(undefined);
    const [key] = this.#ready;
    if (key === undefined) return new Promise(resolve => this.#takers.push(resolve));
    this.#ready.delete(key);
    this.#inWork.add(key);
    this.#observer.depth?.(this.#ready.size);
    return Promise.resolve(key);
  }

  done(key: string): void {
    this.#inWork.delete(key);
    if (this.#again.delete(key)) this.add(key);
  }

  /** Drops everything that waits, and lets nothing more in. What is in work may be finished. */
  close(): void {
    this.#isClosed = true;
    this.#ready.clear();
    this.#again.clear();
    for (const { cancel } of this.#delayed.values()) cancel.abort(new Error('the queue is closed'));
    this.#delayed.clear();
    for (const taker of this.#takers.splice(0)) taker(undefined);
    this.#observer.depth?.(0);
  }

  #delay(key: string, waitMs: number, wait: (signal: AbortSignal) => Promise<void>): void {
    if (this.#isClosed) return;
    if (waitMs <= 0) {
      this.add(key);
      return;
    }
    const atMs = this.#clock.now().getTime() + waitMs;
    const known = this.#delayed.get(key);
    if (known !== undefined && known.atMs <= atMs) return;
    known?.cancel.abort(new Error('an earlier time came'));
    const cancel = new AbortController();
    this.#delayed.set(key, { atMs, cancel });
    wait(cancel.signal).then(
      () => {
        this.#delayed.delete(key);
        this.add(key);
      },
      () => {},
    );
  }
}
