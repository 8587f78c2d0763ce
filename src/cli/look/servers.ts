import { isIP } from 'node:net';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { serverAddressOf } from '../../kube/server-address.ts';
import { KUBELET_PORT } from '../../kube-apiserver/rotation/evidence.ts';
import { serversIn } from '../../kubeadm/static-pods.ts';
import type { Cluster } from '../cluster.ts';
import type { ClusterObjects } from './cluster-objects.ts';

/** A server that is asked for its certificate. */
export interface AskedServer {
  /** What it shows: the leaf of this name, or a kubelet's own. */
  readonly shows: 'apiserver' | 'etcd-server' | 'etcd-peer' | 'kubelet';
  /** Absent where nobody says on which node it is. */
  readonly node?: string | undefined;
  readonly host: string;
  readonly port: number;
  readonly serverName?: string | undefined;
  /** Only the kubeconfig names it: it may be a load balancer with a certificate of its own. */
  readonly isOwn?: boolean | undefined;
}

/** Every server that the kubeconfig and the objects of a cluster name, each address once. */
export function serversOf(
  { server, shown }: Pick<Cluster, 'server' | 'shown'>,
  objects?: ClusterObjects,
): AskedServer[] {
  const own = serverAddressOf(server, shown.serverName);
  const pods = objects === undefined ? [] : serversIn(objects.pods);
  const found: AskedServer[] = [
    ...(own === undefined ? [] : [{ shows: 'apiserver' as const, ...own, isOwn: true }]),
    ...pods.map(({ chain, ...place }) => ({ shows: chain, ...place })),
    ...endpointsOf(objects),
    ...(objects?.nodes ?? []).flatMap(kubeletOf),
  ];
  // A loopback address in a flag is that of the node, and not of this machine, unless nodes themselves are of this machine.
  const local = new Set([own?.host, ...(objects?.nodes ?? []).map(internalAddressOf)]);
  const reachable = found.filter(one => local.has(one.host) || !isLoopback(one.host));
  const places = Map.groupBy(reachable, ({ host, port }) => `${host} ${port}`);
  return [...places.values()].map(group => {
    const [first] = group as [AskedServer, ...AskedServer[]];
    const node = group.map(one => one.node).find(Boolean);
    return { ...first, node, isOwn: group.every(({ isOwn }) => isOwn === true) };
  });
}

function endpointsOf(objects: ClusterObjects | undefined): AskedServer[] {
  const { endpoints = [], ports = [] } = objects?.endpoints ?? {};
  const port = (ports ?? []).find(({ name }) => name === 'https')?.port ?? ports?.[0]?.port;
  if (port === undefined) return [];
  return (endpoints ?? []).flatMap(({ addresses }) =>
    addresses.map(host => ({ shows: 'apiserver' as const, host, port })),
  );
}

/** Where a node's kubelet listens; empty where the node has no address. */
function kubeletOf(node: Node): AskedServer[] {
  const { metadata, status } = node;
  const host = internalAddressOf(node);
  // 0 where nobody has said.
  const port = status?.daemonEndpoints?.kubeletEndpoint?.Port || KUBELET_PORT;
  return host === undefined ? [] : [{ shows: 'kubelet', node: metadata?.name ?? '', host, port }];
}

export function internalAddressOf({ status }: Node): string | undefined {
  return status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'));
}
