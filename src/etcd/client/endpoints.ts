import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { controlPlaneNodes } from '../cert-signer/state.ts';
import { BOOTSTRAP_IP, CLIENT_PORT, ENDPOINTS, ETCD_NAMESPACE } from '../names.ts';
import { preferredAddress, preferredFamily, urlHost } from '../node-address.ts';
import { CLUSTER, NETWORKS, type Network } from '../resources.ts';

/** Where etcd is asked: at the voting members, or on the nodes while nobody has written down who they are (spec 40, Q-7). */
export async function readEndpoints(kube: Kube, signal?: AbortSignal): Promise<string[]> {
  const configMap = await getIfPresent(kube, CONFIG_MAPS, { namespace: ETCD_NAMESPACE, name: ENDPOINTS }, { signal });
  if (configMap !== undefined) return endpointsOf(configMap);
  const [nodes, network] = await Promise.all([
    controlPlaneNodes(kube, signal),
    getIfPresent(kube, NETWORKS, CLUSTER, { signal }),
  ]);
  return endpointsOfNodes(nodes, network);
}

export function endpointsOf({ data = {}, metadata }: ConfigMap): string[] {
  const bootstrap = metadata?.annotations?.[BOOTSTRAP_IP];
  const addresses = [...Object.values(data).sort(), ...(bootstrap ? [bootstrap] : [])];
  return requireSome(addresses.map(clientURL));
}

export function endpointsOfNodes(nodes: readonly Node[], network: Network | undefined): string[] {
  const family = preferredFamily(network);
  return requireSome(nodes.map(node => clientURL(preferredAddress(node, family))));
}

export function clientURL(address: string): string {
  return `https://${urlHost(address)}:${CLIENT_PORT}`;
}

function requireSome(endpoints: string[]): string[] {
  if (endpoints.length === 0) throw new Error('endpoints func found no etcd endpoints');
  return endpoints;
}
