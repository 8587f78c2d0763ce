import type { ObjectReference } from 'kubernetes-types/core/v1.d.ts';
import type { EventRecorder } from '../kube/events.ts';
import { apiVersionOf, type KubeObject, type Resource } from '../kube/resource.ts';
import { MCO_NAMESPACE } from '../machine-config-api/names.ts';

/** Gives a recorder for events about one object. */
export type EventsAbout = (involved: ObjectReference) => Pick<EventRecorder, 'event'>;

/** How events name an object. Those about objects without a namespace are kept in the operator's (spec 50, section 12). */
export function involvedObject(resource: Resource, object: KubeObject): ObjectReference {
  const { name = '', namespace = MCO_NAMESPACE, uid } = object.metadata ?? {};
  return {
    apiVersion: apiVersionOf(resource),
    kind: resource.kind,
    name,
    namespace,
    ...(uid !== undefined && { uid }),
  };
}
