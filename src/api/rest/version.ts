import { KubeError } from '../../kube/error.ts';
import type { KubeObject } from '../../kube/resource.ts';
import type { Kind } from '../kinds/kind.ts';
import { invalid, invalidObject } from '../schema/field-error.ts';
import { badRequest, conflict, quote, STALE_OBJECT } from '../status.ts';
import type { Entry } from '../store/entry.ts';

/** Reads a `resourceVersion` parameter: a decimal number. Absent or empty: undefined. */
export function readVersion(text: string | undefined): number | undefined {
  if (text === undefined || text === '') return undefined;
  if (!/^\d{1,16}$/.test(text)) {
    throw badRequest(`invalid resource version: resourceVersion: Invalid value: ${quote(text)}: ${notANumber(text)}`);
  }
  return Number(text);
}

/** A new object has no version yet. */
export function versionOnCreate(object: KubeObject): void {
  const version = object.metadata?.resourceVersion ?? '';
  if (version === '' || version === '0') return;
  // The real server answers with a bare 500 here.
  throw new KubeError(500, '', 'resourceVersion should not be set on objects to be created');
}

/** What is applied to an object that is gone becomes a new one; the version it was made from means nothing then. */
export function withoutVersion(object: KubeObject): KubeObject {
  if (!/^\d+$/.test(object.metadata?.resourceVersion ?? '')) return object;
  const { resourceVersion: _, ...metadata } = object.metadata ?? {};
  return { ...object, metadata };
}

/** Optimistic concurrency: an object that says which version it was made from must have been made from the newest one. */
export function versionOnUpdate(kind: Kind, name: string, updated: KubeObject, newest: Entry): void {
  const { resourceVersion = '' } = updated.metadata ?? {};
  if (resourceVersion === '' || resourceVersion === '0') {
    if (kind.rules.needsResourceVersion !== true) return;
    const error = invalid('metadata.resourceVersion', 0, 'must be specified for an update');
    throw invalidObject(kind.group, kind.plural, name, [error]);
  }
  if (!/^\d+$/.test(resourceVersion)) throw new KubeError(500, '', notANumber(resourceVersion));
  if (resourceVersion !== String(newest.revision)) throw conflict(kind, name, STALE_OBJECT);
}

/** A PUT that names a UID means that very object. */
export function uidOnUpdate(kind: Kind, name: string, updated: KubeObject, newest: Entry): void {
  const { uid = '' } = updated.metadata ?? {};
  const { uid: stored = '' } = newest.object.metadata ?? {};
  if (uid === '' || uid === stored) return;
  throw conflict(kind, name, `Precondition failed: UID in precondition: ${uid}, UID in object meta: ${stored}`);
}

function notANumber(text: string): string {
  return `strconv.ParseUint: parsing ${quote(text)}: invalid syntax`;
}
