import type { KubeObject } from '../../kube/resource.ts';
import { isObject, sameJson } from '../schema/json.ts';
import type { JsonObject, Schema } from '../schema/schema.ts';
import { changesBetween, withoutStructs } from './fields.ts';
import { capped, identityOf, type Manager, type Managers, readManagers, timeOf, writeManagers } from './managers.ts';
import {
  fieldPaths,
  outside,
  withManagedFields,
  withoutManagedFields,
  withoutOwnerless,
  yielded,
} from './ownership.ts';

/** A create, an update, or a patch that is no apply. */
export interface UpdateRequest {
  readonly schema: Schema;
  /** Absent: the object is created. */
  readonly live: KubeObject | undefined;
  /** The object as it will be stored; its `managedFields` are what the client sent. */
  readonly updated: KubeObject;
  readonly apiVersion: string;
  /** Whoever makes the change: `?fieldManager=`, or else the start of the user agent. */
  readonly manager: string;
  readonly subresource?: string | undefined;
  /** Fields that this endpoint ignores, `[['status']]` for the object itself. */
  readonly resetFields?: readonly (readonly string[])[] | undefined;
  readonly now: Date;
}

/** The object with its `managedFields` brought up to date: the manager owns what it changed. */
export function trackUpdate(request: UpdateRequest): KubeObject {
  const { live, updated, subresource = '' } = request;
  const after = withoutManagedFields(updated);
  const kept = entriesOf(live);
  const managers = subresource === '' ? chosenManagers(live, updated) : (readManagers(kept) ?? new Map());
  // An object that nobody has owned so far stays so until the first apply.
  if (managers.size === 0 && live !== undefined) return withManagedFields(after, undefined);
  const tracked = recordUpdate(request, managers);
  const entries = writeManagers(tracked);
  return withManagedFields(after, sameJson(entries, kept) ? kept : entries);
}

/** The managers after a change from `live` to `updated`. */
export function recordUpdate(request: UpdateRequest, managers: Managers): Managers {
  const { schema, live, updated, apiVersion, manager, subresource = '', resetFields, now } = request;
  const ignored = fieldPaths(resetFields);
  const all = changesBetween(schema, withoutManagedFields(live), withoutManagedFields(updated));
  const changes = outside(all, ignored);
  const left = new Map(yielded(managers, '', changes));
  const taken = withoutStructs(schema, withoutOwnerless(changes.added.union(changes.modified)));
  if (taken.isEmpty) return capped(left);
  const self: Omit<Manager, 'fields' | 'time'> = {
    name: manager || 'unknown',
    operation: 'Update',
    apiVersion,
    subresource,
  };
  const id = identityOf(self);
  const fields = taken.union(left.get(id)?.fields ?? taken);
  left.set(id, { ...self, time: timeOf(now), fields });
  return capped(left);
}

/**
 * Clients may edit `managedFields`. Those who do not know them leave them out; that must not lose them. An empty list is
 * the way to start afresh.
 */
function chosenManagers(live: KubeObject | undefined, updated: KubeObject): Managers {
  const given = entriesOf(updated);
  if (isReset(given)) return new Map();
  const managers = given === undefined ? undefined : readManagers(given);
  if (managers !== undefined && managers.size > 0) return managers;
  return readManagers(entriesOf(live)) ?? new Map();
}

function isReset(entries: unknown): boolean {
  if (!Array.isArray(entries)) return false;
  return entries.length === 0 || (entries.length === 1 && isObject(entries[0]) && Object.keys(entries[0]).length === 0);
}

function entriesOf(object: KubeObject | undefined): unknown {
  return (object?.metadata as JsonObject | undefined)?.['managedFields'];
}
