import { type Clock, sleep } from './clock.ts';

/** A signal that aborts when the time is up or when the caller's own signal does. End it when the work is done. */
export class Deadline {
  readonly #timer = new AbortController();
  readonly #work = new AbortController();
  readonly #caller: AbortSignal | undefined;
  readonly #onAbort = () => {
    this.#work.abort(this.#caller?.reason);
  };

  constructor(clock: Clock, timeoutMs: number, caller: AbortSignal | undefined, timeUp: () => Error) {
    this.#caller = caller;
    if (caller?.aborted) this.#onAbort();
    caller?.addEventListener('abort', this.#onAbort, { once: true });
    void this.#limit(clock, timeoutMs, timeUp);
  }

  get signal(): AbortSignal {
    return this.#work.signal;
  }

  /** Takes the time limit away; the caller's signal still counts. */
  lift(): void {
    this.#timer.abort(DONE);
  }

  end(): void {
    this.lift();
    this.#caller?.removeEventListener('abort', this.#onAbort);
  }

  async #limit(clock: Clock, timeoutMs: number, timeUp: () => Error): Promise<void> {
    try {
      await sleep(clock, timeoutMs, this.#timer.signal);
      this.#work.abort(timeUp());
    } catch {
      // The limit was taken away.
    }
  }
}

/** Given as reason so that no error object is built for each request that went well. */
const DONE = new Error('done');
