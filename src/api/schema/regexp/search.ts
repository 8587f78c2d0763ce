import type { Budget } from '../budget.ts';
import { codeAt, holds, NOTHING, type Program, widthOf } from './program.ts';
import { contains } from './ranges.ts';

/** Where a match lies in a text. */
export interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * The match that begins first at or after `from`; of several that begin there the one the pattern prefers. All ways through
 * the program are followed at the same time, in the order of preference.
 */
export function search(program: Program, text: string, from: number, budget: Budget): Span | undefined {
  const search = new Search(program, budget);
  let before = codeBefore(text, from);
  for (let at = from; ; ) {
    const code = codeAt(text, at);
    if (!search.advance(at, before, code)) return search.found;
    before = code;
    at += widthOf(code);
  }
}

class Search {
  found: Span | undefined;
  readonly #program: Program;
  readonly #budget: Budget;
  readonly #seen: Uint32Array;
  #round = 0;
  /** Places to go on from, the preferred first, and where each way began. */
  #places: number[] = [];
  #starts: number[] = [];

  constructor(program: Program, budget: Budget) {
    this.#program = program;
    this.#budget = budget;
    this.#seen = new Uint32Array(program.length);
  }

  /** Takes one character; false when nothing better can be found any more. */
  advance(at: number, before: number, code: number): boolean {
    if (this.found === undefined) {
      this.#places.push(0);
      this.#starts.push(at);
    }
    const [places, starts] = [this.#places, this.#starts];
    this.#places = [];
    this.#starts = [];
    this.#round++;
    for (let index = 0; index < places.length; index++) {
      if (this.#follow(places[index] as number, starts[index] as number, at, before, code)) break;
    }
    return code !== NOTHING && (this.found === undefined || this.#places.length > 0);
  }

  /** Follows one way up to the next character. True when it has arrived: those that are less preferred are dropped. */
  #follow(place: number, start: number, at: number, before: number, code: number): boolean {
    const todo = [place];
    let steps = 0;
    let arrived = false;
    for (let index = todo.pop(); index !== undefined && !arrived; index = todo.pop()) {
      steps++;
      if (this.#seen[index] === this.#round) continue;
      this.#seen[index] = this.#round;
      const step = this.#program[index];
      switch (step?.op) {
        case 'match':
          this.found = { start, end: at };
          arrived = true;
          break;
        case 'chars':
          if (contains(step.ranges, code)) {
            this.#places.push(index + 1);
            this.#starts.push(start);
          }
          break;
        case 'split':
          todo.push(step.second, step.first);
          break;
        case 'jump':
          todo.push(step.to);
          break;
        case 'assert':
          if (holds(step.what, before, code)) todo.push(index + 1);
          break;
        case undefined:
          throw new Error(`pattern program has no step ${index}`);
      }
    }
    this.#budget.spend(steps);
    return arrived;
  }
}

function codeBefore(text: string, at: number): number {
  if (at === 0) return NOTHING;
  const unit = text.charCodeAt(at - 1);
  const isSecondHalf = unit >= 0xdc00 && unit <= 0xdfff && at >= 2;
  return isSecondHalf ? codeAt(text, at - 2) : unit;
}
