import { type Assertion, type Node, parse } from './parse.ts';
import { CLASSES, contains, type Ranges } from './ranges.ts';

/**
 * Regular expressions of the RE2 language that take time linear in the text, whatever the pattern. JavaScript's own
 * backtrack: a pattern from a CustomResourceDefinition could stop the server for hours with one short string.
 */
export interface Pattern {
  /** Whether the pattern occurs anywhere in the text. */
  test(text: string): boolean;
}

export const LONGEST_PATTERN = 8192;
/** Steps of a compiled pattern; the time for one character is at most proportional to it. */
const MAX_PROGRAM = 10_000;

type Step =
  | { readonly op: 'chars'; readonly ranges: Ranges }
  | { readonly op: 'assert'; readonly what: Assertion }
  | { readonly op: 'split'; other: number }
  | { readonly op: 'jump'; to: number }
  | { readonly op: 'match' };

/** Compiles a pattern; throws `SyntaxError` saying what is wrong with it. */
export function compilePattern(source: string): Pattern {
  if (source.length > LONGEST_PATTERN) throw new SyntaxError(`expression is longer than ${LONGEST_PATTERN} characters`);
  const program: Program = { steps: [], visits: 0 };
  emit(program, parse(source));
  program.steps.push({ op: 'match' });
  return { test: text => run(program.steps, text) };
}

interface Program {
  readonly steps: Step[];
  /** Repeating nothing a thousand times a thousand times makes no steps, but takes its time. */
  visits: number;
}

function emit(program: Program, node: Node): void {
  if (program.steps.length > MAX_PROGRAM || ++program.visits > MAX_PROGRAM * 10) {
    throw new SyntaxError('expression too large');
  }
  switch (node.kind) {
    case 'chars':
      program.steps.push({ op: 'chars', ranges: node.ranges });
      return;
    case 'assert':
      program.steps.push({ op: 'assert', what: node.what });
      return;
    case 'sequence':
      for (const part of node.parts) emit(program, part);
      return;
    case 'choice':
      emitChoice(program, node.parts);
      return;
    case 'repeat':
      emitRepeat(program, node);
  }
}

/** A split goes on with the next step and, at the same time, with `other`. */
function emitChoice(program: Program, parts: readonly Node[]): void {
  const jumps: { to: number }[] = [];
  parts.forEach((part, index) => {
    if (index === parts.length - 1) {
      emit(program, part);
      return;
    }
    const split = push(program, { op: 'split' as const, other: 0 });
    emit(program, part);
    jumps.push(push(program, { op: 'jump' as const, to: 0 }));
    split.other = program.steps.length;
  });
  for (const jump of jumps) jump.to = program.steps.length;
}

function emitRepeat(program: Program, { part, min, max }: Node & { kind: 'repeat' }): void {
  for (let times = 0; times < min; times++) emit(program, part);
  if (max === Infinity) {
    const start = program.steps.length;
    const split = push(program, { op: 'split' as const, other: 0 });
    emit(program, part);
    program.steps.push({ op: 'jump', to: start });
    split.other = program.steps.length;
    return;
  }
  const splits: { other: number }[] = [];
  for (let times = min; times < max; times++) {
    splits.push(push(program, { op: 'split' as const, other: 0 }));
    emit(program, part);
  }
  for (const split of splits) split.other = program.steps.length;
}

function push<S extends Step>(program: Program, step: S): S {
  program.steps.push(step);
  return step;
}

/** Follows all ways through the program at the same time, one character after the other. */
function run(program: readonly Step[], text: string): boolean {
  let current = new Threads(program);
  let next = new Threads(program);
  let before = -1;
  for (let at = 0; ; ) {
    const code = at < text.length ? (text.codePointAt(at) ?? 0) : -1;
    if (current.add(0, before, code)) return true;
    if (code < 0) return false;
    at += code > 0xffff ? 2 : 1;
    const after = at < text.length ? (text.codePointAt(at) ?? 0) : -1;
    next.clear();
    for (const index of current.waiting()) {
      const step = program[index];
      if (step?.op === 'chars' && contains(step.ranges, code) && next.add(index + 1, code, after)) return true;
    }
    [current, next] = [next, current];
    before = code;
  }
}

/** The steps that wait for a character, each at most once. */
class Threads {
  readonly #program: readonly Step[];
  readonly #seen: Uint32Array;
  #round = 1;
  #waiting: number[] = [];

  constructor(program: readonly Step[]) {
    this.#program = program;
    this.#seen = new Uint32Array(program.length);
  }

  waiting(): readonly number[] {
    return this.#waiting;
  }

  clear(): void {
    this.#round++;
    this.#waiting = [];
  }

  /** Adds a step and all that follow from it without a character. True when the match is complete. */
  add(start: number, before: number, code: number): boolean {
    const todo = [start];
    for (let index = todo.pop(); index !== undefined; index = todo.pop()) {
      if (this.#seen[index] === this.#round) continue;
      this.#seen[index] = this.#round;
      const step = this.#program[index];
      switch (step?.op) {
        case 'match':
          return true;
        case 'chars':
          this.#waiting.push(index);
          break;
        case 'split':
          todo.push(step.other, index + 1);
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
    return false;
  }
}

const NEWLINE = 10;
const NOTHING = -1;

function holds(what: Assertion, before: number, code: number): boolean {
  switch (what) {
    case 'text-start':
      return before === NOTHING;
    case 'text-end':
      return code === NOTHING;
    case 'line-start':
      return before === NOTHING || before === NEWLINE;
    case 'line-end':
      return code === NOTHING || code === NEWLINE;
    case 'word-boundary':
      return isWord(before) !== isWord(code);
    case 'no-word-boundary':
      return isWord(before) === isWord(code);
  }
}

const WORD = CLASSES['w'] ?? [];

function isWord(code: number): boolean {
  return contains(WORD, code);
}
