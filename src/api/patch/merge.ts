import { fieldOf, isObject, setField } from '../schema/json.ts';

/** The document after a JSON merge patch (RFC 7386): objects merge, null deletes, everything else replaces. */
export function applyMergePatch(document: unknown, patch: unknown): unknown {
  if (!isObject(patch)) return patch;
  const original = isObject(document) ? document : {};
  const result: Record<string, unknown> = { ...original };
  for (const [field, value] of Object.entries(patch)) {
    if (value === null) delete result[field];
    else setField(result, field, applyMergePatch(fieldOf(original, field), value));
  }
  return result;
}
