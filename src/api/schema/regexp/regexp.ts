import type { Budget } from '../budget.ts';
import { Automaton } from './automaton.ts';
import { codeAt, compile, type Program, widthOf } from './program.ts';
import { search } from './search.ts';

/**
 * A regular expression of the RE2 language, whose work grows no faster than the text, whatever the pattern, and which
 * counts its steps. JavaScript's own backtrack: a pattern from a CustomResourceDefinition could stop the server for hours
 * with one short string.
 */
export class Pattern {
  readonly #program: Program;
  readonly #automaton: Automaton;

  /** Throws `SyntaxError` saying what is wrong with the pattern. The budget pays for what is compiled. */
  constructor(source: string, budget?: Budget) {
    this.#program = compile(source, budget);
    this.#automaton = new Automaton(this.#program);
  }

  /** Whether the pattern occurs anywhere in the text. */
  test(text: string, budget: Budget): boolean {
    return this.#automaton.test(text, budget);
  }

  /** The matches one after the other, at most so many; an empty one never touches the one before it. */
  *matches(text: string, most: number, budget: Budget): Generator<string> {
    let last = -1;
    for (let [at, count] = [0, 0]; at <= text.length && count < most; ) {
      const found = search(this.#program, text, at, budget);
      if (found === undefined) return;
      const { start, end } = found;
      if (end > at) at = end;
      else at += widthOf(codeAt(text, at));
      if (start !== end || start !== last) {
        yield text.slice(start, end);
        count++;
      }
      last = end;
    }
  }
}
