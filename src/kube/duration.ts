/** Durations are plain numbers of milliseconds, made by these functions so that the unit is always in sight. */
export const milliseconds = (n: number): number => n;
export const seconds = (n: number): number => n * 1000;
export const minutes = (n: number): number => n * 60_000;
export const hours = (n: number): number => n * 3_600_000;
export const days = (n: number): number => n * 86_400_000;

const NANOS: Record<string, bigint> = {
  ns: 1n,
  us: 1_000n,
  µs: 1_000n,
  μs: 1_000n,
  ms: 1_000_000n,
  s: 1_000_000_000n,
  m: 60_000_000_000n,
  h: 3_600_000_000_000n,
};
/** Go keeps durations in a signed 64-bit number of nanoseconds. */
const LARGEST_NANOS = 2n ** 63n - 1n;
const NANOS_PER_MS = 1_000_000n;
const NANOS_PER_SECOND = 1_000_000_000n;
const LONGEST_TEXT = 100;

/**
 * Reads a Go duration such as `1h30m` or `-1.5s`; what is finer than a millisecond becomes a fraction.
 * Returns undefined for anything Go's time.ParseDuration refuses.
 */
export function parseGoDuration(text: string): number | undefined {
  const nanos = readGoDuration(text);
  if (typeof nanos === 'string') return undefined;
  // Taken apart, so that whole milliseconds stay whole however many there are.
  return Number(nanos / NANOS_PER_MS) + Number(nanos % NANOS_PER_MS) / 1e6;
}

/** The nanoseconds of a Go duration; for a text that is none, what time.ParseDuration says about it. */
export function readGoDuration(text: string): bigint | string {
  const invalid = `time: invalid duration ${quoted(text)}`;
  const negative = text.startsWith('-');
  let rest = /^[-+]/.test(text) ? text.slice(1) : text;
  if (rest === '0') return 0n;
  if (rest === '' || text.length > LONGEST_TEXT) return invalid;
  let total = 0n;
  while (rest !== '') {
    const [amount = '', whole = '', fraction = ''] = /^(\d*)(?:\.(\d*))?/.exec(rest) ?? [];
    if (whole + fraction === '' || BigInt(whole) > LARGEST_NANOS + 1n) return invalid;
    const [unit = ''] = /^[^.\d]*/.exec(rest.slice(amount.length)) ?? [];
    if (unit === '') return `time: missing unit in duration ${quoted(text)}`;
    const scale = Object.hasOwn(NANOS, unit) ? NANOS[unit] : undefined;
    if (scale === undefined) return `time: unknown unit ${quoted(unit)} in duration ${quoted(text)}`;
    total += BigInt(whole) * scale + (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
    if (total > LARGEST_NANOS + (negative ? 1n : 0n)) return invalid;
    rest = rest.slice(amount.length + unit.length);
  }
  return negative ? -total : total;
}

/** In quotes as Go's package time does: bytes that are not ASCII as numbers. */
function quoted(text: string): string {
  const characters = Array.from(Buffer.from(text), byte => {
    const character = String.fromCharCode(byte);
    if (byte < 0x20 || byte >= 0x80) return `\\x${byte.toString(16).padStart(2, '0')}`;
    return character === '"' || character === '\\' ? `\\${character}` : character;
  });
  return `"${characters.join('')}"`;
}

/** Prints a duration the way Go does: `360h0m0s`, `1m30s`, `1.5s`, `500ms`, `0s` (spec 10, 3.4), to the nanosecond. */
export function formatGoDuration(duration: number): string {
  if (!Number.isFinite(duration)) return String(duration);
  const nanos = nanosOf(Math.abs(duration));
  return formatGoNanos(duration < 0 ? -nanos : nanos);
}

export function formatGoNanos(signed: bigint): string {
  if (signed === 0n) return '0s';
  const [sign, nanos] = signed < 0n ? ['-', -signed] : ['', signed];
  if (nanos < NANOS_PER_SECOND) return sign + shortText(Number(nanos));
  const wholeSeconds = nanos / NANOS_PER_SECOND;
  const [hour, minute] = [wholeSeconds / 3600n, (wholeSeconds / 60n) % 60n];
  const second = `${wholeSeconds % 60n}${fractionText(nanos % NANOS_PER_SECOND)}s`;
  if (hour > 0n) return `${sign}${hour}h${minute}m${second}`;
  return minute > 0n ? `${sign}${minute}m${second}` : `${sign}${second}`;
}

function nanosOf(duration: number): bigint {
  const whole = Math.floor(duration);
  return BigInt(whole) * NANOS_PER_MS + BigInt(Math.round((duration - whole) * 1e6));
}

/** Less than a second: in the largest unit that makes it one or more. */
function shortText(nanos: number): string {
  if (nanos < 1e3) return `${nanos}ns`;
  return nanos < 1e6 ? `${nanos / 1e3}µs` : `${nanos / 1e6}ms`;
}

function fractionText(nanos: bigint): string {
  return nanos === 0n ? '' : `.${String(nanos).padStart(9, '0').replace(/0+$/, '')}`;
}
