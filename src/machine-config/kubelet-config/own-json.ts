import { formatGoNanos, readGoDuration } from '../../kube/duration.ts';
import { goQuote } from '../../kube/go-quote.ts';
import { parseQuantity, QuantityError, quantityText } from '../../kube/quantity.ts';
import { floorToMs, formatRfc3339, parseRfc3339 } from '../../kube/time.ts';
import { DecodeError, kindOf, type Mismatch, mismatch } from './decode-error.ts';

/** A type that reads itself. It is kept as it is written. */
export interface OwnJson {
  /** What is written where nothing was said. */
  readonly zero: unknown;
  /** Throws `DecodeError`. */
  read(value: unknown, mismatch: Mismatch): unknown;
}

const duration: OwnJson = {
  zero: '0s',
  read(value, mismatched) {
    if (value !== null && typeof value !== 'string') throw mismatched(kindOf(value), 'string');
    const nanos = readGoDuration(value ?? '');
    if (typeof nanos === 'string') throw new DecodeError(nanos);
    return formatGoNanos(nanos);
  },
};

/** A duration in words, or a number of nanoseconds. */
const timeOrDuration: OwnJson = {
  zero: 0,
  read(value, mismatched) {
    if (typeof value === 'string') return duration.read(value, mismatched);
    if (value === null) return 0;
    if (Number.isSafeInteger(value)) return value;
    const found = typeof value === 'number' ? `number ${value}` : kindOf(value);
    const { message } = mismatch(undefined)(found, 'time.Duration');
    throw new DecodeError(`invalid duration ${goQuote(JSON.stringify(value))}: ${message}`);
  },
};

const quantity: OwnJson = {
  zero: '0',
  read(value) {
    if (value === null) return '0';
    try {
      return quantityText(parseQuantity(typeof value === 'string' ? value.trim() : JSON.stringify(value)));
    } catch (error) {
      throw error instanceof QuantityError ? new DecodeError(error.message) : error;
    }
  },
};

const time: OwnJson = {
  zero: null,
  read(value, mismatched) {
    if (value === null) return null;
    if (typeof value !== 'string') throw mismatched(kindOf(value), 'string');
    const instant = parseRfc3339(value);
    if (instant === undefined) throw new DecodeError(`parsing time ${goQuote(value)}: expected RFC 3339`);
    return formatRfc3339(floorToMs(instant));
  },
};

const OWN: Readonly<Record<string, OwnJson>> = {
  'v1.Duration': duration,
  'v1.TimeOrMetaDuration': timeOrDuration,
  'v1.Time': time,
  'resource.Quantity': quantity,
  'resource.QuantityValue': quantity,
};

export function ownJson(type: string): OwnJson {
  const found = Object.hasOwn(OWN, type) ? OWN[type] : undefined;
  if (found === undefined) throw new Error(`nothing is known of how ${type} reads itself`);
  return found;
}
