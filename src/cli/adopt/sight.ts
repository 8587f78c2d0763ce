import type { DaemonSet, Deployment } from 'kubernetes-types/apps/v1.d.ts';
import type { ConfigMap, Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { isNotFound } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, DEPLOYMENTS, NODES, PODS } from '../../kube/resource.ts';
import { AGENTS, OPERATOR } from '../../kubeadm/adopt/accounts.ts';
import type { ReportedNode } from '../../kubeadm/adopt/compare.ts';
import { DAEMON_SETS } from '../../kubeadm/adopt/objects.ts';
import { POLICIES } from '../../kubeadm/adopt/policies.ts';
import { type ClusterConfiguration, readClusterConfiguration } from '../../kubeadm/cluster-configuration.ts';
import { CLUSTER_RECORD, rotationDayFrom } from '../../kubeadm/cluster-record.ts';
import {
  CONTROL_PLANE_LABEL,
  KUBEADM_CONFIG,
  ROTATION_DAY,
  ROTUNDA_NAMESPACE,
  STATIC_POD_NAMESPACE,
} from '../../kubeadm/names.ts';
import { reportOf } from '../../kubeadm/report.ts';

/** What adoption and release of a kubeadm cluster start from. */
export interface AdoptionSight {
  readonly nodes: readonly Node[];
  readonly configuration: ClusterConfiguration | undefined;
  /** How long a day of validities lasts, where that is said. */
  readonly dayMs?: number | undefined;
  /** Mirror pods of kube-apiserver. */
  readonly apiServers: readonly Pod[];
  readonly record: ConfigMap | undefined;
  readonly daemonSets: readonly DaemonSet[];
  readonly deployment: Deployment | undefined;
  /** Pods of agents and operators. */
  readonly pods: readonly Pod[];
  /** Kubernetes 1.30 and newer do. */
  readonly knowsPolicies: boolean;
}

/** Reads it, everything at the same time. */
export async function readAdoption(kube: Kube, signal?: AbortSignal): Promise<AdoptionSight> {
  const options = { signal };
  const apiServerPods = { ...options, namespace: STATIC_POD_NAMESPACE, labelSelector: 'component=kube-apiserver' };
  const ourPods = {
    ...options,
    namespace: ROTUNDA_NAMESPACE,
    labelSelector: `app in (${[OPERATOR, ...AGENTS].join()})`,
  };
  const [nodes, configuration, apiServers, record, daemonSets, deployment, pods, knowsPolicies] = await Promise.all([
    listAll(kube, NODES, options),
    getIfPresent(kube, CONFIG_MAPS, KUBEADM_CONFIG, options),
    listAll(kube, PODS, apiServerPods),
    getIfPresent(kube, CONFIG_MAPS, CLUSTER_RECORD, options),
    Promise.all(AGENTS.map(name => getIfPresent(kube, DAEMON_SETS, { namespace: ROTUNDA_NAMESPACE, name }, options))),
    getIfPresent(kube, DEPLOYMENTS, { namespace: ROTUNDA_NAMESPACE, name: OPERATOR }, options),
    listAll(kube, PODS, ourPods),
    knows(kube, signal),
  ]);
  return {
    nodes: nodes.items,
    configuration: readClusterConfiguration(configuration?.data?.ClusterConfiguration),
    dayMs: rotationDayFrom(configuration?.metadata?.annotations?.[ROTATION_DAY]),
    apiServers: apiServers.items,
    record,
    daemonSets: daemonSets.filter(set => set !== undefined),
    deployment,
    pods: pods.items,
    knowsPolicies,
  };
}

/** The nodes with what their agents say. */
export function reportedNodes({ nodes }: Pick<AdoptionSight, 'nodes'>): ReportedNode[] {
  return nodes.map(node => ({
    name: node.metadata?.name ?? '',
    report: reportOf(node),
    isControlPlane: isControlPlane(node),
  }));
}

export function isControlPlane({ metadata }: Node): boolean {
  return Object.hasOwn(metadata?.labels ?? {}, CONTROL_PLANE_LABEL);
}

export function isReady({ status }: Node): boolean {
  return status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True') ?? false;
}

async function knows(kube: Kube, signal: AbortSignal | undefined): Promise<boolean> {
  try {
    await kube.list(POLICIES, { limit: 1, signal });
    return true;
  } catch (error) {
    if (isNotFound(error)) return false;
    throw error;
  }
}
