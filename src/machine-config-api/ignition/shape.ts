import type { ObjectShape, Shape } from './schema.ts';
import { IgnitionError } from './types.ts';

/**
 * A JSON value brought into a shape: with the members this minor version knows, without members that say nothing. Throws
 * `IgnitionError` where a value is of another kind.
 */
export function shaped(value: unknown, shape: Shape, minor: number, path: string): unknown {
  if (value === null || value === undefined) return undefined;
  switch (shape.kind) {
    case 'object':
      return shapedObject(value, shape, minor, path);
    case 'list': {
      if (!Array.isArray(value)) throw new IgnitionError(path, `expected a list, found ${kindOf(value)}`);
      const items = value.map((item, index) => {
        // An entry that is null is one with nothing set.
        const entry: unknown = item ?? (shape.items.kind === 'object' ? {} : item);
        const read = shaped(entry, shape.items, minor, `${path}[${index}]`);
        if (read === undefined && shape.items.kind !== 'object')
          throw new IgnitionError(`${path}[${index}]`, 'expected a value, found null');
        return read ?? {};
      });
      return items.length === 0 ? undefined : items;
    }
    case 'integer':
      if (!Number.isSafeInteger(value))
        throw new IgnitionError(path, `expected a whole number, found ${kindOf(value)}`);
      return value === 0 && shape.isZeroNothing === true ? undefined : value;
    default:
      if (typeof value !== shape.kind)
        throw new IgnitionError(path, `expected a ${shape.kind}, found ${kindOf(value)}`);
      return value;
  }
}

function shapedObject(value: unknown, shape: ObjectShape, minor: number, path: string): object | undefined {
  if (!isObject(value)) throw new IgnitionError(path, `expected an object, found ${kindOf(value)}`);
  const result: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(shape.members)) {
    if (!Object.hasOwn(value, name) || (shape.since[name] ?? 0) > minor) continue;
    const read = shaped(value[name], member, minor, path === '' ? name : `${path}.${name}`);
    if (read !== undefined) result[name] = read;
  }
  for (const name of [...shape.required, ...(shape.requiredIn?.[minor] ?? [])])
    result[name] ??= shape.members[name]?.kind === 'object' ? {} : '';
  return Object.keys(result).length === 0 ? undefined : result;
}

export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function kindOf(value: unknown): string {
  if (value === null) return 'null';
  return Array.isArray(value) ? 'a list' : typeof value;
}
