/**
 * A moment exact to the nanosecond, with the offset it was written in. Annotations are read into this, because a fifth
 * of a validity (spec 10, S-4) and a fraction with nine digits do not fit a `Date`.
 */
export interface Instant {
  readonly nanos: bigint;
  /** Minutes east of UTC, only when the text had a numeric offset. `+00:00` is 0, `Z` is undefined. */
  readonly offsetMinutes?: number | undefined;
}

const PATTERN = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:\.(\d+))?(?:Z|([+-])(\d{2}):(\d{2}))$/;
/** Longer than any time anybody writes; a fraction of a million digits is not a time. */
const LONGEST_TEXT = 100;
const NANOS_PER_MS = 1_000_000n;

/** Reads RFC 3339 strictly (spec 10, 3.1): real dates only, upper-case `T` and `Z`, nothing before or after. */
export function parseRfc3339(text: string): Instant | undefined {
  const match = text.length <= LONGEST_TEXT ? PATTERN.exec(text) : null;
  if (match === null) return undefined;
  const [year, month, day, hour, minute, second] = match.slice(1, 7).map(Number) as [
    number,
    number,
    number,
    number,
    number,
    number,
  ];
  if (month < 1 || month > 12 || day < 1 || day > daysIn(year, month)) return undefined;
  if (hour > 23 || minute > 59 || second > 59) return undefined;
  const date = new Date(0);
  date.setUTCFullYear(year, month - 1, day);
  date.setUTCHours(hour, minute, second);
  const fraction = BigInt((match[7] ?? '').slice(0, 9).padEnd(9, '0'));
  const local = BigInt(date.getTime()) * NANOS_PER_MS + fraction;
  const sign = match[8];
  if (sign === undefined) return { nanos: local };
  const [offsetHour, offsetMinute] = [Number(match[9]), Number(match[10])];
  if (offsetHour > 23 || offsetMinute > 59) return undefined;
  const offsetMinutes = (sign === '-' ? -1 : 1) * (offsetHour * 60 + offsetMinute);
  return { nanos: local - BigInt(offsetMinutes) * 60_000n * NANOS_PER_MS, offsetMinutes };
}

/** RFC 3339, UTC, whole seconds (cut off), `Z`: how Kubernetes and the rotation annotations write times. */
export function formatRfc3339(time: Date): string {
  return `${time.toISOString().slice(0, -5)}Z`;
}

/** RFC 3339 with microseconds: Kubernetes' MicroTime. */
export function formatRfc3339Micro(time: Date): string {
  return `${time.toISOString().slice(0, -1)}000Z`;
}

/** The way Go prints a time in a message (spec 10, 3.2): `2024-01-25 00:00:00.8 +0000 UTC`. */
export function formatGoTime({ nanos, offsetMinutes }: Instant): string {
  const local = nanos + BigInt(offsetMinutes ?? 0) * 60_000n * NANOS_PER_MS;
  const wholeSeconds = floorDivide(local, 1_000_000_000n);
  const fraction = local - wholeSeconds * 1_000_000_000n;
  const [date, clock] = new Date(Number(wholeSeconds) * 1000).toISOString().slice(0, 19).split('T') as [string, string];
  const fractionText = fraction === 0n ? '' : `.${String(fraction).padStart(9, '0').replace(/0+$/, '')}`;
  return `${date} ${clock}${fractionText} ${zoneText(offsetMinutes)}`;
}

export function instantOf(time: Date): Instant {
  return { nanos: BigInt(time.getTime()) * NANOS_PER_MS };
}

/** The latest whole millisecond that is not after the instant: `now > instant` exactly when `now > floorToMs(instant)`. */
export function floorToMs({ nanos }: Instant): Date {
  return new Date(Number(floorDivide(nanos, NANOS_PER_MS)));
}

export function isAfter(a: Instant, b: Instant): boolean {
  return a.nanos > b.nanos;
}

/** Adds a duration in milliseconds and keeps the offset. */
export function addMs({ nanos, offsetMinutes }: Instant, duration: number): Instant {
  return { nanos: nanos + BigInt(Math.round(duration * 1e6)), offsetMinutes };
}

function zoneText(offsetMinutes: number | undefined): string {
  if (offsetMinutes === undefined) return '+0000 UTC';
  const minutes = Math.abs(offsetMinutes);
  const digits = String(Math.floor(minutes / 60)).padStart(2, '0') + String(minutes % 60).padStart(2, '0');
  const offset = `${offsetMinutes < 0 ? '-' : '+'}${digits}`;
  return `${offset} ${offset}`;
}

function daysIn(year: number, month: number): number {
  const leap = (year % 4 === 0 && year % 100 !== 0) || year % 400 === 0;
  return month === 2 ? (leap ? 29 : 28) : [4, 6, 9, 11].includes(month) ? 30 : 31;
}

function floorDivide(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b < 0n ? quotient - 1n : quotient;
}
