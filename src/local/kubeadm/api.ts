import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { KUBE_APISERVER_PORT } from '../../kubeadm/names.ts';
import { writeFileAtomically } from '../../staticpod/node/atomic-write.ts';
import { systemFiles } from '../../staticpod/node/files.ts';
import { type ClusterApi, embeddedApi } from '../cluster-api.ts';
import type { LayoutApiOptions } from '../layout.ts';
import { startLoadBalancer } from '../real/load-balancer.ts';
import { FRONTED_API } from '../stand-in-front.ts';
import { ENDPOINT_HOST } from './names.ts';

/**
 * The embedded API behind the kube-apiservers of the nodes, which let clients in by the files that kubeadm made; before those stands the
 * load balancer that `controlPlaneEndpoint` names.
 */
export async function kubeadmApi(options: LayoutApiOptions): Promise<ClusterApi> {
  const { dir, port, controlPlane } = options;
  const endpoint = join(dir, 'endpoint');
  const taken = portIn(endpoint);
  if (port !== 0 && taken !== undefined && port !== taken)
    throw new Error(
      `expected --api-port ${taken} or 0, found ${port}: the kubeconfigs of this cluster lead to ${ENDPOINT_HOST}:${taken}`,
    );
  const embedded = await embeddedApi({ ...options, dir: join(dir, 'api'), port: 0, isBehindOthers: true });
  try {
    const backends = controlPlane.map(host => ({ host, port: KUBE_APISERVER_PORT }));
    const balancer = await startLoadBalancer({ host: ENDPOINT_HOST, port: taken ?? port, backends });
    // Before anybody is told of it: the next start has to find it again.
    await writeFileAtomically(systemFiles(), endpoint, Buffer.from(`${ENDPOINT_HOST}:${balancer.port}\n`), 0o600);
    return {
      ...embedded,
      url: `https://${balancer.host}:${balancer.port}`,
      kubeconfigPath: join(dir, 'kubeconfig'),
      // Static pods have kubeconfigs of their own; kube-apiserver alone goes past all of them.
      podKubeconfig: undefined,
      podEnv: { [FRONTED_API]: embedded.kubeconfigPath },
      async close() {
        await balancer.close();
        await embedded.close();
      },
    };
  } catch (error) {
    await embedded.close();
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || taken === undefined) throw error;
    throw new Error(
      `expected ${ENDPOINT_HOST}:${taken} to be free: the kubeconfigs of this cluster lead there, and somebody else listens`,
      { cause: error },
    );
  }
}

/** The port that the cluster has had since it began; undefined: it begins now. */
function portIn(endpoint: string): number | undefined {
  if (!existsSync(endpoint)) return undefined;
  const port = Number(readFileSync(endpoint, 'utf8').trim().split(':')[1]);
  if (!(port > 0 && port < 65_536)) throw new Error(`${endpoint}: expected an address with a port`);
  return port;
}
