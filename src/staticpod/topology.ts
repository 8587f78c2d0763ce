import { type KubeObject, NODES, type Resource, resource } from '../kube/resource.ts';
import type { Topology } from './config.ts';
import { CONTROL_PLANE_LABELS } from './nodes.ts';
import type { Objects } from './objects.ts';

export interface Infrastructure extends KubeObject {
  status?: { controlPlaneTopology?: string };
}

export const INFRASTRUCTURES: Resource<Infrastructure> = resource<Infrastructure>(
  'config.openshift.io/v1',
  'Infrastructure',
  'infrastructures',
  false,
);

/** Whether the cluster says of itself that its control plane has one node (OpenShift's `Infrastructure`). */
export function topologyOf(infrastructure: Infrastructure | undefined): boolean {
  if (infrastructure === undefined) {
    throw new Error(
      'Unable to list infrastructures.config.openshift.io/cluster object, unable to determine topology mode',
    );
  }
  const { controlPlaneTopology = '' } = infrastructure.status ?? {};
  if (controlPlaneTopology === '') {
    throw new Error('ControlPlaneTopology was not set, unable to determine topology mode');
  }
  return controlPlaneTopology === 'SingleReplica';
}

/** Reads the topology from OpenShift's `Infrastructure`; not known until the cache is complete. */
export function openshiftTopology(cache: {
  readonly hasSynced: boolean;
  get(key: { name: string }): Infrastructure | undefined;
}): Topology {
  return () => (cache.hasSynced ? topologyOf(cache.get({ name: 'cluster' })) : undefined);
}

/** On any other Kubernetes the nodes are counted; not known while there are none. */
export function countedTopology(cached: Objects): Topology {
  return async () => {
    const nodes = await cached.list(NODES, { labels: CONTROL_PLANE_LABELS });
    return nodes.length === 0 ? undefined : nodes.length === 1;
  };
}
