import { createIfMissing } from '../kube/create-if-missing.ts';
import type { Kube } from '../kube/port.ts';
import { NAMESPACES } from '../kube/resource.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE, OPERATOR_NAMESPACE } from './names.ts';
import { ETCDS } from './resources.ts';

/** Makes what the operator works with where it is missing: its namespaces and the resource it is steered with. */
export async function ensureCluster(kube: Kube, signal?: AbortSignal): Promise<void> {
  for (const name of [OPERATOR_NAMESPACE, ETCD_NAMESPACE, CONFIG_NAMESPACE, 'openshift-config-managed']) {
    await createIfMissing(kube, NAMESPACES, { metadata: { name } }, signal);
  }
  await createIfMissing(kube, ETCDS, { metadata: { name: 'cluster' }, spec: { managementState: 'Managed' } }, signal);
}
