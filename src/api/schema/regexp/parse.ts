import { CLASSES, LAST_CODE_POINT, negated, ordered, POSIX_CLASSES, type Ranges } from './ranges.ts';
import { unicodeClass, withOtherCases } from './unicode.ts';

/** A regular expression in the RE2 language, as a tree. */
export type Node =
  | { readonly kind: 'chars'; readonly ranges: Ranges }
  | { readonly kind: 'sequence'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly parts: readonly Node[] }
  | { readonly kind: 'repeat'; readonly part: Node; readonly min: number; readonly max: number; readonly lazy: boolean }
  | { readonly kind: 'assert'; readonly what: Assertion };

export type Assertion = 'text-start' | 'text-end' | 'line-start' | 'line-end' | 'word-boundary' | 'no-word-boundary';

/** Limits of Go's: `{n,m}`, alone or inside each other, and groups inside groups. */
const MAX_REPEAT = 1000;
const MAX_NESTING = 1000;

const ANY: Ranges = [[0, LAST_CODE_POINT]];
const ANY_BUT_NEWLINE = negated([[10, 10]]);

interface Flags {
  readonly ignoreCase: boolean;
  readonly multiLine: boolean;
  readonly dotAll: boolean;
  /** `U`: repetition is lazy, and greedy with a `?` behind it. */
  readonly lazy: boolean;
}

/** Reads a pattern; throws `SyntaxError` for what RE2 does not have either, such as backreferences and look-around. */
export function parse(source: string): Node {
  const parser = new Parser(source);
  const node = parser.choice({ ignoreCase: false, multiLine: false, dotAll: false, lazy: false }, 0);
  if (!parser.atEnd()) throw new SyntaxError('unexpected )');
  if (repeats(node) > MAX_REPEAT) throw new SyntaxError('invalid repeat count');
  return node;
}

class Parser {
  readonly #chars: readonly string[];
  #at = 0;

  constructor(source: string) {
    this.#chars = Array.from(source);
  }

  atEnd(): boolean {
    return this.#at >= this.#chars.length;
  }

