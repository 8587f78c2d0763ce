import { createIfMissing } from '../kube/create-if-missing.ts';
import type { Kube } from '../kube/port.ts';
import { NAMESPACES } from '../kube/resource.ts';
import { WATCHED_NAMESPACES } from './namespaces.ts';
import { API_SERVERS, CLUSTER, KUBE_API_SERVERS } from './resources.ts';

/**
 * Makes what every cluster must have where it is missing: the namespaces, the resource the operator is steered with, and an
 * APIServer without wishes, without which no named certificates are observed and nothing is rolled out (spec 20, 8.3.4). Its audit profile
 * is named, because 4.16 refuses an empty one. What is there stays.
 */
export async function ensureCluster(kube: Kube, signal?: AbortSignal): Promise<void> {
  for (const name of WATCHED_NAMESPACES) await createIfMissing(kube, NAMESPACES, { metadata: { name } }, signal);
  await createIfMissing(kube, API_SERVERS, { metadata: CLUSTER, spec: { audit: { profile: 'Default' } } }, signal);
  await createIfMissing(kube, KUBE_API_SERVERS, { metadata: CLUSTER, spec: { managementState: 'Managed' } }, signal);
}
