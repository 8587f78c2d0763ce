import { entryOf, fieldOf, isObject, setField } from './json.ts';
import type { JsonObject, Schema } from './schema.ts';

/**
 * The value with the defaults of its schema filled in, those of built-in types that depend on other fields too. A null
 * that the schema does not allow counts as absent, and in built-in types so does an empty string, because Go cannot
 * tell the two apart. Values that need nothing are returned as they are.
 */
export function applyDefaults<T>(schema: Schema, value: T): T {
  return completed(schema, value) as T;
}

function completed(schema: Schema, value: unknown): unknown {
  if (Array.isArray(value)) return completedList(schema, value as unknown[]);
  if (!isObject(value)) return value;
  const filled = completedFields(schema, value);
  return schema.builtin?.complete?.(filled) ?? filled;
}

function completedList({ items }: Schema, list: readonly unknown[]): readonly unknown[] {
  if (items === undefined) return list;
  let changed = false;
  const elements = list.map(element => {
    const done = completed(items, element);
    changed ||= done !== element;
    return done;
  });
  return changed ? elements : list;
}

function completedFields(schema: Schema, object: JsonObject): JsonObject {
  const { properties, additionalProperties } = schema;
  let result: Record<string, unknown> | undefined;
  const change = () => (result ??= { ...object });
  for (const [field, value] of Object.entries(object)) {
    const child =
      entryOf(properties, field) ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
    if (child === undefined) continue;
    if (value === null && child.nullable !== true) {
      if (properties !== undefined && Object.hasOwn(properties, field)) delete change()[field];
      continue;
    }
    const done = completed(child, value);
    if (done !== value) setField(change(), field, done);
  }
  if (properties === undefined) return result ?? object;
  for (const [field, child] of Object.entries(defaultedFields(properties))) {
    const value = fieldOf(result ?? object, field);
    const absent = value === undefined || (value === '' && schema.builtin !== undefined && child.default !== '');
    if (absent) setField(change(), field, completed(child, structuredClone(child.default)));
  }
  return result ?? object;
}

const DEFAULTED = new WeakMap<object, Readonly<Record<string, Schema>>>();

/** The fields that have a default; found once for each type. */
function defaultedFields(properties: Readonly<Record<string, Schema>>): Readonly<Record<string, Schema>> {
  let fields = DEFAULTED.get(properties);
  if (fields === undefined) {
    fields = Object.fromEntries(Object.entries(properties).filter(([, schema]) => schema.default !== undefined));
    DEFAULTED.set(properties, fields);
  }
  return fields;
}
