import { KubeError } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, type ObjectKey } from '../../kube/resource.ts';
import { CLUSTER_INFO, KUBEADM_CONFIG } from '../../kubeadm/names.ts';
import { type LayoutFlags, saidLayout } from './layout-flag.ts';
import type { Layout } from './look.ts';

/** What is said wins; else what kubeadm leaves in a cluster tells. Rotunda's own objects are those of OpenShift's layout. */
export async function layoutOf({ layout }: LayoutFlags, kube: Pick<Kube, 'get'>): Promise<Layout> {
  const said = saidLayout(layout);
  if (said !== undefined) return said;
  // Not everybody may read the first, and everybody may read the second.
  return (await isThere(kube, KUBEADM_CONFIG)) || (await isThere(kube, CLUSTER_INFO)) ? 'kubeadm' : 'openshift';
}

async function isThere(kube: Pick<Kube, 'get'>, key: ObjectKey): Promise<boolean> {
  try {
    return (await getIfPresent(kube, CONFIG_MAPS, key)) !== undefined;
  } catch (error) {
    if (error instanceof KubeError && (error.code === 403 || error.code === 401)) return false;
    throw error;
  }
}
