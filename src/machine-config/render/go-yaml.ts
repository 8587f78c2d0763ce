import { BREAK, styleOf, UNPRINTABLE } from './yaml-style.ts';

/**
 * A JSON value as the YAML that 4.16 makes of it (Go's yaml.v2 after its JSON): members sorted, two blanks a level, lists at the
 * level of their member, lines broken after 80 characters. Names of rendered configs are hashes of such text, so every byte counts
 * (spec 50, RN-14).
 */
export function goYaml(value: unknown): string {
  const writer = new Writer();
  writer.node(value, { indent: -INDENT, isInMapping: false });
  writer.newLine(0);
  return writer.text();
}

const INDENT = 2;
const WIDTH = 80;

interface Place {
  /** The column of what surrounds the node. */
  readonly indent: number;
  readonly isInMapping: boolean;
}

class Writer {
  readonly #parts: string[] = [];
  #column = 0;
  /** Whether nothing but blanks and dashes is in this line so far. */
  #isAtIndent = true;
  /** Whether a blank is needed before the next token. */
  #needsBlank = false;

  text(): string {
    return this.#parts.join('');
  }

  node(value: unknown, place: Place): void {
    if (Array.isArray(value) && value.length > 0) this.#list(value, place);
    else if (typeof value === 'object' && value !== null && !Array.isArray(value)) this.#mapping(value, place);
    else if (typeof value === 'string') this.#string(asYamlReadsJson(value), place.indent + INDENT);
    else this.#token(Array.isArray(value) ? '[]' : String(value));
  }

  #mapping(value: object, { indent }: Place): void {
    const members = Object.entries(value).filter(([, member]) => member !== undefined);
    if (members.length === 0) return this.#token('{}');
    const inner = indent + INDENT;
    for (const [name, member] of members.sort(([a], [b]) => (a < b ? -1 : 1))) {
      this.newLine(inner);
      this.#write(`${name}:`);
      this.#isAtIndent = false;
      this.#needsBlank = true;
      this.node(member, { indent: inner, isInMapping: true });
    }
  }

  #list(items: readonly unknown[], { indent, isInMapping }: Place): void {
    const inner = isInMapping ? indent : indent + INDENT;
    for (const item of items) {
      this.newLine(inner);
      this.#write('-');
      this.#needsBlank = true;
      this.node(item, { indent: inner, isInMapping: false });
    }
  }

  /** Goes on at that column, in a new line unless this one is still blank up to there. */
  newLine(indent: number): void {
    if (!this.#isAtIndent || this.#column > indent || (this.#column === indent && this.#needsBlank)) this.#break();
    if (this.#column < indent) this.#write(' '.repeat(indent - this.#column));
    this.#needsBlank = false;
    this.#isAtIndent = true;
  }

  #string(text: string, indent: number): void {
    switch (styleOf(text)) {
      case 'plain':
        return this.#plain(text, indent);
      case 'single':
        return this.#quoted(text, indent);
      case 'double':
        return this.#escaped(text, indent);
      default:
        return this.#literal(text, indent);
    }
  }

  #token(text: string): void {
    this.#begin(text);
    this.#end('');
  }

  #plain(text: string, indent: number): void {
    this.#begin('');
    this.#words(text, indent, index => text[index + 1] !== ' ');
    this.#end('');
  }

  #quoted(text: string, indent: number): void {
    this.#begin("'");
    const isBreakable = (index: number) => index > 0 && index < text.length - 1 && text[index + 1] !== ' ';
    this.#words(text, indent, isBreakable, part => part.replaceAll("'", "''"));
    this.#end("'");
  }

  /** Writes text that may be broken at single blanks. Line and paragraph separators are breaks of their own. */
  #words(
    text: string,
    indent: number,
    isBreakable: (index: number) => boolean,
    written: (part: string) => string = part => part,
  ): void {
    let [start, isAfterBlank, isAfterBreak] = [0, false, false];
    const flush = (end: number) => {
      this.#write(written(text.slice(start, end)));
      start = end;
    };
    for (let at = 0; at < text.length; at++) {
      const character = text[at];
      if (character === ' ') {
        flush(at);
        if (!isAfterBlank && this.#column > WIDTH && isBreakable(at)) {
          this.newLine(indent);
          start = at + 1;
        }
        flush(at + 1);
        isAfterBlank = true;
      } else if (character === '\u2028' || character === '\u2029') {
        flush(at + 1);
        this.#column = 0;
        this.#isAtIndent = true;
        isAfterBreak = true;
      } else {
        if (isAfterBreak) {
          flush(at);
          this.newLine(indent);
        }
        this.#isAtIndent = false;
        [isAfterBlank, isAfterBreak] = [false, false];
      }
    }
    flush(text.length);
  }

  #escaped(text: string, indent: number): void {
    this.#begin('"');
    const characters = Array.from(text);
    const isAllEscaped = text.startsWith(BYTE_ORDER_MARK);
    let isAfterBlank = false;
    for (const [index, character] of characters.entries()) {
      if (character !== ' ' || isAllEscaped) {
        this.#write(isAllEscaped || isEscaped(character) ? escape(character) : character);
        isAfterBlank = false;
        continue;
      }
      if (!isAfterBlank && this.#column > WIDTH && index > 0 && index < characters.length - 1) {
        this.newLine(indent);
        if (characters[index + 1] === ' ') this.#write('\\');
      } else {
        this.#write(' ');
      }
      isAfterBlank = true;
    }
    this.#end('"');
  }

  #literal(text: string, indent: number): void {
    const hint = /^[ \n\u2028\u2029]/.test(text) ? String(INDENT) : '';
    const end = /(?:^|[\n\u2028\u2029])[\n\u2028\u2029]$/.test(text) ? '+' : /[\n\u2028\u2029]$/.test(text) ? '' : '-';
    this.#begin(`|${hint}${end}`);
    this.#break();
    this.#isAtIndent = true;
    for (const [line, separator] of linesOf(text)) {
      if (line !== '') {
        this.newLine(indent);
        this.#write(line);
        this.#isAtIndent = false;
      }
      if (separator === '') continue;
      this.#write(separator);
      this.#column = 0;
      this.#isAtIndent = true;
    }
  }

  #begin(token: string): void {
    this.#write(this.#needsBlank ? ` ${token}` : token);
    this.#needsBlank = false;
    this.#isAtIndent = false;
  }

  #end(token: string): void {
    this.#write(token);
    this.#needsBlank = true;
    this.#isAtIndent = false;
  }

  #break(): void {
    this.#parts.push('\n');
    this.#column = 0;
  }

  #write(text: string): void {
    this.#parts.push(text);
    this.#column += characterCount(text);
  }
}

