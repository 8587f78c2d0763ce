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
const LONGEST_TEXT = 100;

/**
 * Reads a Go duration such as `1h30m` or `-1.5s`, to the millisecond (finer parts are cut off).
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
  const magnitude = Number(total / 1_000_000n);
  return negative && magnitude !== 0 ? -magnitude : magnitude;
}

/** Prints a duration the way Go does: `360h0m0s`, `1m30s`, `1.5s`, `500ms`, `0s` (spec 10, 3.4). */
export function formatGoDuration(duration: number): string {
  if (duration === 0) return '0s';
  const sign = duration < 0 ? '-' : '';
  const total = Math.abs(duration);
  if (total < 1000) return `${sign}${total}ms`;
  const hour = Math.floor(total / 3_600_000);
  const minute = Math.floor((total % 3_600_000) / 60_000);
  const second = `${Math.floor((total % 60_000) / 1000)}${fractionText(total % 1000)}s`;
  if (hour > 0) return `${sign}${hour}h${minute}m${second}`;
  return minute > 0 ? `${sign}${minute}m${second}` : `${sign}${second}`;
}

function fractionText(thousandths: number): string {
  return thousandths === 0 ? '' : `.${String(thousandths).padStart(3, '0').replace(/0+$/, '')}`;
}
