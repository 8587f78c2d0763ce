import { readFileSync } from 'node:fs';
import { etcdTrust } from '../../src/etcd/trust.ts';
import { getIfPresent } from '../../src/kube/get.ts';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resource.ts';
import { API_PORT } from '../../src/kube-apiserver/target-config/pod.ts';
import { kubeApiserverTrust } from '../../src/kube-apiserver/trust.ts';
import { EXTERNAL_NAME, INTERNAL_NAME } from '../../src/local/cluster-inputs.ts';
import { MANIFESTS } from '../../src/local/node.ts';
import { filesOfNodes, firstOf, objectsOfCluster, type ReadArtefact } from '../../src/trust/artefact.ts';
import { type Edge, joinGraphs, type TrustGraph } from '../../src/trust/graph.ts';
import { Prober, type Route } from '../../src/trust/prober.ts';
import { CONTROL_PLANE, type NodeName, type RealCluster } from './real-cluster.ts';

const PAUSE_MS = 1_000;
const TIMEOUT_MS = 10_000;
const NAMES = { '<external API host>': EXTERNAL_NAME, '<internal API host>': INTERNAL_NAME };

/** Handshakes over every edge of both graphs, with what is on the nodes; what is on none of them comes from the API. */
export function realProber(cluster: RealCluster): Prober {
  return new Prober({
    graph: realGraph(),
    routes: edge => routesOf(cluster, edge),
    read: reading(cluster),
    pauseMs: PAUSE_MS,
    timeoutMs: TIMEOUT_MS,
  });
}

function realGraph(): TrustGraph {
  const whole = joinGraphs(kubeApiserverTrust(), etcdTrust());
  const edges = whole.edges.map(edge => {
    // A front proxy is known by the headers it sends along: a handshake alone does not show whether it is accepted.
    const isFrontProxy = edge.server.verifiesWith?.object.name === 'aggregator-client-ca';
    return isFrontProxy ? { ...edge, client: { ...edge.client, presents: undefined } } : edge;
  });
  return { ...whole, edges };
}

/** From every place where the client is, each to another node where it may choose one, to its own where it may not. */
function routesOf(cluster: RealCluster, { client, server }: Edge): Route[] | string {
  if (server.process === 'aggregated API server') return 'there is no aggregated API server here';
  const [, host = '', port = ''] = /^https:\/\/(.+):(\d+)$/.exec(server.endpoint.url) ?? [];
  return CONTROL_PLANE.map((node, index) => {
    const isPerNode = host === '<node address>';
    const other = CONTROL_PLANE[(index + 1) % CONTROL_PLANE.length] as NodeName;
    const address = cluster.addressOf(isPerNode ? other : node);
    const serverName = isPerNode ? address : (NAMES[host as keyof typeof NAMES] ?? host);
    const from = client.nodes === 'anywhere' ? 'anywhere' : node;
    return { from, host: address, port: isPerNode ? Number(port) : API_PORT, serverName };
  });
}

function reading(cluster: RealCluster): ReadArtefact {
  const { kube } = cluster;
  const isNode = (place: string): place is NodeName => (CONTROL_PLANE as readonly string[]).includes(place);
  const revisions = new Map<string, number>();
  const files = filesOfNodes({
    root: place => (isNode(place) ? cluster.pathOn(place, '') : undefined),
    revision(place) {
      try {
        const manifest = cluster.read(place as NodeName, `${MANIFESTS}/kube-apiserver-pod.yaml`);
        const revision = /kube-apiserver-pod-(\d+)/.exec(manifest)?.[1];
        if (revision !== undefined) revisions.set(place, Number(revision));
      } catch {
        // It is being replaced.
      }
      return revisions.get(place);
    },
  });
  const objects = objectsOfCluster(({ kind, ...key }) =>
    kind === 'Secret' ? getIfPresent(kube, SECRETS, key) : getIfPresent(kube, CONFIG_MAPS, key),
  );
  const admin: ReadArtefact = async ({ object, files: [file] }) =>
    object === undefined && file === 'admin kubeconfig'
      ? { kubeconfig: readFileSync(cluster.kubeconfig, 'utf8') }
      : undefined;
  return firstOf(admin, files, objects);
}
