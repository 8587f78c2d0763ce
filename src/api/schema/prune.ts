import { entryOf, isObject, setField } from './json.ts';
import type { Schema } from './schema.ts';

/** The value without the fields the schema does not know, except where unknown fields are preserved. */
export function prune<T>(schema: Schema, value: T): T {
  return pruned(schema, value, '', () => {}) as T;
}

/** Takes unknown fields off and reports the path of each, such as `spec.containers[0].foo`. */
export function pruned(schema: Schema, value: unknown, path: string, onUnknown: (path: string) => void): unknown {
  if (Array.isArray(value)) {
    const { items } = schema;
    if (items === undefined) return value;
    let changed = false;
    const elements = (value as unknown[]).map((element, index) => {
      const kept = pruned(items, element, `${path}[${index}]`, onUnknown);
      changed ||= kept !== element;
      return kept;
    });
    return changed ? elements : value;
  }
  if (!isObject(value) || isOpen(schema)) return value;
  let changed = false;
  const result: Record<string, unknown> = {};
  for (const [field, child] of Object.entries(value)) {
    const childPath = path === '' ? field : `${path}.${field}`;
    const childSchema = fieldSchema(schema, field);
    if (childSchema === undefined) {
      changed = true;
      onUnknown(childPath);
      continue;
    }
    const kept = childSchema === ANYTHING ? child : pruned(childSchema, child, childPath, onUnknown);
    changed ||= kept !== child;
    setField(result, field, kept);
  }
  return changed ? result : value;
}

/** Marks a field that is kept as it is, whatever it holds. */
const ANYTHING: Schema = {};

/** The schema of a field of an object, `undefined` when the field is unknown. */
function fieldSchema(schema: Schema, field: string): Schema | undefined {
  const known = entryOf(schema.properties, field);
  if (known !== undefined) return known;
  const { additionalProperties } = schema;
  if (typeof additionalProperties === 'object') return additionalProperties;
  return additionalProperties === true || schema['x-kubernetes-preserve-unknown-fields'] === true
    ? ANYTHING
    : undefined;
}

/** Nothing is said about fields, and all are kept. */
function isOpen(schema: Schema): boolean {
  return (
    schema['x-kubernetes-preserve-unknown-fields'] === true &&
    schema.properties === undefined &&
    schema.additionalProperties === undefined
  );
}
