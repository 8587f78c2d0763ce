import type { JsonObject } from './schema.ts';

/** Deeper nesting is refused: every function here recurses. The real server goes down to 10,000. */
export const MAX_DEPTH = 1000;

export function isObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The field's value, never something inherited: a document may well have a field named `constructor`. */
export function fieldOf(object: JsonObject, field: string): unknown {
  return Object.hasOwn(object, field) ? object[field] : undefined;
}

/** The schema or rule kept under a field name that comes from a document. */
export function entryOf<T>(table: Readonly<Record<string, T>> | undefined, field: string): T | undefined {
  return table !== undefined && Object.hasOwn(table, field) ? table[field] : undefined;
}

/** Sets a field of an object under construction; `__proto__` becomes a field like any other. */
export function setField(object: Record<string, unknown>, field: string, value: unknown): void {
  if (field === '__proto__') {
    Object.defineProperty(object, field, { value, writable: true, enumerable: true, configurable: true });
  } else {
    object[field] = value;
  }
}

/** The object with one field changed, in place of the order it had. */
export function withField(object: JsonObject, field: string, value: unknown): JsonObject {
  const copy = { ...object };
  setField(copy, field, value);
  return copy;
}

export function withoutField(object: JsonObject, field: string): JsonObject {
  const { [field]: _, ...rest } = object;
  return rest;
}

/** Whether two JSON values are the same; the order of fields does not matter, the order of elements does. */
export function sameJson(a: unknown, b: unknown): boolean {
  if (a === b) return true;
  if (Array.isArray(a)) {
    return Array.isArray(b) && a.length === b.length && a.every((element, index) => sameJson(element, b[index]));
  }
  if (!isObject(a) || !isObject(b)) return false;
  const fields = Object.keys(a);
  if (fields.length !== Object.keys(b).length) return false;
  return fields.every(field => Object.hasOwn(b, field) && sameJson(a[field], b[field]));
}

/** Whether a value is nested deeper than `max`. Does not recurse itself. */
export function tooDeep(value: unknown, max: number = MAX_DEPTH): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > max) return true;
    const next: unknown[] = [];
    for (const element of level) {
      if (Array.isArray(element)) for (const child of element) pushContainer(next, child);
      else if (isObject(element)) for (const child of Object.values(element)) pushContainer(next, child);
    }
    level = next;
  }
  return false;
}

function pushContainer(list: unknown[], value: unknown): void {
  if (typeof value === 'object' && value !== null) list.push(value);
}
