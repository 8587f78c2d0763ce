import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { isNotFound } from '../kube/error.ts';
import { listAll } from '../kube/list.ts';
import type { Kube } from '../kube/port.ts';
import { type KubeObject, type Resource, SECRETS } from '../kube/resource.ts';
import { loadObjects } from './files.ts';
import { withoutPrivateData } from './public-secret.ts';

/** Where objects come from. Secrets leave it without anything private. */
export interface ObjectSource {
  list<T extends KubeObject>(resource: Resource<T>, selection?: SourceSelection): Promise<readonly T[]>;
  readonly warnings: readonly string[];
}

export interface SourceSelection {
  /** Absent: all. */
  readonly namespace?: string | undefined;
  readonly fieldSelector?: string | undefined;
}

/** Objects of a cluster. A kind the cluster does not know has no objects. */
export function clusterSource(kube: Pick<Kube, 'list'>): ObjectSource {
  return {
    warnings: [],
    async list<T extends KubeObject>(resource: Resource<T>, selection: SourceSelection = {}) {
      try {
        const { items } = await listAll(kube, resource, selection);
        return resource.kind === SECRETS.kind ? publicOnly(items) : items;
      } catch (error) {
        if (isNotFound(error)) return [];
        throw error;
      }
    },
  };
}

/** Objects of files and folders, read once. */
export function fileSource(paths: readonly string[]): ObjectSource {
  const { objects, warnings } = loadObjects(paths);
  const byKind = Map.groupBy(objects, ({ kind }) => kind);
  return {
    warnings,
    async list<T extends KubeObject>({ kind, group }: Resource<T>, { namespace }: SourceSelection = {}) {
      const found = (byKind.get(kind) ?? []).filter(
        ({ apiVersion = '', metadata }) =>
          (namespace === undefined || metadata.namespace === namespace) &&
          // Kinds of the same name in other groups are other kinds.
          (apiVersion === '' || (group === '' ? !apiVersion.includes('/') : apiVersion.startsWith(`${group}/`))),
      );
      const items = found as unknown as T[];
      return kind === SECRETS.kind ? publicOnly(items) : items;
    },
  };
}

function publicOnly<T extends KubeObject>(items: readonly T[]): T[] {
  return items.map(secret => withoutPrivateData(secret as Secret) as T);
}
