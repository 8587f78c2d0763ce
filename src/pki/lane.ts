import { PkiError } from './error.ts';

/** Lets `width` tasks run at a time; the others wait, in the order they came, up to `maxWaiting` of them. */
export class Lane {
  readonly #width: number;
  readonly #maxWaiting: number;
  readonly #waiting: (() => void)[] = [];
  #running = 0;

  constructor(width: number, maxWaiting: number) {
    this.#width = width;
    this.#maxWaiting = maxWaiting;
  }

  /** Throws `PkiError` BUSY when too many are waiting already. */
  async run<T>(task: () => Promise<T>): Promise<T> {
    if (this.#running < this.#width) {
      this.#running++;
    } else if (this.#waiting.length < this.#maxWaiting) {
      // Whoever finishes hands its place over, so that nobody slips in between.
      await new Promise<void>(resolve => this.#waiting.push(resolve));
    } else {
      throw new PkiError('BUSY', `${this.#maxWaiting} tasks are waiting already`);
    }
    try {
      return await task();
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#running--;
    }
  }
}
