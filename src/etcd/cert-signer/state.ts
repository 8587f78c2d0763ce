import type { ConfigMap, Node, Secret } from 'kubernetes-types/core/v1.d.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NODES, SECRETS } from '../../kube/resource.ts';
import { CONTROL_PLANE_LABELS } from '../../staticpod/nodes.ts';
import type { StaticPodOperatorStatus } from '../../staticpod/operator.ts';
import { ALL_BUNDLES, ALL_CERTS, ETCD_NAMESPACE } from '../names.ts';
import { type BootstrapStatus, bootstrapStatusOf, readInstallerBootstrap } from '../quorum/bootstrap.ts';
import { currentRevision, hasEverRun } from '../quorum/rollout.ts';
import { CLUSTER, ETCDS, KUBE_API_SERVERS } from '../resources.ts';
import { UnreportedFailure } from './failure.ts';

/** What a pass starts from, read from the API itself: a cache that is behind once made bundles wrong (spec 40, 3.1). */
export interface ClusterState {
  readonly managementState: string | undefined;
  /** Of the control plane, in order of name. */
  readonly nodes: readonly Node[];
  readonly etcd: StaticPodOperatorStatus;
  /** Undefined: the cluster has no operator for kube-apiserver. */
  readonly kubeApiServer: StaticPodOperatorStatus | undefined;
  readonly bootstrap: BootstrapStatus;
  readonly allCerts: Secret | undefined;
  readonly allBundles: ConfigMap | undefined;
}

export async function readState(kube: Kube, signal?: AbortSignal): Promise<ClusterState> {
  const options = { signal };
  const inEtcd = (name: string) => ({ namespace: ETCD_NAMESPACE, name });
  const [operator, nodes, kubeApiServer, bootstrap, allCerts, allBundles] = await Promise.all([
    getIfPresent(kube, ETCDS, CLUSTER, options).catch((error: unknown) => {
      throw new UnreportedFailure("skipping EtcdCertSignerController can't get current status", error);
    }),
    controlPlaneNodes(kube, signal),
    getIfPresent(kube, KUBE_API_SERVERS, CLUSTER, options),
    readInstallerBootstrap(kube, signal),
    getIfPresent(kube, SECRETS, inEtcd(ALL_CERTS), options),
    getIfPresent(kube, CONFIG_MAPS, inEtcd(ALL_BUNDLES), options),
  ]);
  return {
    managementState: operator?.spec?.managementState,
    nodes,
    etcd: operator?.status ?? {},
    kubeApiServer: kubeApiServer === undefined ? undefined : (kubeApiServer.status ?? {}),
    bootstrap: bootstrapStatusOf(bootstrap),
    allCerts,
    allBundles,
  };
}

/** The nodes that run etcd or are to, in order of name. */
export async function controlPlaneNodes(kube: Kube, signal?: AbortSignal): Promise<Node[]> {
  const [[label]] = Object.entries(CONTROL_PLANE_LABELS) as [[string, string]];
  const { items } = await listAll(kube, NODES, { labelSelector: label, signal });
  const nodes = items.filter(({ metadata }) => metadata?.labels?.[label] !== undefined);
  const nameOf = ({ metadata }: Node) => metadata?.name ?? '';
  return nodes.sort((a, b) => (nameOf(a) < nameOf(b) ? -1 : 1));
}

/**
 * `installation`: nobody runs yet who could be locked out; `rolling`: members are being restarted, so nothing is rotated and only what
 * a node lacks is made; `settled`: everything may happen, behind the gate.
 */
export type Phase = 'installation' | 'rolling' | 'settled';

/** Whether an installer says that it is at work. */
export function isInstalling(bootstrap: BootstrapStatus): boolean {
  return bootstrap !== undefined && bootstrap !== 'complete';
}

/** A deleted `kube-system/bootstrap` is no new installation (spec 40, T-16). */
export function phaseOf({ bootstrap, etcd }: Pick<ClusterState, 'bootstrap' | 'etcd'>): Phase {
  if (isInstalling(bootstrap)) return 'installation';
  if (!hasEverRun(etcd)) return 'installation';
  return 'error' in currentRevision(etcd) ? 'rolling' : 'settled';
}
