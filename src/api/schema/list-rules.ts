import { duplicate, type FieldError, required } from './field-error.ts';
import { fieldOf, isObject } from './json.ts';
import type { JsonObject, Schema } from './schema.ts';

/** Elements of sets and keyed lists that occur twice, and keyed elements that lack a key. */
export function duplicateElements(schema: Schema, list: readonly unknown[], path: string): FieldError[] {
  switch (schema['x-kubernetes-list-type']) {
    case 'set':
      return repeated(
        list,
        path,
        element => canonicalJson(element),
        element => element,
      );
    case 'map':
      return keyedErrors(schema, list, path);
    default:
      return [];
  }
}

function keyedErrors(schema: Schema, list: readonly unknown[], path: string): FieldError[] {
  const keys = schema['x-kubernetes-list-map-keys'] ?? [];
  // Built-in kinds have rules of their own for the names in their lists.
  if (schema.items?.builtin !== undefined) return [];
  const missing = list.flatMap((element, index) =>
    keys
      .filter(key => isObject(element) && keyOf(schema, element, key) === undefined)
      .map(key => required(`${path}[${index}].${key}`)),
  );
  const chosen = (element: unknown) =>
    Object.fromEntries(keys.map(key => [key, isObject(element) ? keyOf(schema, element, key) : undefined]));
  return [...missing, ...repeated(list, path, element => canonicalJson(chosen(element)), chosen)];
}

/** A key that is absent has its default. */
function keyOf(schema: Schema, element: JsonObject, key: string): unknown {
  return fieldOf(element, key) ?? schema.items?.properties?.[key]?.default;
}

function repeated(
  list: readonly unknown[],
  path: string,
  identity: (element: unknown) => string,
  shown: (element: unknown) => unknown,
): FieldError[] {
  const times = new Map<string, number>();
  return list.flatMap((element, index) => {
    const id = identity(element);
    const seen = times.get(id) ?? 0;
    times.set(id, seen + 1);
    return seen === 1 ? [duplicate(`${path}[${index}]`, shown(element))] : [];
  });
}

/** JSON with sorted fields, so that equal values have equal text. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  if (!isObject(value)) return JSON.stringify(value) ?? 'null';
  const fields = Object.keys(value).sort();
  return `{${fields.map(field => `${JSON.stringify(field)}:${canonicalJson(value[field])}`).join(',')}}`;
}
