import type { Log } from '../controller/log.ts';
import { backoffMs } from '../kube/backoff.ts';
import { type Clock, sleep } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';

const BACKOFF = { firstMs: seconds(0.25), longestMs: seconds(30) };

/** Carries a changing state to somewhere that may be unreachable: one write at a time, the newest state in the end. */
export class StatusPublisher {
  readonly #write: () => Promise<void>;
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #stop = new AbortController();
  #isDue = false;
  #work: Promise<void> | undefined;

  constructor(write: () => Promise<void>, clock: Clock, log: Log) {
    this.#write = write;
    this.#clock = clock;
    this.#log = log;
  }

  /** The state has changed. */
  publish(): void {
    if (this.#stop.signal.aborted) return;
    this.#isDue = true;
    this.#work ??= this.#publishAll();
  }

  /** Resolves when the present state is written, or when it is given up. */
  async flushed(): Promise<void> {
    await this.#work;
  }

  /** Gives up what could not be written so far. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#work;
  }

  async #publishAll(): Promise<void> {
    // Changes that come together are written together.
    await Promise.resolve();
    for (let failures = 0; this.#isDue && !this.#stop.signal.aborted; ) {
      this.#isDue = false;
      try {
        await this.#write();
        failures = 0;
      } catch (error) {
        failures++;
        this.#isDue = true;
        this.#log.debug({ err: error, failures }, 'status could not be written');
        await sleep(this.#clock, backoffMs(failures, BACKOFF), this.#stop.signal).catch(() => {});
      }
    }
    this.#work = undefined;
  }
}
