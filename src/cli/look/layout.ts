import { KubeError } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { KUBEADM_CONFIG } from '../../kubeadm/names.ts';
import type { Cluster } from '../cluster.ts';
import { readClusterInfo } from './cluster-info.ts';
import { type LayoutFlags, saidLayout } from './layout-flag.ts';
import type { Layout } from './look.ts';

/** What is said wins; else what kubeadm leaves in a cluster tells. Rotunda's own objects are those of OpenShift's layout. */
export async function layoutOf({ layout }: LayoutFlags, cluster: Cluster): Promise<Layout> {
  const said = saidLayout(layout);
  if (said !== undefined) return said;
  const isKubeadm = (await hasConfiguration(cluster)) || (await readClusterInfo(cluster)) !== undefined;
  return isKubeadm ? 'kubeadm' : 'openshift';
}

/** Not everybody may read it. */
async function hasConfiguration({ kube }: Cluster): Promise<boolean> {
  try {
    return (await getIfPresent(kube, CONFIG_MAPS, KUBEADM_CONFIG)) !== undefined;
  } catch (error) {
    if (error instanceof KubeError && error.code === 403) return false;
    throw error;
  }
}
