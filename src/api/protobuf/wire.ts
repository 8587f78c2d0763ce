/** Thrown for bytes that are no protocol buffer, or not one of the kind expected. */
export class WireError extends Error {
  override readonly name = 'WireError';
}

const VARINT = 0;
const FIXED64 = 1;
const LENGTH_DELIMITED = 2;
const FIXED32 = 5;

export interface WireField {
  readonly number: number;
  /** The value of a varint; undefined for the other wire types. */
  readonly varint: bigint | undefined;
  /** The bytes of a length-delimited or fixed field; empty for a varint. */
  readonly bytes: Buffer;
}

/** The fields of one message, in the order they were written. */
export function* wireFields(message: Buffer): Generator<WireField> {
  let at = 0;
  while (at < message.length) {
    const tag = readVarint(message, at);
    at = tag.end;
    const number = Number(tag.value >> 3n);
    const type = Number(tag.value & 7n);
    if (number === 0) throw new WireError('expected a field number, found 0');
    if (type === VARINT) {
      const { value, end } = readVarint(message, at);
      yield { number, varint: value, bytes: EMPTY };
      at = end;
    } else {
      const { start, end } = extent(message, at, type);
      if (end > message.length) throw new WireError(`field ${number} ends after its message`);
      yield { number, varint: undefined, bytes: message.subarray(start, end) };
      at = end;
    }
  }
}

const EMPTY = Buffer.alloc(0);

function extent(message: Buffer, at: number, type: number): { start: number; end: number } {
  switch (type) {
    case FIXED64:
      return { start: at, end: at + 8 };
    case FIXED32:
      return { start: at, end: at + 4 };
    case LENGTH_DELIMITED: {
      const { value, end } = readVarint(message, at);
      return { start: end, end: end + Number(value) };
    }
    default:
      throw new WireError(`unknown wire type ${type}`);
  }
}

const LONGEST_VARINT = 10;

function readVarint(message: Buffer, at: number): { value: bigint; end: number } {
  let value = 0n;
  for (let index = 0; index < LONGEST_VARINT; index++) {
    const byte = message[at + index];
    if (byte === undefined) throw new WireError('a number ends after its message');
    value |= BigInt(byte & 127) << BigInt(7 * index);
    if (byte < 128) return { value, end: at + index + 1 };
  }
  throw new WireError('a number is longer than ten bytes');
}
