/** A path such as `.status.conditions[?(@.type=="Ready")].status`, parsed once. */
export type JsonPath = readonly Step[];

type Step =
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'slice'; readonly from: number | undefined; readonly to: number | undefined; readonly by: number }
  | { readonly kind: 'all' }
  | { readonly kind: 'descend' }
  | { readonly kind: 'union'; readonly members: readonly Step[] }
  | {
      readonly kind: 'filter';
      readonly left: Operand;
      readonly operator: Operator | undefined;
      readonly right: Operand;
    };

type Operator = '==' | '!=' | '<' | '<=' | '>' | '>=';
type Operand = { readonly path: JsonPath } | { readonly literal: unknown };

const MOST_RESULTS = 10_000;
const DEEPEST_FILTER = 10;

/** Thrown for a path that cannot be read. */
export class JsonPathError extends Error {
  override readonly name = 'JsonPathError';
}

/**
 * Reads the JSONPath that Kubernetes uses in printer columns: fields (`.a`, `['a']`, dots escaped by a backslash), indexes
 * and slices (`[0]`, `[-1]`, `[0:2]`), `*`, `..`, unions and filters with one comparison. Throws `JsonPathError`.
 */
export function parseJsonPath(text: string): JsonPath {
  const parser = new Parser(text);
  const path = parser.path();
  parser.end();
  return path;
}

/** Everything a path finds in a value. What is missing is no error, only not found. */
export function findJsonPath(path: JsonPath, value: unknown): unknown[] {
  let found: unknown[] = [value];
  for (const step of path) {
    const next: unknown[] = [];
    for (const item of found) {
      for (const result of follow(step, item)) {
        if (next.length >= MOST_RESULTS) return next;
        next.push(result);
      }
    }
    found = next;
  }
  return found;
}

function* follow(step: Step, value: unknown): Generator {
  switch (step.kind) {
    case 'field':
      if (isObject(value) && Object.hasOwn(value, step.name)) yield value[step.name];
      break;
    case 'slice':
      if (Array.isArray(value)) yield* slice(value, step);
      break;
    case 'all':
      if (Array.isArray(value)) yield* value;
      else if (isObject(value)) yield* Object.values(value);
      break;
    case 'descend':
      yield value;
      if (Array.isArray(value) || isObject(value)) for (const child of Object.values(value)) yield* follow(step, child);
      break;
    case 'union':
      for (const member of step.members) yield* follow(member, value);
      break;
    case 'filter':
      if (Array.isArray(value)) yield* value.filter(item => holds(step, item));
      break;
  }
}

function slice(values: readonly unknown[], { from, to, by }: Step & { kind: 'slice' }): unknown[] {
  const place = (index: number) => Math.max(0, Math.min(values.length, index < 0 ? values.length + index : index));
  const [start, end] = [place(from ?? 0), place(to ?? values.length)];
  return values.slice(start, end).filter((_, index) => index % by === 0);
}

function holds({ left, operator, right }: Step & { kind: 'filter' }, item: unknown): boolean {
  const [a, b] = [operandValue(left, item), operandValue(right, item)];
  if (operator === undefined) return a !== undefined;
  if (operator === '==') return a === b;
  if (operator === '!=') return a !== undefined && a !== b;
  const comparable =
    (typeof a === 'number' && typeof b === 'number') || (typeof a === 'string' && typeof b === 'string');
  if (!comparable) return false;
  return { '<': a < b, '<=': a <= b, '>': a > b, '>=': a >= b }[operator];
}

