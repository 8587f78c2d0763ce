import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { fixedAccess } from '../../kube/access.ts';
import { HttpKube } from '../../kube/client.ts';
import { seconds } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { CLUSTER_INFO } from '../../kubeadm/names.ts';
import type { Cluster } from '../cluster.ts';

const LONGEST_WAIT_MS = seconds(5);

/**
 * What kubeadm publishes for nodes that join. It is meant for those who have not logged in, and kubeadm lets nobody else read it, so that
 * it is asked for without credentials where these are not enough. Undefined: there is none, or it is for nobody.
 */
export async function readClusterInfo({ kube, server, shown }: Cluster): Promise<ConfigMap | undefined> {
  try {
    return await kube.get(CONFIG_MAPS, CLUSTER_INFO);
  } catch (error) {
    if (!(error instanceof KubeError)) throw error;
    if (error.code !== 403) return undefined;
  }
  const { ca, serverName } = shown;
  const nobody = new HttpKube(fixedAccess(server, { tls: { ca, serverName } }), { requestTimeoutMs: LONGEST_WAIT_MS });
  try {
    return await nobody.get(CONFIG_MAPS, CLUSTER_INFO);
  } catch {
    return undefined;
  } finally {
    await nobody.close();
  }
}
