import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { type Infrastructure, internalUrlOf } from '../../kube-apiserver/resources.ts';
import { hostOfUrl } from '../../kube-apiserver/rotation/hostnames.ts';
import { API_PORT } from '../../kube-apiserver/target-config/pod.ts';
import type { Edge } from '../../trust/graph.ts';
import type { Route } from '../../trust/prober.ts';
import { nodeNames } from '../plan/effects.ts';

/** The ways on which an edge can be travelled from here: to every node that serves it, by the name its clients ask for. */
export function routesFrom(
  nodes: readonly Node[],
  infrastructure: Infrastructure | undefined,
): (edge: Edge) => Route[] | string {
  return ({ server }) => {
    const { url } = server.endpoint;
    const [, host = '', port = ''] = /^https:\/\/(.+):(\d+)$/.exec(url) ?? [];
    if (server.nodes === 'anywhere') return `nobody knows from here where the ${server.process} listens`;
    const served = nodeNames(nodes, server.nodes);
    const addresses = nodes
      .filter(({ metadata }) => served.includes(metadata?.name ?? ''))
      .flatMap(({ metadata, status }) => {
        const internal = (status?.addresses ?? []).find(({ type }) => type === 'InternalIP');
        return internal === undefined ? [] : [{ node: metadata?.name ?? '', address: internal.address }];
      });
    if (host === '<node address>') {
      return addresses.map(({ node, address }) => ({
        from: node,
        host: address,
        port: Number(port),
        serverName: address,
      }));
    }
    const name = apiName(host, infrastructure);
    if (name === undefined) return `${host} is not in infrastructures.config.openshift.io/cluster`;
    // Whatever the name, kube-apiserver listens on its nodes: each of them is asked, past any load balancer.
    return addresses.map(({ node, address }) => ({ from: node, host: address, port: API_PORT, serverName: name }));
  };
}

function apiName(host: string, infrastructure: Infrastructure | undefined): string | undefined {
  if (host === '<external API host>') return hostOfUrl(infrastructure?.status?.apiServerURL ?? '');
  if (host === '<internal API host>') return infrastructure && hostOfUrl(internalUrlOf(infrastructure));
  return host.includes('<') ? undefined : host;
}
