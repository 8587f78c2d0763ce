import type { Namespace } from 'kubernetes-types/core/v1.d.ts';
import type { Fields, Rules } from '../kind.ts';

/** Keeps a namespace until its content is gone; lives in `spec.finalizers`. */
export const NAMESPACE_FINALIZER = 'kubernetes';

export const namespaceRules: Rules = {
  keepsStatusOnCreate: true,
  statusWritesMetadata: true,
  prepareCreate: namespace => ({
    ...namespace,
    spec: { finalizers: [...new Set([...finalizersOf(namespace), NAMESPACE_FINALIZER])] },
    status: { phase: 'Active' },
  }),
  prepareUpdate: (namespace, old) => ({
    ...namespace,
    ...(old.spec === undefined ? {} : { spec: old.spec }),
  }),
  beginDelete: namespace => ({ ...namespace, status: { ...(namespace.status as object), phase: 'Terminating' } }),
  isHeld: namespace => finalizersOf(namespace).length > 0,
};

function finalizersOf(namespace: Fields): string[] {
  return (namespace as Namespace).spec?.finalizers ?? [];
}