function characterCount(text: string): number {
  // oxlint-disable-next-line no-control-regex -- ASCII begins with them
  return /^[\x00-\x7f]*$/.test(text) ? text.length : Array.from(text).length;
}

function* linesOf(text: string): Generator<readonly [line: string, separator: string]> {
  for (const [, line = '', separator = ''] of text.matchAll(/([^\n\u2028\u2029]*)([\n\u2028\u2029]?)/g))
    if (line !== '' || separator !== '') yield [line, separator];
}

/** JSON goes through a YAML reader, to which a NEXT LINE inside of quotes is a line break that is folded. */
function asYamlReadsJson(text: string): string {
  const wellFormed = text.toWellFormed();
  if (!wellFormed.includes('\u0085')) return wellFormed;
  return wellFormed.replace(/ *\u0085[ \u0085]*/g, found => {
    const breaks = found.replaceAll(' ', '').length;
    return breaks === 1 ? ' ' : '\n'.repeat(breaks - 1);
  });
}

/** Text that begins with it has every character escaped. */
const BYTE_ORDER_MARK = '\ufeff';

function isEscaped(character: string): boolean {
  return character === '"' || character === '\\' || UNPRINTABLE.test(character) || BREAK.test(character);
}

const SHORT_ESCAPES: Readonly<Record<number, string>> = {
  0x00: '0',
  0x07: 'a',
  0x08: 'b',
  0x09: 't',
  0x0a: 'n',
  0x0b: 'v',
  0x0c: 'f',
  0x0d: 'r',
  0x1b: 'e',
  0x22: '"',
  0x5c: '\\',
  0x85: 'N',
  0xa0: '_',
  0x2028: 'L',
  0x2029: 'P',
};

function escape(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  const short = SHORT_ESCAPES[code];
  if (short !== undefined) return `\\${short}`;
  const [letter, digits] =
    code <= 0xff ? (['x', 2] as const) : code <= 0xffff ? (['u', 4] as const) : (['U', 8] as const);
  return `\\${letter}${code.toString(16).toUpperCase().padStart(digits, '0')}`;
}
