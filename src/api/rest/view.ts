import type { KubeObject } from '../../kube/resource.ts';
import { apiVersionOfKind, type Kind } from '../kinds/kind.ts';
import { applyDefaults } from '../schema/defaults.ts';
import { prune } from '../schema/prune.ts';
import type { JsonObject } from '../schema/schema.ts';
import type { Entry } from '../store/entry.ts';

/** Whether an entry can be shown as it is stored: in the stored version, written under the present definition. */
export function isAsStored(kind: Kind, entry: Entry): boolean {
  return kind.conversion === undefined && (kind.custom === undefined || entry.revision > kind.custom.definedAt);
}

/** The object as this kind shows it. Shared: read only. */
export function present(kind: Kind, entry: Entry): KubeObject {
  if (isAsStored(kind, entry)) return entry.object;
  const shown = kind.conversion?.fromStored(entry.object) ?? { ...entry.object, apiVersion: apiVersionOfKind(kind) };
  if (kind.custom === undefined) return shown;
  return applyDefaults(kind.schema, prune(kind.schema, shown as JsonObject));
}

/** The object's JSON as this kind shows it. */
export function presentJson(kind: Kind, entry: Entry): Buffer {
  return isAsStored(kind, entry) ? entry.json : Buffer.from(JSON.stringify(present(kind, entry)));
}

export function toStored(kind: Kind, object: KubeObject): KubeObject {
  return kind.conversion?.toStored(object) ?? object;
}
