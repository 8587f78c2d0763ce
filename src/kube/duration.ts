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
  if (text.length > LONGEST_TEXT) return undefined;
  const negative = text.startsWith('-');
  const unsigned = /^[-+]/.test(text) ? text.slice(1) : text;
  if (unsigned === '0') return 0;
  if (!/^(?:(?:\d+\.?\d*|\.\d+)(?:ns|us|µs|μs|ms|s|m|h))+$/.test(unsigned)) return undefined;
  let total = 0n;
  for (const [, whole, fraction, unit] of unsigned.matchAll(/(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)/g)) {
    const scale = NANOS[unit as string] as bigint;
    total += BigInt(whole || '0') * scale;
    if (fraction) total += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
    if (total > LARGEST_NANOS) return undefined;
  }
  // Taken apart, so that whole milliseconds stay whole however many there are.
  const magnitude = Number(total / NANOS_PER_MS) + Number(total % NANOS_PER_MS) / 1e6;
  return negative && magnitude !== 0 ? -magnitude : magnitude;
}

/** Prints a duration the way Go does: `360h0m0s`, `1m30s`, `1.5s`, `500ms`, `0s` (spec 10, 3.4), to the nanosecond. */
export function formatGoDuration(duration: number): string {
  if (!Number.isFinite(duration)) return String(duration);
  const nanos = nanosOf(Math.abs(duration));
  if (nanos === 0n) return '0s';
  const sign = duration < 0 ? '-' : '';
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
