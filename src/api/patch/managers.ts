import type { ManagedFieldsEntry } from 'kubernetes-types/meta/v1.d.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { isObject } from '../schema/json.ts';
import { FieldSet } from './field-set.ts';
import { decodeFieldsV1, encodeFieldsV1 } from './fields-v1.ts';

/** Who owns what: one entry of `managedFields`. */
export interface Manager {
  readonly name: string;
  readonly operation: 'Apply' | 'Update';
  readonly apiVersion: string;
  /** Empty for the object itself. */
  readonly subresource: string;
  readonly time: string | undefined;
  readonly fields: FieldSet;
}

/** What tells entries apart. An applier is the same whatever version it applies in. */
export function identityOf({ name, operation, apiVersion, subresource }: Omit<Manager, 'fields' | 'time'>): string {
  return JSON.stringify([name, operation, operation === 'Apply' ? '' : apiVersion, subresource]);
}

/** Managers by identity. */
export type Managers = ReadonlyMap<string, Manager>;

/** Reads `managedFields`; `undefined` when an entry is no good. */
export function readManagers(entries: unknown): Managers | undefined {
  if (entries === undefined || entries === null) return new Map();
  if (!Array.isArray(entries)) return undefined;
  const managers = new Map<string, Manager>();
  for (const entry of entries as unknown[]) {
    const manager = readManager(entry);
    if (manager === undefined) return undefined;
    managers.set(identityOf(manager), manager);
  }
  return managers;
}

function readManager(entry: unknown): Manager | undefined {
  if (!isObject(entry)) return undefined;
  const { manager = '', operation, apiVersion, subresource = '', time, fieldsType, fieldsV1 } = entry;
  if (operation !== 'Apply' && operation !== 'Update') return undefined;
  if (typeof apiVersion !== 'string' || apiVersion === '' || fieldsType !== 'FieldsV1') return undefined;
  const fields = fieldsV1 === undefined ? new FieldSet() : decodeFieldsV1(fieldsV1);
  if (fields === undefined) return undefined;
  return {
    name: String(manager),
    operation,
    apiVersion,
    subresource: String(subresource),
    time: typeof time === 'string' ? time : undefined,
    fields,
  };
}

/** `managedFields` in its conventional order; `undefined` when nobody owns anything. */
export function writeManagers(managers: Managers): ManagedFieldsEntry[] | undefined {
  if (managers.size === 0) return undefined;
  return [...managers.values()].sort(inOrder).map(({ name, operation, apiVersion, subresource, time, fields }) => ({
    manager: name,
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: encodeFieldsV1(fields),
    ...(subresource === '' ? {} : { subresource }),
  }));
}

function inOrder(a: Manager, b: Manager): number {
  const keys = (manager: Manager) => [
    manager.operation,
    manager.time ?? '',
    manager.name,
    manager.apiVersion,
    manager.subresource,
  ];
  const [left, right] = [keys(a), keys(b)];
  const differs = left.findIndex((key, index) => key !== right[index]);
  return differs < 0 ? 0 : (left[differs] ?? '') < (right[differs] ?? '') ? -1 : 1;
}

/** Entries of updates that are kept apart. */
export const MAX_UPDATE_MANAGERS = 10;
const ANCIENT = 'ancient-changes';

/** Merges the oldest entries of updates into one for each version, so that a busy object does not drown in them. */
export function capped(managers: Managers): Managers {
  const updates = [...managers.values()].filter(({ operation }) => operation === 'Update').sort(inOrder);
  let excess = updates.length - MAX_UPDATE_MANAGERS;
  if (excess <= 0) return managers;
  const result = new Map(managers);
  const firstOfVersion = new Map<string, Manager>();
  for (const manager of updates) {
    if (excess <= 0) break;
    const first = firstOfVersion.get(manager.apiVersion);
    if (first === undefined) {
      firstOfVersion.set(manager.apiVersion, manager);
      continue;
    }
    const bucket: Manager = { ...manager, name: ANCIENT, subresource: '' };
    const known = result.get(identityOf(bucket)) ?? first;
    result.delete(identityOf(first));
    result.delete(identityOf(manager));
    result.set(identityOf(bucket), { ...bucket, fields: manager.fields.union(known.fields) });
    excess--;
  }
  return result;
}

export function timeOf(now: Date): string {
  return formatRfc3339(now);
}
