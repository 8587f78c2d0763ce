import type { KubeObject } from '../../kube/resource.ts';
import { apiVersionOfKind, type Kind } from '../kinds/kind.ts';

/** Marks the bookmark that follows the last of the initial events. */
export const INITIAL_EVENTS_END = 'k8s.io/initial-events-end';

/** An object without content that tells how far a watch has come. */
export function bookmarkObject(kind: Kind, revision: number, initialEventsEnd: boolean): KubeObject {
  return {
    kind: kind.kind,
    apiVersion: apiVersionOfKind(kind),
    metadata: {
      resourceVersion: String(revision),
      ...(initialEventsEnd ? { annotations: { [INITIAL_EVENTS_END]: 'true' } } : {}),
    },
  };
}
