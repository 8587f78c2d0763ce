import { isObject } from '../schema/json.ts';
import type { JsonObject } from '../schema/schema.ts';
import { malformed } from './refused.ts';

/** How the elements of a list are known and merged. */
export interface ListMerge {
  /** The field that identifies an element. */
  readonly key: string;
  /** `original` is absent when the element is new. */
  readonly mergeElement: (original: JsonObject | undefined, patch: JsonObject) => JsonObject;
}

/** Merges elements with the same key, adds new ones, and obeys the elements that are directives. */
export function mergedKeyedList(
  original: readonly unknown[],
  patch: readonly unknown[],
  { key, mergeElement }: ListMerge,
): unknown[] {
  const deleted = new Set<string>();
  const changes = new Map<string, JsonObject[]>();
  let replaced = false;
  for (const element of patch) {
    if (!isObject(element)) throw notAnObject(key);
    switch (element['$patch']) {
      case undefined:
        addTo(changes, keyText(element, key), element);
        break;
      case 'delete':
        deleted.add(keyText(element, key));
        break;
      case 'replace':
        replaced = true;
        break;
      case 'merge':
        throw malformed('merging lists cannot yet be specified in the patch');
      default:
        throw malformed(`unknown patch type found: ${JSON.stringify(element['$patch'])}`);
    }
  }
  if (replaced) return [...changes.values()].flat().map(element => mergeElement(undefined, element));
  return merge(original, changes, deleted, { key, mergeElement });
}

function merge(
  original: readonly unknown[],
  changes: ReadonlyMap<string, readonly JsonObject[]>,
  deleted: ReadonlySet<string>,
  { key, mergeElement }: ListMerge,
): unknown[] {
  const merged: unknown[] = [];
  const seen = new Set<string>();
  for (const element of original) {
    if (!isObject(element)) continue;
    const id = identity(element, key);
    if (deleted.has(id)) continue;
    merged.push(seen.has(id) ? element : (changes.get(id) ?? []).reduce<JsonObject>(mergeElement, element));
    seen.add(id);
  }
  for (const [id, elements] of changes) {
    if (!seen.has(id)) merged.push(elements.reduce<JsonObject | undefined>(mergeElement, undefined));
  }
  return ordered(merged, [...changes.values()].flat(), original, key);
}

/** A patch may name an element twice; the second is merged into the first. */
function addTo(changes: Map<string, JsonObject[]>, id: string, element: JsonObject): void {
  const known = changes.get(id);
  if (known === undefined) changes.set(id, [element]);
  else known.push(element);
}

/** Both lists without repetitions. */
export function mergedScalarList(original: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const merged = [...new Map([...original, ...patch].map(element => [identity(element), element])).values()];
  return ordered(merged, patch, original, undefined);
}

export function withoutElements(list: readonly unknown[], removed: readonly unknown[]): unknown[] {
  const gone = new Set(removed.map(element => identity(element)));
  return list.filter(element => !gone.has(identity(element)));
}

/**
 * The elements the client knows in its order, and between them those it does not know, each before the first known one
 * that it used to stand before.
 */
export function ordered(
  merged: readonly unknown[],
  wanted: readonly unknown[],
  before: readonly unknown[],
  key: string | undefined,
): unknown[] {
  const wantedAt = places(wanted, key);
  const beforeAt = places(before, key);
  const id = (element: unknown) => identity(element, key);
  const byPlace = (at: ReadonlyMap<string, number>) => (a: unknown, b: unknown) =>
    (at.get(id(a)) ?? merged.length) - (at.get(id(b)) ?? merged.length);
  const known = merged.filter(element => wantedAt.has(id(element))).sort(byPlace(wantedAt));
  const others = merged.filter(element => !wantedAt.has(id(element))).sort(byPlace(beforeAt));
  const result: unknown[] = [];
  let next = 0;
  for (const element of known) {
    const place = beforeAt.get(id(element));
    for (; next < others.length; next++) {
      const other = beforeAt.get(id(others[next]));
      if (place === undefined || other === undefined || other >= place) break;
      result.push(others[next]);
    }
    result.push(element);
  }
  return [...result, ...others.slice(next)];
}

function places(list: readonly unknown[], key: string | undefined): Map<string, number> {
  const at = new Map<string, number>();
  list.forEach((element, index) => {
    const id = identity(element, key);
    if (!at.has(id)) at.set(id, index);
  });
  return at;
}

function keyText(element: JsonObject, key: string): string {
  checkKeyed(element, key);
  return identity(element, key);
}

/** Whatever a patch says of an element, it must say of which one. */
export function checkKeyed(element: unknown, key: string): void {
  if (!isObject(element)) throw notAnObject(key);
  if (element[key] === undefined) {
    throw malformed(`map: ${JSON.stringify(Object.keys(element))} does not contain declared merge key: ${key}`);
  }
}

function notAnObject(key: string): Error {
  return malformed(`a list merged by ${JSON.stringify(key)} holds objects, but the patch has another`);
}

function identity(element: unknown, key?: string): string {
  return JSON.stringify(key !== undefined && isObject(element) ? element[key] : element) ?? '';
}
