import type { ObjectReference } from 'kubernetes-types/core/v1.d.ts';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import { listAll } from './list.ts';
import type { Kube } from './port.ts';
import { type KubeObject, PODS, REPLICA_SETS, type Resource } from './resource.ts';

/** Longer chains of owners are a mistake; pod, ReplicaSet and Deployment are three. */
const LONGEST_CHAIN = 5;

/**
 * The object that events of this process are about: the controller of its pod, as far up as it goes. Where that cannot
 * be found out, the Namespace, together with the reason why (spec 30, 4.4).
 */
export async function findInvolvedObject(
  kube: Kube,
  namespace: string,
  podName: string | undefined,
): Promise<{ reference: ObjectReference; error?: unknown }> {
  try {
    const start = podName ? { kind: 'Pod', name: podName, namespace } : await anyController(kube, namespace);
    return { reference: await follow(kube, start) };
  } catch (error) {
    return { reference: { apiVersion: 'v1', kind: 'Namespace', name: namespace, namespace }, error };
  }
}

async function anyController(kube: Kube, namespace: string): Promise<ObjectReference> {
  const { items } = await listAll(kube, PODS, { namespace });
  for (const pod of items) {
    const controller = controllerOf(pod);
    if (controller !== undefined) return referenceTo(controller, namespace);
  }
  throw new Error(`expected a pod with a controller in namespace ${namespace}, found none among ${items.length}`);
}

async function follow(kube: Kube, start: ObjectReference): Promise<ObjectReference> {
  let reference = start;
  for (let step = 0; step < LONGEST_CHAIN; step++) {
    const resource = RESOURCES[reference.kind ?? ''];
    if (resource === undefined) return reference;
    const { name = '', namespace } = reference;
    const object = await kube.get(resource, { name, namespace });
    const controller = controllerOf(object);
    if (controller === undefined) {
      const { uid } = object.metadata ?? {};
      const apiVersion = reference.apiVersion ?? 'v1';
      return { ...reference, apiVersion, ...(uid === undefined ? {} : { uid }) };
    }
    reference = referenceTo(controller, namespace ?? '');
  }
  return reference;
}

const RESOURCES: Readonly<Record<string, Resource | undefined>> = { Pod: PODS, ReplicaSet: REPLICA_SETS };

function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata?.ownerReferences?.find(owner => owner.controller === true);
}

function referenceTo({ apiVersion, kind, name, uid }: OwnerReference, namespace: string): ObjectReference {
  return { apiVersion, kind, name, namespace, uid };
}
