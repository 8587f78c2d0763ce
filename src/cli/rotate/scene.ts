import type { Lease } from 'kubernetes-types/coordination/v1.d.ts';
import type { ConfigMap, Pod } from 'kubernetes-types/core/v1.d.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, LEASES, NODES, PODS, SECRETS } from '../../kube/resource.ts';
import {
  CLUSTER_RECORD,
  type ClusterSettings,
  type ClusterStatus,
  readSettings,
  statusOf,
} from '../../kubeadm/cluster-record.ts';
import { CLUSTER_INFO, PKI_NAMESPACE, ROOT_CA } from '../../kubeadm/names.ts';
import type { SeenNode } from '../../kubeadm/operator/evidence.ts';
import { type FamilyState, familiesIn, type PkiObjects } from '../../kubeadm/operator/families.ts';
import { OPERATOR_LEASE } from '../../kubeadm/operator/names.ts';
import { nodesSeen } from '../../kubeadm/operator/sight.ts';

/** An adopted cluster as the command sees it. */
export interface Scene {
  readonly settings: ClusterSettings;
  readonly status: ClusterStatus | undefined;
  readonly nodes: readonly SeenNode[];
  readonly families: readonly FamilyState[];
  readonly pki: PkiObjects;
  readonly clusterInfo: ConfigMap | undefined;
  readonly record: ConfigMap;
  /** Who leads among operators; undefined: nobody ever did. */
  readonly lease: Lease | undefined;
  readonly now: Date;
}

/** Reads it; an error says what is missing, and which command helps. */
export async function readScene(kube: Kube, now: Date): Promise<Scene> {
  const record = await getIfPresent(kube, CONFIG_MAPS, CLUSTER_RECORD);
  if (record === undefined) {
    const where = `ConfigMap ${CLUSTER_RECORD.namespace}/${CLUSTER_RECORD.name}`;
    throw new Error(`the cluster is not adopted: there is no ${where}; run rotunda adopt kubeadm first`);
  }
  const read = readSettings(record);
  if (!read.ok) throw new Error(read.problem);
  const [secrets, configMaps, nodes, lease, clusterInfo] = await Promise.all([
    listAll(kube, SECRETS, { namespace: PKI_NAMESPACE }),
    listAll(kube, CONFIG_MAPS, { namespace: PKI_NAMESPACE }),
    listAll(kube, NODES),
    getIfPresent(kube, LEASES, OPERATOR_LEASE),
    getIfPresent(kube, CONFIG_MAPS, CLUSTER_INFO),
  ]);
  const pki = { secrets: secrets.items, configMaps: configMaps.items };
  const seen = nodesSeen(nodes.items, pki.configMaps);
  return {
    settings: read.settings,
    record,
    status: statusOf(record),
    nodes: seen,
    families: familiesIn(pki, seen, now, read.settings.dayMs),
    pki,
    clusterInfo,
    lease,
    now,
  };
}

/** The pods, and what they verify kube-apiserver with: asked only for a plan. */
export async function readPods(
  kube: Kube,
): Promise<{ readonly pods: readonly Pod[]; readonly rootCas: readonly ConfigMap[] }> {
  const [pods, rootCas] = await Promise.all([
    listAll(kube, PODS),
    listAll(kube, CONFIG_MAPS, { fieldSelector: `metadata.name=${ROOT_CA.name}` }),
  ]);
  return { pods: pods.items, rootCas: rootCas.items };
}
