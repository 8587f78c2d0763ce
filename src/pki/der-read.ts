import { TAG } from './der-write.ts';
import { PkiError } from './error.ts';

/** One DER element: its tag, its bytes with header, its content. */
export interface Element {
  readonly tag: number;
  readonly der: Buffer;
  readonly content: Buffer;
}

/**
 * Reads DER elements one after the other. Strict where leniency would give one certificate two encodings: definite and
 * shortest lengths only, single-byte tags only. Every failure is a `PkiError` with code `DER_INVALID`.
 */
export class DerReader {
  readonly #bytes: Buffer;
  readonly #what: string;
  #at = 0;

  /** `what` names the structure in error messages. */
  constructor(bytes: Buffer, what: string) {
    this.#bytes = bytes;
    this.#what = what;
  }

  get atEnd(): boolean {
    return this.#at === this.#bytes.length;
  }

  /** The tag of the next element, undefined at the end. */
  peek(): number | undefined {
    return this.#bytes[this.#at];
  }

  /** The next element, whatever its tag. */
  any(field: string): Element {
    const bytes = this.#bytes;
    const start = this.#at;
    const tag = bytes[start];
    if (tag === undefined) throw this.#invalid(field, 'is missing');
    if ((tag & 0x1f) === 0x1f) throw this.#invalid(field, 'has a tag of more than one byte');
    const first = bytes[start + 1];
    if (first === undefined) throw this.#invalid(field, 'ends before its length');
    let length = first;
    let contentStart = start + 2;
    if (first >= 0x80) {
      const lengthBytes = first & 0x7f;
      if (lengthBytes === 0 || lengthBytes > 4) throw this.#invalid(field, 'has a length of an unsupported form');
      contentStart += lengthBytes;
      if (contentStart > bytes.length) throw this.#invalid(field, 'ends within its length');
      length = bytes.readUIntBE(start + 2, lengthBytes);
      if (length < 0x80 || bytes[start + 2] === 0) throw this.#invalid(field, 'has a length that is not the shortest');
    }
    const end = contentStart + length;
    if (end > bytes.length)
      throw this.#invalid(field, `claims ${length} bytes, ${bytes.length - contentStart} are left`);
    this.#at = end;
    return { tag, der: bytes.subarray(start, end), content: bytes.subarray(contentStart, end) };
  }

  /** The next element, which must have this tag. */
  next(tag: number, field: string): Element {
    const found = this.peek();
    if (found !== undefined && found !== tag) {
      throw this.#invalid(field, `has tag 0x${found.toString(16)}, expected 0x${tag.toString(16)}`);
    }
    return this.any(field);
  }

  /** The next element if it has this tag. */
  optional(tag: number, field: string): Element | undefined {
    return this.peek() === tag ? this.any(field) : undefined;
  }

  /** A reader over the content of the next element. */
  enter(tag: number, field: string): DerReader {
    return new DerReader(this.next(tag, field).content, `${this.#what}: ${field}`);
  }

  /** Throws if anything is left. */
  end(): void {
    if (!this.atEnd) {
      throw new PkiError('DER_INVALID', `${this.#what}: ${this.#bytes.length - this.#at} bytes follow the last field`);
    }
  }

  integer(field: string): bigint {
    const { content } = this.next(TAG.integer, field);
    const [first, second] = content;
    if (first === undefined) throw this.#invalid(field, 'is an integer without digits');
    const padded = second !== undefined && ((first === 0 && second < 0x80) || (first === 0xff && second >= 0x80));
    if (padded) throw this.#invalid(field, 'is an integer with needless leading bytes');
    const value = BigInt(`0x${content.toString('hex')}`);
    return first >= 0x80 ? value - (1n << BigInt(content.length * 8)) : value;
  }

  boolean(field: string): boolean {
    const { content } = this.next(TAG.boolean, field);
    if (content.length !== 1 || (content[0] !== 0 && content[0] !== 0xff))
      throw this.#invalid(field, 'is not a boolean');
    return content[0] === 0xff;
  }

  oid(field: string): string {
    return this.#dotted(this.next(TAG.oid, field).content, field);
  }

