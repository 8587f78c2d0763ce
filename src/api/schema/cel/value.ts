import { parseGoDuration } from '../../../kube/duration.ts';
import { parseRfc3339 } from '../../../kube/time.ts';
import { entryOf, isObject } from '../json.ts';
import type { Schema } from '../schema.ts';

/** A value while an expression is evaluated. Whole numbers are `bigint`, others `number`, as the language tells them apart. */
export type Value =
  | null
  | boolean
  | bigint
  | number
  | string
  | Moment
  | Span
  | Optional
  | Foreign
  | readonly Value[]
  | ValueMap;
export type ValueMap = ReadonlyMap<string | bigint | boolean, Value>;

/** A point in time, in nanoseconds since 1970. */
export class Moment {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

/** A length of time, in nanoseconds. */
export class Span {
  readonly nanos: bigint;
  constructor(nanos: bigint) {
    this.nanos = nanos;
  }
}

/** A value of a type that only some functions know; equal when its text is. */
export class Foreign {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

/** A value that may be absent. */
export class Optional {
  readonly value: Value | undefined;
  constructor(value: Value | undefined) {
    this.value = value;
  }
}

/** What goes wrong while an expression is evaluated, such as a missing key. */
export class EvaluationError extends Error {
  override readonly name = 'EvaluationError';
}

/** A JSON value as an expression sees it; the schema tells integers from doubles and times from strings. */
export function toValue(schema: Schema, json: unknown): Value {
  if (Array.isArray(json)) return json.map(element => toValue(schema.items ?? {}, element));
  if (isObject(json)) {
    const { additionalProperties } = schema;
    const others = typeof additionalProperties === 'object' ? additionalProperties : {};
    return new Map(
      Object.entries(json).map(([field, value]) => [
        field,
        toValue(entryOf(schema.properties, field) ?? others, value),
      ]),
    );
  }
  if (typeof json === 'number') {
    return schema.type === 'number' || !Number.isInteger(json) ? json : BigInt(json);
  }
  if (typeof json === 'string') return fromText(schema.format, json);
  return typeof json === 'boolean' ? json : null;
}

function fromText(format: string | undefined, text: string): Value {
  if (format === 'date-time') {
    const instant = parseRfc3339(text);
    return instant === undefined ? text : new Moment(instant.nanos);
  }
  if (format === 'date') {
    const instant = parseRfc3339(`${text}T00:00:00Z`);
    return instant === undefined ? text : new Moment(instant.nanos);
  }
  if (format === 'duration') {
    return spanOf(text) ?? text;
  }
  return text;
}

/** A duration as Go writes it, `1h30m`. */
export function spanOf(text: string): Span | undefined {
  const milliseconds = parseGoDuration(text);
  return milliseconds === undefined ? undefined : new Span(BigInt(Math.round(milliseconds * NANOS_PER_MS)));
}

export const NANOS_PER_MS = 1e6;

export function isMap(value: Value): value is ValueMap {
  return value instanceof Map;
}

export function isList(value: Value): value is readonly Value[] {
  return Array.isArray(value);
}

/** Numbers of both sorts compare by value, everything else only with its own sort. */
export function sameValue(a: Value, b: Value): boolean {
  if (typeof a === 'bigint' && typeof b === 'number') return Number(a) === b;
  if (typeof a === 'number' && typeof b === 'bigint') return a === Number(b);
  if (isList(a))
    return isList(b) && a.length === b.length && a.every((element, index) => sameValue(element, b[index] ?? null));
  if (isMap(a)) {
    if (!isMap(b) || a.size !== b.size) return false;
    return [...a].every(([key, value]) => b.has(key) && sameValue(value, b.get(key) ?? null));
  }
  if ((a instanceof Moment && b instanceof Moment) || (a instanceof Span && b instanceof Span))
    return a.nanos === b.nanos;
  if (a instanceof Optional && b instanceof Optional) {
    return a.value === undefined || b.value === undefined ? a.value === b.value : sameValue(a.value, b.value);
  }
  if (a instanceof Foreign && b instanceof Foreign) return a.constructor === b.constructor && a.text === b.text;
  return a === b;
}

/** Negative, zero or positive; throws for values that have no order between them. */
export function compareValues(a: Value, b: Value): number {
  const [left, right] = [comparable(a), comparable(b)];
  const numbers = (value: Value) => typeof value === 'bigint' || typeof value === 'number';
  const sameSort = typeof a === typeof b && a?.constructor === b?.constructor;
  if (left === undefined || right === undefined || !(sameSort || (numbers(a) && numbers(b)))) {
    throw new EvaluationError('no such overload');
  }
  return left < right ? -1 : left > right ? 1 : 0;
}

function comparable(value: Value): bigint | number | string | boolean | undefined {
  if (value instanceof Moment || value instanceof Span) return value.nanos;
  return typeof value === 'object' || value === null ? undefined : value;
}
