import { UsageError } from '../usage-error.ts';

/**
 * kubectl's JSONPath templates: texts with `{...}` in between. Inside: paths (`.a.b`, `['a.b']`, `[0]`, `[-1]`, `[0:2]`, `[0:9:2]`,
 * `[0,2]`, `[*]`, `..a`, `[?(@.a=="b")]`), quoted texts, and `range ... end`.
 */
export type Template = readonly Part[];

type Part =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'path'; readonly path: Path }
  | { readonly kind: 'range'; readonly path: Path; readonly body: Template };

type Path = readonly Step[];

type Step =
  | { readonly kind: 'root' }
  | { readonly kind: 'field'; readonly name: string }
  | { readonly kind: 'every' }
  | { readonly kind: 'descend' }
  | { readonly kind: 'index'; readonly index: number }
  | {
      readonly kind: 'slice';
      readonly from?: number | undefined;
      readonly to?: number | undefined;
      readonly by?: number | undefined;
    }
  | { readonly kind: 'union'; readonly steps: readonly Step[] }
  | { readonly kind: 'filter'; readonly left: Path; readonly test?: { operator: string; value: Scalar | Path } };

type Scalar = string | number | boolean | null;

const LONGEST_TEMPLATE = 10_000;

/** Reads a template; throws `UsageError` saying where it is wrong. */
export function parseJsonPath(text: string): Template {
  if (text.length > LONGEST_TEMPLATE) throw new UsageError(`a jsonpath has at most ${LONGEST_TEMPLATE} characters`);
  // kubectl takes a bare path too.
  const template = text.includes('{') ? text : `{${text.startsWith('.') || text.startsWith('$') ? '' : '.'}${text}}`;
  const reader = new Reader(template);
  const parts = reader.template(false);
  return parts;
}

/** The text a template gives for a document. Where a path finds several values, blanks stand between them. */
export function evaluateJsonPath(template: Template, document: unknown): string {
  return template.map(part => evaluatePart(part, document, document)).join('');
}

/** Everything the paths of a template find in a document. */
export function jsonPathValues(template: Template, document: unknown): unknown[] {
  return template.flatMap(part => (part.kind === 'path' ? walk(part.path, document, document) : []));
}

function evaluatePart(part: Part, root: unknown, current: unknown): string {
  switch (part.kind) {
    case 'text':
      return part.text;
    case 'path':
      return walk(part.path, root, current).map(textOf).join(' ');
    case 'range':
      return walk(part.path, root, current)
        .map(item => part.body.map(inner => evaluatePart(inner, root, item)).join(''))
        .join('');
  }
}