  choice(flags: Flags, depth: number): Node {
    if (depth > MAX_NESTING) throw new SyntaxError('expression nests too deeply');
    const parts: Node[] = [];
    let current = flags;
    let sequence: Node[] = [];
    let repeated = false;
    while (!this.atEnd() && this.#peek() !== ')') {
      const bounds = this.#quantifier();
      if (bounds !== undefined) {
        if (repeated) throw new SyntaxError('invalid nested repetition operator');
        const part = sequence.pop();
        if (part === undefined) throw new SyntaxError('missing argument to repetition operator');
        const lazy = this.#accept('?') !== current.lazy;
        sequence.push({ kind: 'repeat', part, min: bounds[0], max: bounds[1], lazy });
        repeated = true;
        continue;
      }
      repeated = false;
      if (this.#accept('|')) {
        parts.push({ kind: 'sequence', parts: sequence });
        sequence = [];
        continue;
      }
      const changed = this.#flagGroup(current);
      if (changed !== undefined) current = changed;
      else for (const part of this.#quoted(current) ?? [this.#atom(current, depth)]) sequence.push(part);
    }
    parts.push({ kind: 'sequence', parts: sequence });
    return parts.length === 1 ? (parts[0] as Node) : { kind: 'choice', parts };
  }

  /** `(?i)` changes the rest of the group it stands in. */
  #flagGroup(flags: Flags): Flags | undefined {
    const match = /^\(\?([imsU]*)(?:-([imsU]+))?\)/.exec(this.#rest(12));
    if (match === null) return undefined;
    this.#at += match[0].length;
    return withFlags(flags, match[1] ?? '', match[2] ?? '');
  }

  #atom(flags: Flags, depth: number): Node {
    const char = this.#next();
    switch (char) {
      case '.':
        return { kind: 'chars', ranges: flags.dotAll ? ANY : ANY_BUT_NEWLINE };
      case '^':
        return { kind: 'assert', what: flags.multiLine ? 'line-start' : 'text-start' };
      case '$':
        return { kind: 'assert', what: flags.multiLine ? 'line-end' : 'text-end' };
      case '[':
        return { kind: 'chars', ranges: this.#charClass(flags) };
      case '(':
        return this.#group(flags, depth);
      case '\\':
        return this.#escape(flags);
      default:
        return literal(char, flags);
    }
  }

  #group(flags: Flags, depth: number): Node {
    let inner = flags;
    if (this.#accept('?')) {
      const match = /^(?:P?<\w+>|([imsU]*)(?:-([imsU]+))?:)/.exec(this.#rest(80));
      if (match === null) throw new SyntaxError(`invalid or unsupported Perl syntax: (?${this.#peek() ?? ''}`);
      this.#at += match[0].length;
      inner = withFlags(flags, match[1] ?? '', match[2] ?? '');
    }
    const node = this.choice(inner, depth + 1);
    if (!this.#accept(')')) throw new SyntaxError('missing closing )');
    return node;
  }

  #escape(flags: Flags): Node {
    const char = this.#next();
    switch (char) {
      case 'A':
        return { kind: 'assert', what: 'text-start' };
      case 'z':
        return { kind: 'assert', what: 'text-end' };
      case 'b':
        return { kind: 'assert', what: 'word-boundary' };
      case 'B':
        return { kind: 'assert', what: 'no-word-boundary' };
      default: {
        const ranges = this.#namedClass(char, flags);
        if (ranges !== undefined) return { kind: 'chars', ranges };
        return literal(this.#escapedChar(char), flags);
      }
    }
  }

  /** `\Q...\E`: every character stands for itself. */
  #quoted(flags: Flags): Node[] | undefined {
    if (this.#rest(2) !== '\\Q') return undefined;
    this.#at += 2;
    const parts: Node[] = [];
    while (!this.atEnd() && this.#rest(2) !== '\\E') parts.push(literal(this.#next(), flags));
    this.#at += 2;
    return parts;
  }

  #namedClass(char: string, flags: Flags): Ranges | undefined {
    if (char !== 'p' && char !== 'P') return CLASSES[char];
    const match = /^(?:\{(\^?)([^}]*)\}|()([^{]))/u.exec(this.#rest(64));
    const ranges = unicodeClass(match?.[2] ?? match?.[4] ?? '');
    if (match === null || ranges === undefined) {
      throw new SyntaxError(`invalid character class range: \\${char}${match?.[0] ?? ''}`);
    }
    this.#at += Array.from(match[0]).length;
    const all = folded(ranges, flags);
    return (char === 'P') === (match[1] === '^') ? all : negated(all);
  }

  #escapedChar(char: string): string {
    const control = CONTROLS[char];
    if (control !== undefined) return control;
    if (char === 'x') {
      const match = /^(?:\{([0-9a-fA-F]{1,6})\}|([0-9a-fA-F]{2}))/.exec(this.#rest(8));
      const code = Number.parseInt(match?.[1] ?? match?.[2] ?? '', 16);
      if (match === null || code > LAST_CODE_POINT) throw new SyntaxError('invalid escape sequence: \\x');
      this.#at += match[0].length;
      return String.fromCodePoint(code);
    }
    const octal = /^(?:0[0-7]{0,2}|[1-7][0-7]{1,2})/.exec(char + this.#rest(2));
    if (octal !== null) {
      this.#at += octal[0].length - 1;
      return String.fromCodePoint(Number.parseInt(octal[0], 8));
    }
    if (char > '\x7f' || /[A-Za-z0-9]/.test(char)) throw new SyntaxError(`invalid escape sequence: \\${char}`);
    return char;
  }

  #charClass(flags: Flags): Ranges {
    const negate = this.#accept('^');
    const ranges: (readonly [number, number])[] = [];
    let first = true;
    while (first || this.#peek() !== ']') {
      if (this.atEnd()) throw new SyntaxError('missing closing ]');
      first = false;
      const posix = /^\[:(\^?)(\w+):\]/.exec(this.#rest(16));
      if (posix !== null) {
        const named = POSIX_CLASSES[posix[2] ?? ''];
        if (named === undefined) throw new SyntaxError(`invalid character class range: ${posix[0]}`);
        ranges.push(...(posix[1] === '^' ? negated(named) : named));
        this.#at += posix[0].length;
        continue;
      }
      const from = this.#classMember(flags);
      if (typeof from !== 'string') {
        ranges.push(...from);
        continue;
      }
      let to = from;
      if (this.#peek() === '-' && this.#chars[this.#at + 1] !== ']' && this.#at + 1 < this.#chars.length) {
        this.#at++;
        const end = this.#classMember(flags);
        if (typeof end !== 'string') throw new SyntaxError('invalid character class range');
        to = end;
      }
      const [low, high] = [codeOf(from), codeOf(to)];
      if (low > high) throw new SyntaxError(`invalid character class range: ${from}-${to}`);
      ranges.push([low, high]);
    }
    this.#at++;
    const all = folded(ranges, flags);
    return negate ? negated(all) : all;
  }

  #classMember(flags: Flags): string | Ranges {
    const char = this.#next();
    if (char !== '\\') return char;
    const escaped = this.#next();
    return this.#namedClass(escaped, flags) ?? this.#escapedChar(escaped);
  }

  #quantifier(): [number, number] | undefined {
    if (this.#accept('*')) return [0, Infinity];
    if (this.#accept('+')) return [1, Infinity];
    if (this.#accept('?')) return [0, 1];
    const match = /^\{(\d{1,5})(,?)(\d{0,5})\}/.exec(this.#rest(16));
    if (match === null || (match[2] === '' && match[3] !== '')) return undefined;
    this.#at += match[0].length;
    const min = Number(match[1]);
    const max = match[2] === '' ? min : match[3] === '' ? Infinity : Number(match[3]);
    if (min > MAX_REPEAT || (max !== Infinity && max > MAX_REPEAT) || max < min) {
      throw new SyntaxError(`invalid repeat count: ${match[0]}`);
    }
    return [min, max];
  }

  #peek(): string | undefined {
    return this.#chars[this.#at];
  }

  #next(): string {
    const char = this.#chars[this.#at];
    if (char === undefined) throw new SyntaxError('trailing backslash at end of expression');
    this.#at++;
    return char;
  }

  #accept(char: string): boolean {
    if (this.#chars[this.#at] !== char) return false;
    this.#at++;
    return true;
  }

  #rest(length: number): string {
    return this.#chars.slice(this.#at, this.#at + length).join('');
  }
}

const CONTROLS: Readonly<Record<string, string>> = {
  a: '\x07',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
};

function withFlags(flags: Flags, on: string, off: string): Flags {
  const value = (letter: string, before: boolean) => (on.includes(letter) || before) && !off.includes(letter);
  return {
    ignoreCase: value('i', flags.ignoreCase),
    multiLine: value('m', flags.multiLine),
    dotAll: value('s', flags.dotAll),
    lazy: value('U', flags.lazy),
  };
}

function literal(char: string, flags: Flags): Node {
  const code = codeOf(char);
  return { kind: 'chars', ranges: folded([[code, code]], flags) };
}

function folded(ranges: Ranges, flags: Flags): Ranges {
  return ordered(flags.ignoreCase ? withOtherCases(ranges) : ranges);
}

/** How often the innermost part is repeated at most, by counted repetition around it. */
function repeats(node: Node): number {
  switch (node.kind) {
    case 'sequence':
    case 'choice':
      return node.parts.reduce((most, part) => Math.max(most, repeats(part)), 1);
    case 'repeat': {
      if (node.max === 0) return 1;
      const counted = node.max === Infinity ? node.min : node.max;
      return Math.max(1, counted) * repeats(node.part);
    }
    default:
      return 1;
  }
}

function codeOf(char: string): number {
  return char.codePointAt(0) ?? 0;
}
