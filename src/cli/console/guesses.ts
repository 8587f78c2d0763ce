import type { Clock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';

/** So many wrong ones of one address within the window, then it waits. */
export const MOST_WRONG = 20;
const WINDOW_MS = seconds(60);
/** Beyond that the address that began first is forgotten: many addresses must neither fill the memory nor lock others out. */
const MOST_ADDRESSES = 1024;

/** Counts guesses at tokens, by the address they come from. */
export class Guesses {
  readonly #clock: Clock;
  readonly #wrong = new Map<string, Set<{ readonly atMs: number }>>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Counts as a wrong guess from now on, so that many at once are many, until it is undone. Undefined: not now. */
  begin(address: string): { undo(): void } | undefined {
    const atMs = this.#clock.now().getTime();
    const wrong = this.#wrong.get(address) ?? new Set();
    for (const guess of wrong) if (atMs - guess.atMs >= WINDOW_MS) wrong.delete(guess);
    if (wrong.size >= MOST_WRONG) return undefined;
    const guess = { atMs };
    this.#wrong.set(address, wrong.add(guess));
    const [first = address] = this.#wrong.keys();
    if (this.#wrong.size > MOST_ADDRESSES) this.#wrong.delete(first);
    return { undo: () => wrong.delete(guess) };
  }
}
