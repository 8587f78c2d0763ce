import { type FieldError, forbidden, invalid } from '../../schema/field-error.ts';
import { isObject, sameJson } from '../../schema/json.ts';
import type { Fields } from '../kind.ts';

/** What the real server says of a field that cannot change. */
export const FIELD_IMMUTABLE = 'field is immutable';

/** An error unless the field at the dotted path is the same in both. Absent and empty count as the same. */
export function unchanged(object: Fields, old: Fields, path: string): FieldError[] {
  const value = valueAt(object, path);
  return sameValue(value, valueAt(old, path)) ? [] : [invalid(path, value, FIELD_IMMUTABLE)];
}

/** The rules of `immutable: true` in Secrets and ConfigMaps. */
export function frozenContent(object: Fields, old: Fields, fields: readonly string[]): FieldError[] {
  if (old['immutable'] !== true) return [];
  const why = 'field is immutable when `immutable` is set';
  const errors = object['immutable'] === true ? [] : [forbidden('immutable', why)];
  for (const field of fields) if (!sameValue(object[field], old[field])) errors.push(forbidden(field, why));
  return errors;
}

/** The value at a dotted path of plain field names. */
export function valueAt(object: object, path: string): unknown {
  let value: unknown = object;
  for (const field of path.split('.')) value = isObject(value) ? value[field] : undefined;
  return value;
}

function sameValue(a: unknown, b: unknown): boolean {
  return sameJson(emptied(a), emptied(b));
}

/** Go's semantic equality does not tell an absent list or map from an empty one. */
function emptied(value: unknown): unknown {
  if (Array.isArray(value)) return value.length === 0 ? undefined : value;
  if (isObject(value)) return Object.keys(value).length === 0 ? undefined : value;
  return value === '' || value === null ? undefined : value;
}
