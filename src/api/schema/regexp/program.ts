import type { Budget } from '../budget.ts';
import { type Assertion, type Node, parse } from './parse.ts';
import { CLASSES, contains, type Ranges } from './ranges.ts';

export type Step =
  | { readonly op: 'chars'; readonly ranges: Ranges }
  | { readonly op: 'assert'; readonly what: Assertion }
  /** Goes on in two places; what `first` finds is preferred. */
  | { readonly op: 'split'; first: number; second: number }
  | { readonly op: 'jump'; to: number }
  | { readonly op: 'match' };

/** A compiled pattern. */
export type Program = readonly Step[];

/** The work for one character is at most proportional to it; repeating something a thousand times makes a thousand of it. */
const MAX_PROGRAM = 100_000;

/** Throws `SyntaxError` saying what is wrong with the pattern. */
export function compile(source: string, budget?: Budget): Program {
  const emitter = new Emitter(budget);
  emitter.emit(parse(source));
  emitter.push({ op: 'match' });
  return emitter.steps;
}

class Emitter {
  readonly steps: Step[] = [];
  readonly #budget: Budget | undefined;
  /** Repeating nothing a thousand times makes no steps, but takes its time. */
  #visits = 0;

  constructor(budget: Budget | undefined) {
    this.#budget = budget;
  }

  push<S extends Step>(step: S): S {
    this.steps.push(step);
    return step;
  }

  emit(node: Node): void {
    if (this.steps.length > MAX_PROGRAM || ++this.#visits > MAX_PROGRAM * 10) {
      throw new SyntaxError('expression too large');
    }
    this.#budget?.spend(1);
    switch (node.kind) {
      case 'chars':
        this.push({ op: 'chars', ranges: node.ranges });
        return;
      case 'assert':
        this.push({ op: 'assert', what: node.what });
        return;
      case 'sequence':
        for (const part of node.parts) this.emit(part);
        return;
      case 'choice':
        this.#choice(node.parts);
        return;
      case 'repeat':
        this.#repeat(node);
    }
  }

  #choice(parts: readonly Node[]): void {
    const jumps: { to: number }[] = [];
    parts.forEach((part, index) => {
      if (index === parts.length - 1) {
        this.emit(part);
        return;
      }
      const split = this.#split();
      this.emit(part);
      jumps.push(this.push({ op: 'jump' as const, to: 0 }));
      split.second = this.steps.length;
    });
    for (const jump of jumps) jump.to = this.steps.length;
  }

  #repeat({ part, min, max, lazy }: Node & { kind: 'repeat' }): void {
    if (max !== Infinity) {
      for (let times = 0; times < min; times++) this.emit(part);
      this.#optional(max - min, part, lazy);
    } else if (min > 0) {
      for (let times = 1; times < min; times++) this.emit(part);
      this.#oneOrMore(part, lazy);
    } else if (isNullable(part)) {
      // What matches nothing must be preferred in the order it stands in, also when it is repeated.
      const split = this.#split();
      this.#oneOrMore(part, lazy);
      this.#leave([split], lazy);
    } else {
      const start = this.steps.length;
      const split = this.#split();
      this.emit(part);
      this.push({ op: 'jump', to: start });
      this.#leave([split], lazy);
    }
  }

  #optional(times: number, part: Node, lazy: boolean): void {
    const splits: (Step & { op: 'split' })[] = [];
    for (let time = 0; time < times; time++) {
      splits.push(this.#split());
      this.emit(part);
    }
    this.#leave(splits, lazy);
  }

  #oneOrMore(part: Node, lazy: boolean): void {
    const start = this.steps.length;
    this.emit(part);
    const split = this.#split();
    const end = this.steps.length;
    [split.first, split.second] = lazy ? [end, start] : [start, end];
  }

  /** A split that goes on with the next step; where else is filled in later. */
  #split(): Step & { op: 'split' } {
    const next = this.steps.length + 1;
    return this.push({ op: 'split' as const, first: next, second: next });
  }

  #leave(splits: readonly (Step & { op: 'split' })[], lazy: boolean): void {
    const end = this.steps.length;
    for (const split of splits) [split.first, split.second] = lazy ? [end, split.first] : [split.first, end];
  }
}

function isNullable(node: Node): boolean {
  switch (node.kind) {
    case 'chars':
      return false;
    case 'assert':
      return true;
    case 'sequence':
      return node.parts.every(isNullable);
    case 'choice':
      return node.parts.some(isNullable);
    case 'repeat':
      return node.min === 0 || isNullable(node.part);
  }
}

/** What stands before the first character and after the last. */
export const NOTHING = -1;
const NEWLINE = 10;

/** Whether an assertion holds between two characters. */
export function holds(what: Assertion, before: number, after: number): boolean {
  switch (what) {
    case 'text-start':
      return before === NOTHING;
    case 'text-end':
      return after === NOTHING;
    case 'line-start':
      return before === NOTHING || before === NEWLINE;
    case 'line-end':
      return after === NOTHING || after === NEWLINE;
    case 'word-boundary':
      return isWord(before) !== isWord(after);
    case 'no-word-boundary':
      return isWord(before) === isWord(after);
  }
}

const WORD = CLASSES['w'] ?? [];

export function isWord(code: number): boolean {
  return contains(WORD, code);
}

/** The code point at a place of the text; `NOTHING` behind its end. */
export function codeAt(text: string, at: number): number {
  return text.codePointAt(at) ?? NOTHING;
}

export function widthOf(code: number): number {
  return code > 0xffff ? 2 : 1;
}
