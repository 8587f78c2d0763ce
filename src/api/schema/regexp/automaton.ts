import type { Budget } from '../budget.ts';
import { codeAt, holds, isWord, NOTHING, type Program, widthOf } from './program.ts';
import { contains } from './ranges.ts';

/** Steps of the program that states may hold together; then they are forgotten and found anew. */
const MAX_REMEMBERED = 20_000;
/** A transition that is known costs this, where finding one costs every step of the program it meets. */
const KNOWN_COST = 0.1;

/**
 * Says whether a program matches anywhere in a text. It follows all ways through the program at the same time; each set of
 * places it can be at is a state, and where a state goes with a character is worked out once.
 */
export class Automaton {
  readonly #program: Program;
  /** A match can only begin where the text does. */
  readonly #anchored: boolean;
  readonly #asks: { readonly words: boolean; readonly lines: boolean; readonly start: boolean };
  readonly #seen: Uint32Array;
  #round = 0;
  readonly #states = new Map<string, State>();
  #remembered = 0;

  constructor(program: Program) {
    this.#program = program;
    this.#seen = new Uint32Array(program.length);
    const [first] = program;
    this.#anchored = first?.op === 'assert' && first.what === 'text-start';
    const asked = new Set(program.map(step => (step.op === 'assert' ? step.what : undefined)));
    this.#asks = {
      words: asked.has('word-boundary') || asked.has('no-word-boundary'),
      lines: asked.has('line-start'),
      start: asked.has('text-start') || asked.has('line-start'),
    };
  }

  test(text: string, budget: Budget): boolean {
    budget.spend(1 + text.length * KNOWN_COST);
    let state = this.#state([], NOTHING);
    for (let at = 0; ; ) {
      const code = codeAt(text, at);
      const next = state.next(code) ?? this.#find(state, code, budget);
      if (next === 'match') return true;
      if (next === 'dead' || code === NOTHING) return false;
      state = next;
      at += widthOf(code);
    }
  }

  /** Where a state goes with a character; the budget pays for every step looked at. */
  #find(state: State, code: number, budget: Budget): Next {
    const program = this.#program;
    const seen = this.#seen;
    const round = ++this.#round;
    const todo = [...state.places];
    if (!this.#anchored || state.before === NOTHING) todo.push(0);
    const next: number[] = [];
    let steps = 0;
    let matches = false;
    for (let index = todo.pop(); index !== undefined && !matches; index = todo.pop()) {
      steps++;
      if (seen[index] === round) continue;
      seen[index] = round;
      const step = program[index];
      switch (step?.op) {
        case 'match':
          matches = true;
          break;
        case 'chars':
          if (contains(step.ranges, code)) next.push(index + 1);
          break;
        case 'split':
          todo.push(step.first, step.second);
          break;
        case 'jump':
          todo.push(step.to);
          break;
        case 'assert':
          if (holds(step.what, state.before, code)) todo.push(index + 1);
          break;
        case undefined:
          throw new Error(`pattern program has no step ${index}`);
      }
    }
    budget.spend(steps + next.length);
    const found = matches ? 'match' : this.#anchored && next.length === 0 ? 'dead' : this.#state(next, code);
    state.remember(code, found);
    return found;
  }

  #state(places: readonly number[], before: number): State {
    const sorted = Int32Array.from(places).sort();
    const told = this.#told(before);
    const key = `${told} ${Buffer.from(sorted.buffer).toString('latin1')}`;
    const known = this.#states.get(key);
    if (known !== undefined) return known;
    this.#remembered += 1 + sorted.length;
    if (this.#remembered > MAX_REMEMBERED) {
      this.#states.clear();
      this.#remembered = 1 + sorted.length;
    }
    const state = new State(sorted, told);
    this.#states.set(key, state);
    return state;
  }

  /** Of the character before, only what assertions of this program can ask. */
  #told(before: number): number {
    if (before === NOTHING) return this.#asks.start || this.#anchored ? NOTHING : OTHER;
    if (before === NEWLINE) return this.#asks.lines ? NEWLINE : OTHER;
    return this.#asks.words && isWord(before) ? LETTER : OTHER;
  }
}

const NEWLINE = 10;
const LETTER = 97;
const OTHER = 32;

type Next = State | 'match' | 'dead';

const ASCII = 128;
/** Characters beyond ASCII that a state knows its way with. */
const MAX_FOREIGN = 1000;

class State {
  readonly places: Int32Array;
  readonly before: number;
  readonly #ascii: (Next | undefined)[] = [];
  readonly #others = new Map<number, Next>();

  constructor(places: Int32Array, before: number) {
    this.places = places;
    this.before = before;
  }

  next(code: number): Next | undefined {
    return code >= 0 && code < ASCII ? this.#ascii[code] : this.#others.get(code);
  }

  remember(code: number, next: Next): void {
    if (code >= 0 && code < ASCII) {
      this.#ascii[code] = next;
      return;
    }
    if (this.#others.size >= MAX_FOREIGN) this.#others.clear();
    this.#others.set(code, next);
  }
}
