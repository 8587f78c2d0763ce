/** A text that is no quantity; the message is the API server's. */
export class QuantityError extends Error {
  override readonly name = 'QuantityError';
}

type Format = 'decimal' | 'exponent' | 'binary';

/** An amount such as `500m`, `1.5`, `128Mi` or `1e3`, exact to the billionth: `nanos` of them. */
export interface Quantity {
  readonly nanos: bigint;
  readonly format: Format;
}

const LARGEST = 2n ** 63n - 1n;
const NANOS = 1_000_000_000n;
const NANO_DIGITS = 9;
/** Beyond, an amount is either a billionth or more than anything. */
const LARGEST_EXPONENT = 64;
const LONGEST_TEXT = 100;

/** Reads a quantity as Kubernetes does: what is finer than a billionth is rounded up, more than 2^63-1 in powers of two is cut. */
export function parseQuantity(text: string): Quantity {
  if (text === '' || text.length > LONGEST_TEXT) throw new QuantityError(WRONG_FORMAT);
  const match = SYNTAX.exec(text);
  if (match === null) throw new QuantityError(WRONG_FORMAT);
  const [, sign, whole = '', fraction = '', suffix = ''] = match;
  const { base, exponent, format } = scaleOf(suffix);
  const unscaled = BigInt(whole + fraction);
  const nanos =
    base === 2
      ? atMost(LARGEST * NANOS, roundedUp(unscaled * 2n ** BigInt(exponent) * NANOS, fraction.length))
      : shifted(unscaled, exponent + NANO_DIGITS - fraction.length);
  return { nanos: sign === '-' ? -nanos : nanos, format };
}

/** The whole number that is meant, rounded away from zero; undefined for one that does not fit 64 bits. */
export function quantityValue({ nanos }: Quantity): bigint | undefined {
  const magnitude = roundedUp(nanos < 0n ? -nanos : nanos, NANO_DIGITS);
  if (magnitude > LARGEST) return undefined;
  return nanos < 0n ? -magnitude : magnitude;
}

/** The text that Kubernetes keeps: a whole number with the largest suffix that loses nothing. */
export function quantityText({ nanos, format }: Quantity): string {
  if (nanos === 0n) return '0';
  const isSmall = nanos > -1024n * NANOS && nanos < 1024n * NANOS;
  if (format === 'binary' && !isSmall && nanos % NANOS === 0n) {
    const [amount, power] = withoutFactors(nanos / NANOS, 1024n);
    return `${amount}${BINARY[power] ?? ''}`;
  }
  const [amount, power] = withoutFactors(nanos, 10n);
  const exponent = power - NANO_DIGITS;
  const excess = ((exponent % 3) + 3) % 3;
  const suffix = exponent - excess;
  const digits = amount * 10n ** BigInt(excess);
  if (format === 'exponent' || suffix > 18) return suffix === 0 ? String(digits) : `${digits}e${suffix}`;
  return `${digits}${DECIMAL[suffix / 3 + 3] ?? ''}`;
}

const WRONG_FORMAT = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_SUFFIX = "unable to parse quantity's suffix";
/** More than Kubernetes promises to read, and what it reads. */
const SYNTAX = /^([+-]?)(\d*)(?:\.(\d*))?([eEinumkKMGTP]*[+-]?\d*)$/;
const DECIMAL = ['n', 'u', 'm', '', 'k', 'M', 'G', 'T', 'P', 'E'];
const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'];

function scaleOf(suffix: string): { base: 2 | 10; exponent: number; format: Format } {
  const decimal = DECIMAL.indexOf(suffix);
  if (decimal >= 0) return { base: 10, exponent: (decimal - 3) * 3, format: 'decimal' };
  const binary = BINARY.indexOf(suffix);
  if (binary > 0) return { base: 2, exponent: binary * 10, format: 'binary' };
  if (!/^[eE][+-]?\d+$/.test(suffix)) throw new QuantityError(WRONG_SUFFIX);
  return { base: 10, exponent: Number(suffix.slice(1)), format: 'exponent' };
}

function shifted(value: bigint, digits: number): bigint {
  if (value === 0n) return 0n;
  if (digits < 0) return roundedUp(value, Math.min(-digits, LARGEST_EXPONENT + LONGEST_TEXT));
  return value * 10n ** BigInt(Math.min(digits, LARGEST_EXPONENT));
}

/** A number without its last digits, one more where they said something. */
function roundedUp(value: bigint, digits: number): bigint {
  const divisor = 10n ** BigInt(digits);
  return (value + divisor - 1n) / divisor;
}

function atMost(limit: bigint, value: bigint): bigint {
  return value > limit ? limit : value;
}

function withoutFactors(value: bigint, factor: bigint): [rest: bigint, times: number] {
  let [rest, times] = [value, 0];
  while (rest % factor === 0n) [rest, times] = [rest / factor, times + 1];
  return [rest, times];
}
