import type { KubeObject } from '../../kube/resource.ts';
import { isObject } from '../schema/json.ts';
import type { JsonObject } from '../schema/schema.ts';
import { FieldSet } from './field-set.ts';
import type { Changes } from './fields.ts';
import type { Managers } from './managers.ts';

/** What nobody owns: what an object is, and what the server writes. */
const OWNERLESS = FieldSet.of(
  ['f:apiVersion'],
  ['f:kind'],
  ['f:metadata'],
  ...[
    'name',
    'namespace',
    'creationTimestamp',
    'selfLink',
    'uid',
    'generation',
    'managedFields',
    'resourceVersion',
  ].map(field => ['f:metadata', `f:${field}`]),
);

export function withoutOwnerless(fields: FieldSet): FieldSet {
  return fields.difference(OWNERLESS);
}

/** `[['status'], ['metadata', 'labels']]` as a set. */
export function fieldPaths(paths: readonly (readonly string[])[] | undefined): FieldSet {
  return FieldSet.of(...(paths ?? []).map(path => path.map(field => `f:${field}`)));
}

/** Of each other manager, the fields it owns that the change touches. */
export function contested(managers: Managers, self: string, { added, modified }: Changes): Map<string, FieldSet> {
  const touched = added.union(modified);
  const conflicts = new Map<string, FieldSet>();
  for (const [id, { fields }] of managers) {
    const conflict = id === self ? undefined : fields.intersection(touched);
    if (conflict !== undefined && !conflict.isEmpty) conflicts.set(id, conflict);
  }
  return conflicts;
}

/** The managers after a change by `self`: the others lose what it touched or removed, and go when they have nothing left. */
export function yielded(managers: Managers, self: string, { added, modified, removed }: Changes): Managers {
  const taken = added.union(modified).union(removed);
  const result = new Map<string, ManagerOf>();
  for (const [id, manager] of managers) {
    const fields = id === self ? manager.fields : manager.fields.difference(taken);
    if (!fields.isEmpty) result.set(id, fields === manager.fields ? manager : { ...manager, fields });
  }
  return result;
}

type ManagerOf = Managers extends ReadonlyMap<string, infer M> ? M : never;

/** The changes outside of what an endpoint ignores. */
export function outside({ added, modified, removed }: Changes, ignored: FieldSet): Changes {
  if (ignored.isEmpty) return { added, modified, removed };
  return { added: added.without(ignored), modified: modified.without(ignored), removed: removed.without(ignored) };
}

/** The object without the bookkeeping of who owns what, which must not take part in it. */
export function withoutManagedFields(object: KubeObject | undefined): JsonObject {
  const fields = (object ?? {}) as JsonObject;
  const { metadata } = fields;
  if (!isObject(metadata) || !Object.hasOwn(metadata, 'managedFields')) return fields;
  const { managedFields: _, ...rest } = metadata;
  return { ...fields, metadata: rest };
}

/** The object with that bookkeeping. */
export function withManagedFields(object: JsonObject, entries: unknown): KubeObject {
  if (entries === undefined) return object;
  const metadata = isObject(object['metadata']) ? object['metadata'] : {};
  return { ...object, metadata: { ...metadata, managedFields: entries } } as KubeObject;
}
