import {
  IGNITION_SHAPE,
  type ListShape,
  type ObjectShape,
  REFERENCE_SHAPE,
  RESOURCE_SHAPE,
  type Shape,
} from './schema.ts';
import type { IgnitionConfig } from './types.ts';

/**
 * Lays a later document over an earlier one (spec 50, RN-11): members that the later one does not set are inherited, entries
 * of lists are the same when their keys are, a path is a file, a directory or a link and never two of them.
 */
export function mergeIgnition(earlier: IgnitionConfig, later: IgnitionConfig): IgnitionConfig {
  return mergeObjects(
    earlier as unknown as JsonObject,
    later as unknown as JsonObject,
    IGNITION_SHAPE,
  ) as unknown as IgnitionConfig;
}

type JsonObject = Readonly<Record<string, unknown>>;

function mergeObjects(earlier: JsonObject, later: JsonObject, shape: ObjectShape): JsonObject {
  const isResource = shape === RESOURCE_SHAPE || shape === REFERENCE_SHAPE;
  const base = isResource ? withoutPropertiesOfOldSource(earlier, later) : earlier;
  const merged: Record<string, unknown> = {};
  for (const [name, member] of Object.entries(shape.members)) {
    const value = mergeMember(base[name], later, name, member, shape);
    if (value !== undefined) merged[name] = value;
  }
  return merged;
}

function mergeMember(before: unknown, later: JsonObject, name: string, member: Shape, shape: ObjectShape): unknown {
  const after = later[name];
  if (member.kind === 'list') {
    const elsewhere = keysElsewhere(later, name, shape);
    const list = mergeLists((before ?? []) as unknown[], (after ?? []) as unknown[], member, elsewhere);
    return list.length === 0 ? undefined : list;
  }
  if (after === undefined || before === undefined) return after ?? before;
  return member.kind === 'object' ? mergeObjects(before as JsonObject, after as JsonObject, member) : after;
}

function mergeLists(
  before: readonly unknown[],
  after: readonly unknown[],
  { items, key }: ListShape,
  elsewhere: ReadonlySet<string>,
): unknown[] {
  if (key === undefined) return [...before, ...after];
  const later = new Map(after.map(item => [key(item), item]));
  const known = new Set(before.map(key));
  const kept = before.flatMap(item => {
    const update = later.get(key(item));
    if (update === undefined) return elsewhere.has(key(item)) ? [] : [item];
    if (items.kind !== 'object') return [update];
    if (isHeaderRemoval(items, update)) return [];
    return [mergeObjects(item as JsonObject, update as JsonObject, items)];
  });
  return [...kept, ...after.filter(item => !known.has(key(item)))];
}

/** The keys that the later document has in the other lists of the same namespace. */
function keysElsewhere(later: JsonObject, name: string, { shared, members }: ObjectShape): ReadonlySet<string> {
  const others = shared.filter(lists => lists.includes(name)).flatMap(lists => lists.filter(other => other !== name));
  const keys = others.flatMap(other => {
    const { key = String } = members[other] as ListShape;
    return ((later[other] ?? []) as unknown[]).map(key);
  });
  return new Set(keys);
}

/** A header that is named without a value takes the earlier one away. */
function isHeaderRemoval(items: ObjectShape, update: unknown): boolean {
  return items === HEADER_SHAPE && (update as JsonObject)['value'] === undefined;
}

const HEADER_SHAPE = (RESOURCE_SHAPE.members['httpHeaders'] as ListShape).items;

/**
 * How content is compressed and what it hashes to belongs to that content: new content without them is plain content, where
 * 4.16 takes it for gzip (spec 50, trap 8 and section 15). That it is not compressed may as well stay said.
 */
function withoutPropertiesOfOldSource(earlier: JsonObject, later: JsonObject): JsonObject {
  if (later['source'] === undefined || later['source'] === earlier['source']) return earlier;
  const { compression, verification: _verification, ...rest } = earlier;
  return compression === '' ? { ...rest, compression } : rest;
}
