/**
 * The bytes of an IP literal: 4 for IPv4 and for IPv4-mapped IPv6, else 16; undefined for anything else (spec 10, 5.6).
 * Written by hand because `net.isIP` takes zone ids, which are not part of an address in a certificate.
 */
export function parseIp(text: string): Buffer | undefined {
  if (text.length > LONGEST_LITERAL) return undefined;
  if (!text.includes(':')) return parseIpv4(text);
  const bytes = parseIpv6(text);
  return bytes && isIpv4Mapped(bytes) ? bytes.subarray(12) : bytes;
}

/** Canonical text: IPv4 dotted, IPv6 lower-case with its longest run of zeros compressed, IPv4-mapped as IPv4. */
export function formatIp(bytes: Uint8Array): string {
  if (bytes.length === 4) return bytes.join('.');
  if (isIpv4Mapped(bytes)) return bytes.subarray(12).join('.');
  const groups = Array.from({ length: 8 }, (_, i) => (bytes[2 * i]! << 8) | bytes[2 * i + 1]!);
  const zeros = longestZeroRun(groups);
  const hex = (part: number[]) => part.map(group => group.toString(16)).join(':');
  if (zeros.length < 2) return hex(groups);
  return `${hex(groups.slice(0, zeros.start))}::${hex(groups.slice(zeros.start + zeros.length))}`;
}

const LONGEST_LITERAL = 'ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255'.length;

const OCTET = /^(0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9a-fA-F]{1,4}$/;

function parseIpv4(text: string): Buffer | undefined {
  const octets = text.split('.');
  if (octets.length !== 4 || !octets.every(octet => OCTET.test(octet) && Number(octet) <= 255)) return undefined;
  return Buffer.from(octets.map(Number));
}

function parseIpv6(text: string): Buffer | undefined {
  const [head, tail, ...more] = text.split('::');
  if (head === undefined || more.length > 0) return undefined;
  if (tail === undefined) return ipv6Groups(head, true, 16);
  const front = ipv6Groups(head, false);
  const back = ipv6Groups(tail, true);
  // The double colon stands for at least one group.
  if (!front || !back || front.length + back.length > 14) return undefined;
  return Buffer.concat([front, Buffer.alloc(16 - front.length - back.length), back]);
}

/** The bytes of colon-separated groups, the last of which may be a dotted IPv4 address where `mayEndDotted`. */
function ipv6Groups(text: string, mayEndDotted: boolean, length?: number): Buffer | undefined {
  if (text === '') return length === undefined ? Buffer.alloc(0) : undefined;
  const groups = text.split(':');
  const bytes: number[] = [];
  for (const [i, group] of groups.entries()) {
    const dotted = mayEndDotted && i === groups.length - 1 && group.includes('.') ? parseIpv4(group) : undefined;
    if (dotted) {
      bytes.push(...dotted);
    } else {
      if (!GROUP.test(group)) return undefined;
      const value = Number.parseInt(group, 16);
      bytes.push(value >> 8, value & 0xff);
    }
  }
  if (bytes.length > 16 || (length !== undefined && bytes.length !== length)) return undefined;
  return Buffer.from(bytes);
}

const MAPPED_PREFIX = Buffer.from('00000000000000000000ffff', 'hex');

function isIpv4Mapped(bytes: Uint8Array): boolean {
  return bytes.length === 16 && MAPPED_PREFIX.equals(bytes.subarray(0, 12));
}

function longestZeroRun(groups: readonly number[]): { start: number; length: number } {
  let best = { start: 0, length: 0 };
  let start = 0;
  for (let i = 0; i <= groups.length; i++) {
    if (groups[i] === 0) continue;
    if (i - start > best.length) best = { start, length: i - start };
    start = i + 1;
  }
  return best;
}
