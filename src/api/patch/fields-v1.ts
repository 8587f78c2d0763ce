import { isObject, setField } from '../schema/json.ts';
import { canonicalJson } from '../schema/list-rules.ts';
import type { JsonObject } from '../schema/schema.ts';
import { FieldSet } from './field-set.ts';

/** A field set as it stands in `managedFields`: a tree in which `.` marks a step that is in the set and has more below. */
export function encodeFieldsV1(set: FieldSet): JsonObject {
  const fields: Record<string, unknown> = {};
  for (const { step, member, children } of set.entries()) {
    const below = encodeFieldsV1(children);
    setField(fields, step, member && !children.isEmpty ? { '.': {}, ...below } : below);
  }
  return fields;
}

/** Reads such a tree; `undefined` when it is none. */
export function decodeFieldsV1(fields: unknown): FieldSet | undefined {
  if (!isObject(fields)) return undefined;
  const set = new FieldSet();
  for (const [name, below] of Object.entries(fields)) {
    if (name === '.') continue;
    const step = readStep(name);
    const children = decodeFieldsV1(below);
    if (step === undefined || children === undefined) return undefined;
    const member = children.isEmpty || Object.hasOwn(below as JsonObject, '.');
    set.graft(step, member, children);
  }
  return set;
}

/** The step in the one form that we compare by. */
function readStep(name: string): string | undefined {
  const value = name.slice(2);
  switch (name.slice(0, 2)) {
    case 'f:':
      return name;
    case 'i:':
      return /^\d+$/.test(value) ? name : undefined;
    case 'v:':
    case 'k:':
      try {
        return name.slice(0, 2) + canonicalJson(JSON.parse(value));
      } catch {
        return undefined;
      }
    default:
      return undefined;
  }
}