/** A value as it stands in the output: texts as they are, all else as JSON. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function walk(path: Path, root: unknown, current: unknown): unknown[] {
  let found: unknown[] = [current];
  for (const step of path) found = found.flatMap(value => apply(step, value, root));
  return found;
}

function apply(step: Step, value: unknown, root: unknown): unknown[] {
  switch (step.kind) {
    case 'root':
      return [root];
    case 'field':
      return isRecord(value) && Object.hasOwn(value, step.name) ? [value[step.name]] : [];
    case 'every':
      return childrenOf(value);
    case 'descend':
      return descendants(value);
    case 'index':
      return Array.isArray(value) ? value.slice(step.index, step.index === -1 ? undefined : step.index + 1) : [];
    case 'slice':
      return Array.isArray(value)
        ? value.slice(step.from, step.to).filter((_, index) => index % (step.by ?? 1) === 0)
        : [];
    case 'union':
      return step.steps.flatMap(inner => apply(inner, value, root));
    case 'filter':
      return childrenOf(value).filter(child => passes(step, root, child));
  }
}

function passes({ left, test }: Extract<Step, { kind: 'filter' }>, root: unknown, child: unknown): boolean {
  const found = walk(left, root, child);
  if (test === undefined) return found.length > 0;
  const wanted = Array.isArray(test.value) ? walk(test.value as Path, root, child)[0] : test.value;
  return found.some(value => compare(value, test.operator, wanted));
}

function compare(a: unknown, operator: string, b: unknown): boolean {
  switch (operator) {
    case '==':
      return a === b;
    case '!=':
      return a !== b;
    default: {
      if (typeof a !== typeof b || (typeof a !== 'number' && typeof a !== 'string')) return false;
      const order = a < (b as typeof a) ? -1 : a > (b as typeof a) ? 1 : 0;
      return operator === '<' ? order < 0 : operator === '<=' ? order <= 0 : operator === '>' ? order > 0 : order >= 0;
    }
  }
}

function childrenOf(value: unknown): unknown[] {
  if (Array.isArray(value)) return value;
  return isRecord(value) ? Object.values(value) : [];
}

function descendants(value: unknown): unknown[] {
  return [value, ...childrenOf(value).flatMap(descendants)];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const OPERATORS = ['==', '!=', '<=', '>=', '<', '>'] as const;

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  /** Parts up to the end of the text, or up to `{end}`. */
  template(inRange: boolean): Part[] {
    const parts: Part[] = [];
    while (this.#at < this.#text.length) {
      const open = this.#text.indexOf('{', this.#at);
      if (open !== this.#at) {
        parts.push({ kind: 'text', text: this.#text.slice(this.#at, open < 0 ? undefined : open) });
        this.#at = open < 0 ? this.#text.length : open;
        continue;
      }
      this.#at++;
      this.#blanks();
      if (this.#takeWord('end')) {
        this.#close();
        if (!inRange) this.#fail('{end} without {range}');
        return parts;
      }
      if (this.#takeWord('range')) {
        this.#blanks();
        const path = this.#path();
        this.#close();
        parts.push({ kind: 'range', path, body: this.template(true) });
      } else if (this.#peek() === '"' || this.#peek() === "'") {
        parts.push({ kind: 'text', text: this.#quoted() });
        this.#close();
      } else {
        parts.push({ kind: 'path', path: this.#path() });
        this.#close();
      }
    }
    if (inRange) this.#fail('{range} without {end}');
    return parts;
  }

  #path(): Step[] {
    const steps: Step[] = [];
    for (;;) {
      const next = this.#peek();
      if (next === '$') {
        this.#at++;
        steps.push({ kind: 'root' });
      } else if (next === '@') {
        this.#at++;
      } else if (next === '.') {
        this.#at++;
        if (this.#peek() === '.') {
          this.#at++;
          steps.push({ kind: 'descend' });
        }
        if (this.#peek() === '*') {
          this.#at++;
          steps.push({ kind: 'every' });
        } else if (/[^[\s})\]=!<>.]/.test(this.#peek())) steps.push({ kind: 'field', name: this.#name() });
      } else if (next === '[') {
        steps.push(this.#bracket());
      } else {
        return steps;
      }
    }
  }

  #name(): string {
    let name = '';
    while (this.#at < this.#text.length && !/[.[\]{}()\s=!<>]/.test(this.#peek())) {
      if (this.#peek() === '\\') this.#at++;
      name += this.#peek();
      this.#at++;
    }
    if (name === '') this.#fail('a field name was expected');
    return name;
  }

  #bracket(): Step {
    this.#at++;
    this.#blanks();
    if (this.#takeText('?(')) return this.#filter();
    const steps = [this.#choice()];
    this.#blanks();
    while (this.#takeText(',')) {
      this.#blanks();
      steps.push(this.#choice());
      this.#blanks();
    }
    const [only, ...others] = steps;
    return this.#closeBracket(only !== undefined && others.length === 0 ? only : { kind: 'union', steps });
  }

  /** One of what may stand between the commas of a bracket. */
  #choice(): Step {
    if (this.#takeText('*')) return { kind: 'every' };
    if (this.#peek() === "'" || this.#peek() === '"') return { kind: 'field', name: this.#quoted() };
    const [whole, from, rest, to, by] = /^(-?\d+)?(:(-?\d+)?(?::(-?\d+)?)?)?/.exec(
      this.#text.slice(this.#at),
    ) as RegExpExecArray;
    if (whole === '') this.#fail('expected an index, a quoted name, * or ?( after [');
    const number = (text: string | undefined) => (text === undefined ? undefined : Number(text));
    if (by !== undefined && Number(by) <= 0) this.#fail(`a step must be above 0, found ${by}`);
    this.#at += whole.length;
    if (rest === undefined) return { kind: 'index', index: Number(from) };
    return { kind: 'slice', from: number(from), to: number(to), by: number(by) };
  }

  #filter(): Step {
    this.#blanks();
    const left = this.#path();
    this.#blanks();
    const operator = OPERATORS.find(candidate => this.#takeText(candidate));
    this.#blanks();
    const test = operator === undefined ? undefined : { operator, value: this.#operand() };
    this.#blanks();
    if (!this.#takeText(')')) this.#fail('expected ) at the end of a filter');
    return this.#closeBracket({ kind: 'filter', left, ...(test === undefined ? {} : { test }) });
  }

  #operand(): Scalar | Path {
    if (this.#peek() === '@' || this.#peek() === '$') return this.#path();
    if (this.#peek() === '"' || this.#peek() === "'") return this.#quoted();
    const [word = ''] = /^[^\s)]+/.exec(this.#text.slice(this.#at)) ?? [];
    this.#at += word.length;
    try {
      return JSON.parse(word) as Scalar;
    } catch {
      return this.#fail(`expected a quoted text, a number, true, false or null, found "${word}"`);
    }
  }

  #quoted(): string {
    const quote = this.#peek();
    if (quote !== '"' && quote !== "'") this.#fail('expected a quoted text');
    let text = '';
    for (this.#at++; this.#at < this.#text.length; this.#at++) {
      const character = this.#peek();
      if (character === quote) {
        this.#at++;
        return text;
      }
      if (character !== '\\') text += character;
      else {
        this.#at++;
        const escaped = this.#peek();
        text += escaped === 'n' ? '\n' : escaped === 't' ? '\t' : escaped;
      }
    }
    return this.#fail('a quoted text has no end');
  }

  #closeBracket(step: Step): Step {
    this.#blanks();
    if (!this.#takeText(']')) this.#fail('expected ]');
    return step;
  }

  #close(): void {
    this.#blanks();
    if (!this.#takeText('}')) this.#fail('expected }');
  }

  #blanks(): void {
    while (this.#peek() === ' ') this.#at++;
  }

  #peek(): string {
    return this.#text[this.#at] ?? '';
  }

  #takeText(text: string): boolean {
    if (!this.#text.startsWith(text, this.#at)) return false;
    this.#at += text.length;
    return true;
  }

  #takeWord(word: string): boolean {
    return new RegExp(`^${word}(?=[\\s}])`).test(this.#text.slice(this.#at)) && this.#takeText(word);
  }

  #fail(what: string): never {
    throw new UsageError(`the jsonpath is wrong at character ${this.#at + 1}: ${what}`);
  }
}
