import { CLASSES, negated, POSIX_CLASSES, type Ranges } from './ranges.ts';

/** A regular expression in the RE2 language, as a tree. */
export type Node =
  | { readonly kind: 'chars'; readonly ranges: Ranges }
  | { readonly kind: 'sequence'; readonly parts: readonly Node[] }
  | { readonly kind: 'choice'; readonly parts: readonly Node[] }
  | { readonly kind: 'repeat'; readonly part: Node; readonly min: number; readonly max: number }
  | { readonly kind: 'assert'; readonly what: Assertion };

export type Assertion = 'text-start' | 'text-end' | 'line-start' | 'line-end' | 'word-boundary' | 'no-word-boundary';

/** RE2's own limit for `{n,m}`. */
const MAX_REPEAT = 1000;
const MAX_NESTING = 100;

const ANY: Ranges = [[0, 0x10ffff]];
const ANY_BUT_NEWLINE = negated([[10, 10]]);
const LAST_CODE_POINT = 0x10ffff;

interface Flags {
  readonly ignoreCase: boolean;
  readonly multiLine: boolean;
  readonly dotAll: boolean;
}

/** Reads a pattern; throws `SyntaxError` for what RE2 does not have either, such as backreferences and look-around. */
export function parse(source: string): Node {
  const parser = new Parser(source);
  const node = parser.choice({ ignoreCase: false, multiLine: false, dotAll: false }, 0);
  if (!parser.atEnd()) throw new SyntaxError('unexpected )');
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
    while (!this.atEnd() && this.#peek() !== ')') {
      if (this.#accept('|')) {
        parts.push({ kind: 'sequence', parts: sequence });
        sequence = [];
        continue;
      }
      const changed = this.#flagGroup(current);
      if (changed !== undefined) {
        current = changed;
        continue;
      }
      sequence.push(this.#quantified(this.#atom(current, depth)));
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
        return { kind: 'chars', ranges: folded(this.#charClass(), flags) };
      case '(':
        return this.#group(flags, depth);
      case '\\':
        return this.#escape(flags);
      case '*':
      case '+':
      case '?':
        throw new SyntaxError(`missing argument to repetition operator: ${char}`);
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
      case 'Q':
        return this.#quoted(flags);
      default: {
        const ranges = this.#namedClass(char);
        if (ranges !== undefined) return { kind: 'chars', ranges };
        return literal(this.#escapedChar(char), flags);
      }
    }
  }

  #quoted(flags: Flags): Node {
    const parts: Node[] = [];
    while (!this.atEnd()) {
      if (this.#rest(2) === '\\E') {
        this.#at += 2;
        break;
      }
      parts.push(literal(this.#next(), flags));
    }
    return { kind: 'sequence', parts };
  }

  #namedClass(char: string): Ranges | undefined {
    const known = CLASSES[char];
    if (known !== undefined) return known;
    if (char === 'p' || char === 'P') throw new SyntaxError(`unicode classes are not supported: \\${char}`);
    return undefined;
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
    if (/[A-Za-z0-9]/.test(char)) throw new SyntaxError(`invalid escape sequence: \\${char}`);
    return char;
  }

  #charClass(): Ranges {
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
      const from = this.#classMember();
      if (typeof from !== 'string') {
        ranges.push(...from);
        continue;
      }
      let to = from;
      if (this.#peek() === '-' && this.#chars[this.#at + 1] !== ']' && this.#at + 1 < this.#chars.length) {
        this.#at++;
        const end = this.#classMember();
        if (typeof end !== 'string') throw new SyntaxError('invalid character class range');
        to = end;
      }
      const [low, high] = [codeOf(from), codeOf(to)];
      if (low > high) throw new SyntaxError(`invalid character class range: ${from}-${to}`);
      ranges.push([low, high]);
    }
    this.#at++;
    return negate ? negated(ranges) : ranges;
  }

  #classMember(): string | Ranges {
    const char = this.#next();
    if (char !== '\\') return char;
    const escaped = this.#next();
    return this.#namedClass(escaped) ?? this.#escapedChar(escaped);
  }

  #quantified(atom: Node): Node {
    let node = atom;
    for (let times = 0; ; times++) {
      const bounds = this.#quantifier();
      if (bounds === undefined) return node;
      if (times > 0) throw new SyntaxError('invalid nested repetition operator');
      this.#accept('?');
      node = { kind: 'repeat', part: node, min: bounds[0], max: bounds[1] };
    }
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
  };
}

function literal(char: string, flags: Flags): Node {
  const code = codeOf(char);
  return { kind: 'chars', ranges: folded([[code, code]], flags) };
}

/** Adds the other case of ASCII letters, which is all that patterns for names and addresses need. */
function folded(ranges: Ranges, flags: Flags): Ranges {
  if (!flags.ignoreCase) return ranges;
  const more: (readonly [number, number])[] = [...ranges];
  for (const [low, high] of ranges) {
    for (const [from, to, shift] of [
      [65, 90, 32],
      [97, 122, -32],
    ] as const) {
      const [start, end] = [Math.max(low, from), Math.min(high, to)];
      if (start <= end) more.push([start + shift, end + shift]);
    }
  }
  return more;
}

function codeOf(char: string): number {
  return char.codePointAt(0) ?? 0;
}
