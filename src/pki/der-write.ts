/** Tags of the DER types that certificates use. */
export const TAG = {
  boolean: 0x01,
  integer: 0x02,
  bitString: 0x03,
  octetString: 0x04,
  null: 0x05,
  oid: 0x06,
  utf8String: 0x0c,
  numericString: 0x12,
  printableString: 0x13,
  teletexString: 0x14,
  ia5String: 0x16,
  utcTime: 0x17,
  generalizedTime: 0x18,
  bmpString: 0x1e,
  sequence: 0x30,
  set: 0x31,
} as const;

/** The tag of `[n]` holding primitive content. */
export const contextPrimitive = (n: number): number => 0x80 | n;

/** The tag of `[n]` holding further elements. */
export const contextConstructed = (n: number): number => 0xa0 | n;

/** One element: tag, shortest length, the parts one after the other. */
export function element(tag: number, ...parts: Uint8Array[]): Buffer {
  let length = 0;
  for (const part of parts) length += part.length;
  const header = headerLength(length);
  const out = Buffer.allocUnsafe(header + length);
  out[0] = tag;
  if (header === 2) {
    out[1] = length;
  } else {
    out[1] = 0x80 | (header - 2);
    out.writeUIntBE(length, 2, header - 2);
  }
  let at = header;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function headerLength(length: number): number {
  if (length < 0x80) return 2;
  if (length < 0x100) return 3;
  if (length < 0x1_0000) return 4;
  return length < 0x100_0000 ? 5 : 6;
}

export const sequence = (...parts: Uint8Array[]): Buffer => element(TAG.sequence, ...parts);

/** SET OF: DER wants the members in ascending byte order. */
export const setOf = (members: readonly Buffer[]): Buffer =>
  element(TAG.set, ...[...members].sort((a, b) => a.compare(b)));

export const octetString = (content: Uint8Array): Buffer => element(TAG.octetString, content);

export const TRUE: Buffer = element(TAG.boolean, Buffer.of(0xff));

export const NULL: Buffer = element(TAG.null);

/** A bit string made of whole bytes. */
export const bitString = (content: Uint8Array): Buffer => element(TAG.bitString, Buffer.of(0), content);

/** A bit string of flags, bit 0 first, without trailing zero bits. */
export function namedBits(bits: readonly number[]): Buffer {
  const highest = Math.max(-1, ...bits);
  const bytes = Buffer.alloc((highest >> 3) + 1);
  for (const bit of bits) bytes[bit >> 3]! |= 0x80 >> (bit & 7);
  const unused = bytes.length * 8 - (highest + 1);
  return element(TAG.bitString, Buffer.of(unused), bytes);
}

/** A number that is not negative. */
export function integer(value: bigint | number): Buffer {
  const hex = value.toString(16);
  return unsignedInteger(Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex'));
}

/** A number given as unsigned big-endian bytes; a leading zero byte appears only where the top bit is set. */
export function unsignedInteger(bytes: Uint8Array): Buffer {
  let start = 0;
  while (start < bytes.length - 1 && bytes[start] === 0) start++;
  const digits = bytes.length === 0 ? Buffer.of(0) : bytes.subarray(start);
  return digits[0]! >= 0x80 ? element(TAG.integer, Buffer.of(0), digits) : element(TAG.integer, digits);
}

/** An object identifier from its dotted form. */
export function oid(dotted: string): Buffer {
  const [first = 0n, second = 0n, ...arcs] = dotted.split('.').map(BigInt);
  return element(TAG.oid, Buffer.from([first * 40n + second, ...arcs].flatMap(base128)));
}

function base128(value: bigint): number[] {
  const digits = [Number(value & 0x7fn)];
  for (let rest = value >> 7n; rest > 0n; rest >>= 7n) digits.unshift(Number(rest & 0x7fn) | 0x80);
  return digits;
}

/** The first and last second that the time types of a certificate can express. */
const FIRST_UTC_TIME_YEAR = 1950;
const LAST_UTC_TIME_YEAR = 2049;

/** A time in whole seconds, cut off: UTCTime while that is unambiguous, GeneralizedTime otherwise (spec 10, 5.1). */
export function time(at: Date): Buffer {
  const digits = at.toISOString().slice(-24, -5).replaceAll(/[-T:]/g, '');
  const year = at.getUTCFullYear();
  return year >= FIRST_UTC_TIME_YEAR && year <= LAST_UTC_TIME_YEAR
    ? element(TAG.utcTime, Buffer.from(`${digits.slice(2)}Z`, 'latin1'))
    : element(TAG.generalizedTime, Buffer.from(`${digits}Z`, 'latin1'));
}
