/** A token of the Common Expression Language. */
export type Token =
  | { readonly kind: 'int'; readonly value: bigint; readonly at: number }
  | { readonly kind: 'double'; readonly value: number; readonly at: number }
  | { readonly kind: 'string'; readonly value: string; readonly at: number }
  | { readonly kind: 'name' | 'sign' | 'end'; readonly value: string; readonly at: number };

/** As on the real server. */
export const LONGEST_EXPRESSION = 100_000;

const SPACE = /(?:[ \t\r\n\f]|\/\/[^\n]*)+/y;
const DOUBLE = /(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+|\.\d+(?:[eE][+-]?\d+)?)/y;
const INT = /(?:0[xX][0-9a-fA-F]+|\d+)[uU]?/y;
/** Bytes are read as the text they spell. */
const STRING = /(?:[bB]?([rR])|[bB])?("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')/y;
const NAME = /[A-Za-z_]\w*/y;
const SIGN = /&&|\|\||==|!=|<=|>=|[-+*/%<>!?:.,()[\]{}]/y;

/** Cuts an expression into tokens; throws `SyntaxError` where it cannot. */
export function tokensOf(source: string): Token[] {
  if (source.length > LONGEST_EXPRESSION)
    throw new SyntaxError(`expression is longer than ${LONGEST_EXPRESSION} characters`);
  const tokens: Token[] = [];
  let at = 0;
  const take = (pattern: RegExp): RegExpExecArray | undefined => {
    pattern.lastIndex = at;
    const match = pattern.exec(source);
    if (match === null) return undefined;
    at += match[0].length;
    return match;
  };
  for (;;) {
    take(SPACE);
    const start = at;
    if (at >= source.length) {
      tokens.push({ kind: 'end', value: '', at });
      return tokens;
    }
    let match: RegExpExecArray | undefined;
    if ((match = take(STRING)) !== undefined) {
      tokens.push({ kind: 'string', value: textOf(match[2] ?? '', match[1] !== undefined), at: start });
    } else if ((match = take(DOUBLE)) !== undefined) {
      tokens.push({ kind: 'double', value: Number(match[0]), at: start });
    } else if ((match = take(INT)) !== undefined) {
      tokens.push({ kind: 'int', value: BigInt(match[0].replace(/[uU]$/, '')), at: start });
    } else if ((match = take(NAME)) !== undefined) {
      tokens.push({ kind: 'name', value: match[0], at: start });
    } else if ((match = take(SIGN)) !== undefined) {
      tokens.push({ kind: 'sign', value: match[0], at: start });
    } else {
      throw new SyntaxError(`token recognition error at: '${source.slice(at, at + 1)}'`);
    }
  }
}

function textOf(quoted: string, raw: boolean): string {
  const quotes = /^("""|''')/.test(quoted) ? 3 : 1;
  const text = quoted.slice(quotes, -quotes);
  if (raw) return text;
  return text.replaceAll(
    /\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|([\s\S]))/g,
    unescape,
  );
}

const ESCAPES: Readonly<Record<string, string>> = {
  a: '\x07',
  b: '\b',
  f: '\f',
  n: '\n',
  r: '\r',
  t: '\t',
  v: '\v',
  '\\': '\\',
  '?': '?',
  '"': '"',
  "'": "'",
  '`': '`',
};

function unescape(all: string, x?: string, u?: string, U?: string, octal?: string, char?: string): string {
  const hex = x ?? u ?? U;
  if (hex !== undefined) return codePoint(Number.parseInt(hex, 16));
  if (octal !== undefined) return codePoint(Number.parseInt(octal, 8));
  const known = ESCAPES[char ?? ''];
  if (known === undefined) throw new SyntaxError(`invalid escape sequence: ${all}`);
  return known;
}

function codePoint(code: number): string {
  if (code > 0x10ffff) throw new SyntaxError('invalid escape sequence');
  return String.fromCodePoint(code);
}
