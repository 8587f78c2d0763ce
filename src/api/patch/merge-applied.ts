import { KubeError } from '../../kube/error.ts';
import { fieldOf, setField } from '../schema/json.ts';
import type { Schema } from '../schema/schema.ts';
import { type Shape, schemaBelow, shapeOf, showPath } from './shape.ts';

/** The live value with everything the applied one says; lists take the order of the applied one where it has a say. */
export function mergeApplied(schema: Schema, live: unknown, applied: unknown, path: readonly string[] = []): unknown {
  if (applied === undefined) return live;
  const shape = shapeOf(schema, applied);
  const before = shapeOf(schema, live);
  if (shape.is === 'fields') {
    const object = before.is === 'fields' ? before.object : {};
    const result: Record<string, unknown> = { ...object };
    for (const [field, value] of Object.entries(shape.object)) {
      const step = `f:${field}`;
      setField(result, field, mergeApplied(schemaBelow(schema, step), fieldOf(object, field), value, [...path, step]));
    }
    return result;
  }
  if (shape.is === 'elements') return mergeElements(schema, before, shape, path);
  // Nothing is applied to the parts, so those of others stay. What was the manager's own goes as what it gave up.
  if (applied === null && hasParts(before)) return live;
  return applied;
}

function hasParts(shape: Shape): boolean {
  switch (shape.is) {
    case 'fields':
      return Object.keys(shape.object).length > 0;
    case 'elements':
      return shape.list.length > 0;
    case 'leaf':
      return false;
  }
}

type Elements = Shape & { is: 'elements' };

function mergeElements(schema: Schema, live: Shape, applied: Elements, path: readonly string[]): unknown[] {
  const wanted = identified(applied, path);
  const known = live.is === 'elements' ? live.list.map(element => [live.step(element) ?? '', element] as const) : [];
  const knownById = new Map<string, unknown>();
  for (const [id, element] of known) knownById.set(id, knownById.has(id) ? undefined : element);
  const items = schema.items ?? {};
  const mergedAt = (id: string) => mergeApplied(items, knownById.get(id), wanted.get(id), [...path, id]);
  const liveIds = known.map(([id]) => id);
  return interleaved(liveIds, [...wanted.keys()]).map(at =>
    'live' in at ? known[at.live]?.[1] : mergedAt(at.applied),
  );
}

/** An applied list says of every element which one it means, and says it once. */
function identified({ list, step }: Elements, path: readonly string[]): Map<string, unknown> {
  const elements = new Map<string, unknown>();
  list.forEach((element, index) => {
    const id = step(element);
    if (id === undefined)
      throw untyped(path, `element ${index}: associative list with keys has an element that omits key field`);
    if (elements.has(id)) throw untyped(path, `duplicate entries for key ${showPath([id])}`);
    elements.set(id, element);
  });
  return elements;
}

function untyped(path: readonly string[], why: string): KubeError {
  return new KubeError(500, '', `failed to create typed patch object: ${showPath(path)}: ${why}`);
}

type Place = { readonly live: number } | { readonly applied: string };

/**
 * Both lists as one: the applied elements in their order, and each live element that is not applied as early as its place
 * among the live ones allows.
 */
function interleaved(live: readonly string[], applied: readonly string[]): Place[] {
  const isApplied = new Set(applied);
  const isLive = new Set(live);
  const places: Place[] = [];
  let at = 0;
  const takeLiveOnly = (until: string | undefined) => {
    for (; at < live.length; at++) {
      const id = live[at] ?? '';
      if (!isApplied.has(id)) places.push({ live: at });
      else if (id === until) return;
    }
  };
  const shared = applied.filter(id => isLive.has(id));
  let nextShared = 0;
  for (const id of applied) {
    takeLiveOnly(shared[nextShared]);
    places.push({ applied: id });
    if (shared[nextShared] === id) {
      nextShared++;
      if (live[at] === id) at++;
    }
  }
  takeLiveOnly(undefined);
  return places;
}
