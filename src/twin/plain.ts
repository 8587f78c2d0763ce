/** A copy as it would arrive over the wire: what is undefined does not. What is frozen already is shared. */
export function plain<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  if (Array.isArray(value)) return value.map(part => (part === undefined ? null : plain<unknown>(part))) as T;
  if (value instanceof Date) return value.toISOString() as T;
  const copy: Record<string, unknown> = {};
  for (const [name, part] of Object.entries(value)) if (part !== undefined) copy[name] = plain<unknown>(part);
  return copy as T;
}

/** A JSON merge patch (RFC 7396). */
export function merged(before: unknown, patch: unknown): unknown {
  if (typeof patch !== 'object' || patch === null || Array.isArray(patch)) return patch;
  const isObject = typeof before === 'object' && before !== null && !Array.isArray(before);
  const after: Record<string, unknown> = isObject ? { ...before } : {};
  for (const [name, part] of Object.entries(patch)) {
    if (part === null) delete after[name];
    else after[name] = merged(after[name], part);
  }
  return after;
}
