import type { KubeObject } from '../../kube/resource.ts';
import { sameJson } from '../schema/json.ts';
import type { JsonObject, Schema } from '../schema/schema.ts';
import { applyConflict } from './conflict.ts';
import { FieldSet } from './field-set.ts';
import { changesBetween, fieldsOf, withNamedFields, withoutFields } from './fields.ts';
import { identityOf, type Manager, type Managers, readManagers, timeOf, writeManagers } from './managers.ts';
import { mergeApplied } from './merge-applied.ts';
import {
  contested,
  fieldPaths,
  outside,
  withManagedFields,
  withoutManagedFields,
  withoutOwnerless,
  yielded,
} from './ownership.ts';
import { malformed } from './refused.ts';
import { recordUpdate } from './update.ts';

/** One server-side apply. */
export interface ApplyRequest {
  readonly schema: Schema;
  /** Absent: the object is created. */
  readonly live: KubeObject | undefined;
  /** What the manager wants, and all it wants: fields it no longer names are given up. */
  readonly applied: KubeObject;
  readonly apiVersion: string;
  readonly manager: string;
  /** Take over fields of others instead of failing. */
  readonly force: boolean;
  readonly subresource?: string | undefined;
  /** Fields that this endpoint ignores, `[['status']]` for the object itself. */
  readonly resetFields?: readonly (readonly string[])[] | undefined;
  readonly now: Date;
}

/**
 * The object after server-side apply, with its `managedFields`. Throws 409 with one cause for each contested field. When
 * nothing changes, the live object comes back as it is.
 */
export function applyConfiguration(request: ApplyRequest): KubeObject {
  const { schema, live, force, resetFields } = request;
  if (request.manager === '') throw malformed('fieldManager is required for apply patch');
  const before = withoutManagedFields(live);
  const applied = withoutManagedFields(request.applied);
  const ignored = fieldPaths(resetFields);
  const managers = managersBefore(request);
  const self = selfOf(request);
  const id = identityOf(self);
  const last = managers.get(id)?.fields;
  const fields = fieldsOf(schema, applied).without(ignored);

  const merged = mergeApplied(schema, before, applied) as JsonObject;
  const others = [...managers].filter(([other]) => other !== id).map(([, { fields }]) => fields);
  const after = last === undefined ? merged : givenUp(schema, merged, last, fields, others);

  const changes = outside(changesBetween(schema, before, after), ignored);
  const conflicts = contested(managers, id, changes);
  if (conflicts.size > 0 && !force) {
    throw applyConflict([...conflicts].map(([other, fields]) => ({ manager: managers.get(other) as Manager, fields })));
  }
  const owned = withoutOwnerless(fields);
  const result = new Map(yielded(managers, id, changes));
  const unchanged = sameJson(before, after) && last !== undefined && last.equals(owned);
  if (owned.isEmpty) result.delete(id);
  else result.set(id, { ...self, time: unchanged ? managers.get(id)?.time : timeOf(request.now), fields: owned });
  return finished(live, after, result);
}

/** Nothing but the order of things may differ from the live object: then it is the live object. */
function finished(live: KubeObject | undefined, after: JsonObject, managers: Managers): KubeObject {
  const object = withManagedFields(after, writeManagers(managers));
  return live !== undefined && sameJson(object, live) ? live : object;
}

function selfOf({ manager, apiVersion, subresource = '' }: ApplyRequest): Omit<Manager, 'fields' | 'time'> {
  return { name: manager, operation: 'Apply', apiVersion, subresource };
}

const BEFORE_FIRST_APPLY = 'before-first-apply';

/** Who owned what before. When nobody kept account, everything there is belongs to a manager of that name. */
function managersBefore({ schema, live, apiVersion, now }: ApplyRequest): Managers {
  const managers =
    readManagers((live?.metadata as JsonObject | undefined)?.['managedFields']) ?? new Map<string, Manager>();
  if (live === undefined || managers.size > 0) return managers;
  return recordUpdate(
    { schema, live: undefined, updated: live, apiVersion, manager: BEFORE_FIRST_APPLY, now },
    managers,
  );
}

/**
 * The merged object without what the manager applied last time and nobody, itself included, owns now. A field of a type
 * counts as owned by whoever owns something in it, so it goes when its last part goes.
 */
function givenUp(
  schema: Schema,
  merged: JsonObject,
  last: FieldSet,
  fields: FieldSet,
  others: readonly FieldSet[],
): JsonObject {
  const owned = others.reduce((all, theirs) => all.union(theirs), fields);
  const present = withNamedFields(schema, fieldsOf(schema, merged));
  const removed = withNamedFields(schema, last).difference(withNamedFields(schema, owned)).intersection(present);
  return withoutFields(schema, merged, removed, fields) as JsonObject;
}
