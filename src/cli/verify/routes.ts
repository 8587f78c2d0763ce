import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { nodeNames } from '../../forecast/effects.ts';
import { type Infrastructure, internalUrlOf } from '../../kube-apiserver/resources.ts';
import { hostOfUrl } from '../../kube-apiserver/rotation/hostnames.ts';
import { API_PORT } from '../../kube-apiserver/target-config/pod.ts';
import type { Edge } from '../../trust/graph.ts';
import type { Route } from '../../trust/prober.ts';

/** The ways on which an edge can be travelled from here: from every node that has such a client, and to every node that serves it. */
export function routesFrom(
  nodes: readonly Node[],
  infrastructure: Infrastructure | undefined,
): (edge: Edge) => Route[] | string {
  return ({ client, server }) => {
    const { url } = server.endpoint;
    const [, host = '', port = ''] = /^https:\/\/(.+):(\d+)$/.exec(url) ?? [];
    if (server.nodes === 'anywhere') return `nobody knows from here where the ${server.process} listens`;
    const served = nodeNames(nodes, server.nodes);
    const servers = nodes
      .filter(({ metadata }) => served.includes(metadata?.name ?? ''))
      .flatMap(({ metadata, status }) => {
        const internal = (status?.addresses ?? []).find(({ type }) => type === 'InternalIP');
        return internal === undefined ? [] : [{ node: metadata?.name ?? '', address: internal.address }];
      });
    const isPerNode = host === '<node address>';
    const name = isPerNode ? undefined : apiName(host, infrastructure);
    if (!isPerNode && name === undefined) return `${host} is not in infrastructures.config.openshift.io/cluster`;
    const clients = client.nodes === 'anywhere' ? ['anywhere'] : nodeNames(nodes, client.nodes);
    return pairs(clients, servers, host === 'localhost').map(({ from, address }) => ({
      from,
      host: address,
      // Whatever the name, kube-apiserver listens on its nodes: each of them is asked, past any load balancer.
      port: isPerNode ? Number(port) : API_PORT,
      serverName: name ?? address,
    }));
  };
}

interface ServingNode {
  readonly node: string;
  readonly address: string;
}

/** Everybody once, on either side: each client with the server of another node, or of its own where it asks for no other. */
function pairs(clients: readonly string[], servers: readonly ServingNode[], isLocal: boolean) {
  if (servers.length === 0 || clients.length === 0) return [];
  const isAnywhere = clients[0] === 'anywhere';
  if (isLocal || isAnywhere) return servers.map(server => ({ ...server, from: isAnywhere ? 'anywhere' : server.node }));
  return Array.from({ length: Math.max(clients.length, servers.length) }, (_, index) => ({
    ...(servers[(index + 1) % servers.length] as ServingNode),
    from: clients[index % clients.length] as string,
  }));
}

function apiName(host: string, infrastructure: Infrastructure | undefined): string | undefined {
  if (host === '<external API host>') return hostOfUrl(infrastructure?.status?.apiServerURL ?? '');
  if (host === '<internal API host>') return infrastructure && hostOfUrl(internalUrlOf(infrastructure));
  return host.includes('<') ? undefined : host;
}
