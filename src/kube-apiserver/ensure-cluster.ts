import { isAlreadyExists } from '../kube/error.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { type KubeObject, keyOf, NAMESPACES, type Resource } from '../kube/resource.ts';
import { WATCHED_NAMESPACES } from './namespaces.ts';
import { API_SERVERS, CLUSTER, KUBE_API_SERVERS } from './resources.ts';

/**
 * Makes what every cluster must have where it is missing: the namespaces, the resource the operator is steered with, and an empty
 * APIServer, without which no named certificates are observed and nothing is rolled out (spec 20, 8.3.4). What is there stays.
 */
export async function ensureCluster(kube: Kube, signal?: AbortSignal): Promise<void> {
  for (const name of WATCHED_NAMESPACES) await ensure(kube, NAMESPACES, { metadata: { name } }, signal);
  await ensure(kube, API_SERVERS, { metadata: CLUSTER, spec: {} }, signal);
  await ensure(kube, KUBE_API_SERVERS, { metadata: CLUSTER, spec: { managementState: 'Managed' } }, signal);
}

async function ensure<T extends KubeObject>(
  kube: Kube,
  resource: Resource<T>,
  object: T,
  signal?: AbortSignal,
): Promise<void> {
  if ((await getIfPresent(kube, resource, keyOf(object), { signal })) !== undefined) return;
  try {
    await kube.create(resource, object, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
