import type { Call } from '../rest/core.ts';
import { forbidden, notFound } from '../status.ts';
import type { Store } from '../store/store.ts';

/** Exist from the start and cannot be deleted. `kube-node-lease` exists from the start too, but can. */
export const PROTECTED_NAMESPACES: readonly string[] = ['default', 'kube-public', 'kube-system'];

const NAMESPACES = { group: '', plural: 'namespaces' };

/** Nothing is created in a namespace that does not exist or is on its way out. */
export function checkNamespaceOpen(store: Store, { kind, namespace, name }: Call): void {
  if (!kind.namespaced) return;
  const found = store.newest('/namespaces', namespace);
  if (found === undefined) throw notFound(NAMESPACES, namespace);
  if (found.object.metadata?.deletionTimestamp === undefined) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  throw forbidden(kind, name, why, [
    {
      reason: 'NamespaceTerminating',
      message: `namespace ${namespace} is being terminated`,
      field: 'metadata.namespace',
    },
  ]);
}

export function checkNamespaceRemovable({ kind, name }: Call): void {
  if (kind.bucket !== '/namespaces' || !PROTECTED_NAMESPACES.includes(name)) return;
  throw forbidden(kind, name, 'this namespace may not be deleted');
}