function operandValue(operand: Operand, item: unknown): unknown {
  return 'path' in operand ? findJsonPath(operand.path, item)[0] : operand.literal;
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

class Parser {
  readonly #text: string;
  #at = 0;
  #depth = 0;

  constructor(text: string) {
    this.#text = text;
  }

  path(): Step[] {
    const steps: Step[] = [];
    this.#match(/[$@]/y);
    for (;;) {
      if (this.#skip('..')) {
        steps.push({ kind: 'descend' });
        if (!this.#text.startsWith('[', this.#at)) steps.push(this.#dotted());
      } else if (this.#skip('.')) {
        if (!this.#text.startsWith('[', this.#at)) steps.push(this.#dotted());
      } else if (this.#skip('[')) {
        steps.push(this.#bracketed());
      } else {
        return steps;
      }
    }
  }

  end(): void {
    if (this.#at < this.#text.length) throw this.#error('expected the end of the path');
  }

  #dotted(): Step {
    if (this.#skip('*')) return { kind: 'all' };
    const [raw = ''] = this.#match(/(?:\\.|[^\s.[\]\\,$@(){}=!<>'"*?])+/y) ?? [];
    if (raw === '') throw this.#error('expected a field name');
    return { kind: 'field', name: raw.replaceAll(/\\(.)/g, '$1') };
  }

  #bracketed(): Step {
    if (this.#skip('?(')) return this.#filter();
    const members = [this.#member()];
    while (this.#skip(',')) members.push(this.#member());
    this.#expect(']');
    return members.length === 1 ? (members[0] as Step) : { kind: 'union', members };
  }

  #member(): Step {
    this.#match(/\s*/y);
    if (this.#skip('*')) return { kind: 'all' };
    const quoted = this.#quoted();
    if (quoted !== undefined) return { kind: 'field', name: quoted };
    const range = this.#match(/(-?\d{1,9})?(:(-?\d{1,9})?(?::(\d{1,9}))?)?/y);
    const [whole = '', first, colon, second, third] = range ?? [];
    if (whole === '') throw this.#error('expected an index, a slice, a name in quotes, * or a filter');
    const from = first === undefined ? undefined : Number(first);
    if (colon === undefined) return { kind: 'slice', from, to: from === -1 ? undefined : (from ?? 0) + 1, by: 1 };
    const by = third === undefined ? 1 : Number(third);
    if (by === 0) throw this.#error('expected a step above 0');
    return { kind: 'slice', from, to: second === undefined ? undefined : Number(second), by };
  }

  #filter(): Step {
    this.#depth += 1;
    if (this.#depth > DEEPEST_FILTER) throw this.#error(`expected at most ${DEEPEST_FILTER} filters inside each other`);
    const left = this.#operand();
    const [, operator] = this.#match(/\s*(==|!=|<=|>=|<|>)/y) ?? [];
    const right = operator === undefined ? { literal: undefined } : this.#operand();
    this.#match(/\s*/y);
    this.#expect(')');
    this.#expect(']');
    this.#depth -= 1;
    return { kind: 'filter', left, operator: operator as Operator | undefined, right };
  }

  #operand(): Operand {
    this.#match(/\s*/y);
    const quoted = this.#quoted();
    if (quoted !== undefined) return { literal: quoted };
    const [number] = this.#match(/-?\d+(?:\.\d+)?/y) ?? [];
    if (number !== undefined) return { literal: Number(number) };
    const [word] = this.#match(/true|false/y) ?? [];
    if (word !== undefined) return { literal: word === 'true' };
    if (this.#text[this.#at] !== '@') throw this.#error('expected @, a text in quotes, a number, true or false');
    return { path: this.path() };
  }

  #quoted(): string | undefined {
    const [, single, double] = this.#match(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"/y) ?? [];
    return (single ?? double)?.replaceAll(/\\(.)/g, '$1');
  }

  #match(pattern: RegExp): RegExpExecArray | undefined {
    pattern.lastIndex = this.#at;
    const match = pattern.exec(this.#text);
    if (match === null) return undefined;
    this.#at += match[0].length;
    return match;
  }

  #skip(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #expect(text: string): void {
    if (!this.#skip(text)) throw this.#error(`expected ${text}`);
  }

  #error(expected: string): JsonPathError {
    const found = this.#at < this.#text.length ? JSON.stringify(this.#text.slice(this.#at, this.#at + 20)) : 'the end';
    return new JsonPathError(`${expected}, found ${found} at ${this.#at} in ${JSON.stringify(this.#text)}`);
  }
}