  /** The bytes of a bit string; bits that do not count are zero. */
  bits(field: string): Buffer {
    const { content } = this.next(TAG.bitString, field);
    const [unused] = content;
    const bytes = content.subarray(1);
    const padding = unused === 0 ? 0 : (bytes.at(-1) ?? 0xff) & ((1 << (unused ?? 8)) - 1);
    if (unused === undefined || unused > 7 || padding !== 0) throw this.#invalid(field, 'is not a bit string');
    return bytes;
  }

  /** The numbers of the bits that are set, of the first `count`. */
  namedBits(field: string, count: number): number[] {
    const bytes = this.bits(field);
    const set: number[] = [];
    for (let bit = 0; bit < Math.min(count, bytes.length * 8); bit++) {
      if ((bytes[bit >> 3]! & (0x80 >> (bit & 7))) !== 0) set.push(bit);
    }
    return set;
  }

  /** A UTCTime or GeneralizedTime; seconds may be absent in the first, a numeric offset is understood in both. */
  time(field: string): Date {
    const { tag, content } = this.any(field);
    const text = content.toString('latin1');
    const at = tag === TAG.utcTime ? utcTime(text) : tag === TAG.generalizedTime ? generalizedTime(text) : undefined;
    if (!at) throw this.#invalid(field, 'is not a UTCTime or GeneralizedTime');
    return at;
  }

  #dotted(content: Buffer, field: string): string {
    const arcs: number[] = [];
    let arc = 0;
    let fresh = true;
    for (const byte of content) {
      if (fresh && byte === 0x80) throw this.#invalid(field, 'is an object identifier with needless leading bytes');
      arc = arc * 128 + (byte & 0x7f);
      if (arc > MAX_OID_ARC) throw this.#invalid(field, 'is an object identifier out of range');
      fresh = byte < 0x80;
      if (fresh) {
        arcs.push(arc);
        arc = 0;
      }
    }
    const [head, ...tail] = arcs;
    if (head === undefined || !fresh) throw this.#invalid(field, 'is not an object identifier');
    const first = head < 80 ? Math.floor(head / 40) : 2;
    return [first, head - first * 40, ...tail].join('.');
  }

  #invalid(field: string, problem: string): PkiError {
    return new PkiError('DER_INVALID', `${this.#what}: ${field} at byte ${this.#at} ${problem}`);
  }
}

/** Larger arcs are legal, not in use, and refused by Go from 2^31 on. */
const MAX_OID_ARC = 2 ** 40;

const UTC_TIME = /^(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)?(Z|[+-]\d{4})$/;
const GENERALIZED_TIME = /^(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)(Z|[+-]\d{4})$/;

function utcTime(text: string): Date | undefined {
  const match = UTC_TIME.exec(text);
  const year = Number(match?.[1]);
  return match ? instant(year < 50 ? 2000 + year : 1900 + year, match) : undefined;
}

function generalizedTime(text: string): Date | undefined {
  const match = GENERALIZED_TIME.exec(text);
  return match ? instant(Number(match[1]), match) : undefined;
}

/** The instant, or undefined where a field is out of range (`Date` would roll 30 February over). */
function instant(year: number, fields: RegExpExecArray): Date | undefined {
  const number = (i: number) => Number(fields[i] ?? 0);
  const local = new Date(0);
  local.setUTCFullYear(year, number(2) - 1, number(3));
  local.setUTCHours(number(4), number(5), number(6));
  const real =
    local.getUTCFullYear() === year &&
    local.getUTCMonth() === number(2) - 1 &&
    local.getUTCDate() === number(3) &&
    local.getUTCHours() === number(4) &&
    local.getUTCMinutes() === number(5) &&
    local.getUTCSeconds() === number(6);
  const offset = offsetMinutes(fields[7] ?? '');
  return real && offset !== undefined ? new Date(local.getTime() - offset * 60_000) : undefined;
}

function offsetMinutes(zone: string): number | undefined {
  if (zone === 'Z') return 0;
  const hours = Number(zone.slice(1, 3));
  const minutes = Number(zone.slice(3));
  if (hours > 23 || minutes > 59) return undefined;
  return (zone.startsWith('-') ? -1 : 1) * (hours * 60 + minutes);
}
