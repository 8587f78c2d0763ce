import { KubeError } from '../../kube/error.ts';
import { DEFINITION_BUCKET } from '../kinds/rules/definition.ts';
import type { Call } from '../rest/core.ts';
import type { Store } from '../store/store.ts';

/** Nothing is created of a kind whose definition is on its way out. */
export function checkDefinitionOpen(store: Store, { kind }: Call): void {
  if (kind.custom === undefined) return;
  const definition = store.newest(DEFINITION_BUCKET, `${kind.plural}.${kind.group}`);
  if (definition?.object.metadata?.deletionTimestamp === undefined) return;
  throw new KubeError(405, 'MethodNotAllowed', 'create not allowed while custom resource definition is terminating', {
    group: kind.group,
    kind: kind.plural,
  });
}
