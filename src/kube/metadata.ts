import type { ObjectMeta, OwnerReference } from 'kubernetes-types/meta/v1.d.ts';

/** Something merged, and whether that made a difference. */
export interface Merged<T> {
  readonly result: T;
  readonly changed: boolean;
}

/** A key or uid that ends like this means "take it away" (spec 30, 6.1.2 and 6.1.3). */
const REMOVAL = '-';

/**
 * Brings labels, annotations and owner references of `required` into `existing`; everything else of `existing` stays as
 * it is (spec 30, 6.1.2).
 */
export function mergeMetadata(existing: ObjectMeta, required: ObjectMeta): Merged<ObjectMeta> {
  const labels = mergeKeys(existing.labels, required.labels);
  const annotations = mergeKeys(existing.annotations, required.annotations);
  const owners = mergeOwnerReferences(existing.ownerReferences, required.ownerReferences);
  const changed = labels.changed || annotations.changed || owners.changed;
  if (!changed) return { result: existing, changed };
  const result: ObjectMeta = {
    ...existing,
    ...(labels.changed ? { labels: labels.result } : {}),
    ...(annotations.changed ? { annotations: annotations.result } : {}),
    ...(owners.changed ? { ownerReferences: owners.result } : {}),
  };
  return { result, changed };
}

/** The metadata an object is created with: removals have nothing to remove and are dropped. */
export function metadataForCreate(required: ObjectMeta): ObjectMeta {
  const { resourceVersion: _resourceVersion, uid: _uid, ...rest } = required;
  return {
    ...rest,
    ...(required.labels ? { labels: mergeKeys({}, required.labels).result } : {}),
    ...(required.annotations ? { annotations: mergeKeys({}, required.annotations).result } : {}),
    ...(required.ownerReferences ? { ownerReferences: mergeOwnerReferences([], required.ownerReferences).result } : {}),
  };
}

type Keys = Record<string, string>;

/** Sets the required keys, removes `key` where `key-` is required, leaves the others alone. */
export function mergeKeys(existing: Keys | undefined, required: Keys | undefined): Merged<Keys> {
  const result: Keys = { ...existing };
  let changed = false;
  for (const [key, value] of Object.entries(required ?? {})) {
    if (key.endsWith(REMOVAL)) {
      const name = key.slice(0, -REMOVAL.length);
      if (!Object.hasOwn(result, name)) continue;
      delete result[name];
      changed = true;
    } else if (!Object.hasOwn(result, key) || result[key] !== value) {
      result[key] = value;
      changed = true;
    }
  }
  return { result, changed };
}

/**
 * Adds the required owners. The same owner (name, kind and API group) with other values is replaced, whether it is there
 * once or, as upstream left it, many times; an owner whose uid ends in `-` is removed; others stay (spec 30, 6.1.3;
 * spec 10, O-1 and 14.6).
 */
export function mergeOwnerReferences(
  existing: readonly OwnerReference[] | undefined,
  required: readonly OwnerReference[] | undefined,
): Merged<OwnerReference[]> {
  let result = [...(existing ?? [])];
  let changed = false;
  for (const owner of required ?? []) {
    const matches = result.filter(other => isSameOwner(other, owner));
    if (owner.uid?.endsWith(REMOVAL)) {
      result = result.filter(other => !isSameOwner(other, owner));
      changed ||= matches.length > 0;
    } else if (matches.length !== 1 || !matches.every(match => hasSameValues(match, owner))) {
      const first = result.findIndex(other => isSameOwner(other, owner));
      const place = first < 0 ? result.length : first;
      result = [...result.slice(0, place), owner, ...result.slice(place).filter(other => !isSameOwner(other, owner))];
      changed = true;
    }
  }
  return { result, changed };
}

function isSameOwner(a: OwnerReference, b: OwnerReference): boolean {
  return a.name === b.name && a.kind === b.kind && groupOf(a.apiVersion) === groupOf(b.apiVersion);
}

function hasSameValues(a: OwnerReference, b: OwnerReference): boolean {
  return (
    a.apiVersion === b.apiVersion &&
    a.uid === b.uid &&
    a.controller === b.controller &&
    a.blockOwnerDeletion === b.blockOwnerDeletion
  );
}

function groupOf(apiVersion = ''): string {
  const slash = apiVersion.indexOf('/');
  return slash < 0 ? '' : apiVersion.slice(0, slash);
}
