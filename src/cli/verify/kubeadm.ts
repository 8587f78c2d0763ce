import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { nodeNames } from '../../forecast/effects.ts';
import { certificatesOfKubeconfig } from '../../inventory/kubeconfig.ts';
import { readPem } from '../../inventory/relations.ts';
import { readClusterConfiguration } from '../../kubeadm/cluster-configuration.ts';
import { CLUSTER_INFO, KUBERNETES_DIRECTORY, ROOT_CA } from '../../kubeadm/names.ts';
import { isPublished, kubeadmTrust } from '../../kubeadm/trust.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { type Artefact, artefactOf, type ReadArtefact } from '../../trust/artefact.ts';
import type { Edge, TrustGraph } from '../../trust/graph.ts';
import type { Route } from '../../trust/prober.ts';
import type { Cluster } from '../cluster.ts';
import { type ClusterObjects, readClusterObjects } from '../look/cluster-objects.ts';
import { type AskedServer, serversOf } from '../look/servers.ts';

/** What is tested of a cluster that kubeadm made, from a machine that has nothing but a kubeconfig (spec 80, 10). */
export interface KubeadmEdges {
  readonly graph: TrustGraph;
  routes(edge: Edge): readonly Route[] | string;
  readonly read: ReadArtefact;
  /** The CAs that the client's certificate is of, where those are published; empty: not known, or it shows none. */
  issuersOf(edge: Edge): readonly Certificate[];
  /** What each edge rests on that is not seen: what its client has on its node. */
  assumed(edge: Edge): string | undefined;
}

/** The trust graph with the ways that can be travelled from here: servers are checked with what is published; keys are on nodes only. */
export async function kubeadmEdges(cluster: Cluster): Promise<KubeadmEdges> {
  const objects = await readClusterObjects(cluster);
  const servers = serversOf(cluster, objects);
  const whole = kubeadmTrust();
  const isExternal = readClusterConfiguration(objects.configuration?.data?.ClusterConfiguration)?.etcd === 'external';
  const original = ({ name }: Edge) => whole.edges.find(edge => edge.name === name) as Edge;
  return {
    // No key of a client on a node is here, so that none is shown: what is tested is that each accepts its server. That the server
    // accepts the kubeconfig's own certificate is known by then: the API has answered.
    graph: { ...whole, edges: whole.edges.map(edge => ({ ...edge, client: { ...edge.client, presents: undefined } })) },
    routes: edge => {
      const artefact = edge.client.verifiesWith && artefactOf(whole, edge.client, edge.client.verifiesWith);
      if (artefact !== undefined && isPublishedHere(artefact) && textsOf(cluster, objects, artefact) === undefined) {
        return `cannot be seen from here: no CA is published for ${artefact.files.join()}, or not for this user`;
      }
      return routesOf(edge, objects.nodes, servers, isExternal);
    },
    read: async artefact => textsOf(cluster, objects, artefact),
    issuersOf: edge => {
      const { client } = original(edge);
      // Of what is published for each signer only that of `ca` is one CA and no other.
      const isOfCa =
        typeof client.presents === 'object' &&
        'issuerIn' in client.presents &&
        client.presents.issuerIn.name === ROOT_CA.name;
      return isOfCa ? readPem(rootCaOf(cluster, objects) ?? '').certificates : [];
    },
    assumed: edge => assumptionOf(original(edge).client),
  };
}

/** In every certificate of kube-apiserver that kubeadm made. */
const SERVICE_NAME = 'kubernetes.default.svc';

const SHOWN_AT: Readonly<Record<string, AskedServer['shows']>> = {
  'kube-apiserver': 'apiserver',
  kubelet: 'kubelet',
};

function routesOf(
  { name, client, server }: Edge,
  nodes: readonly Node[],
  servers: readonly AskedServer[],
  isExternal: boolean,
): readonly Route[] | string {
  if (server.process === 'etcd' && isExternal) return 'etcd is external: nothing is known of it here';
  const holding = client.verifiesWith;
  if (holding !== undefined && !isPublished(holding.object)) {
    const file = holding.elsewhere?.file ?? '';
    return `cannot be seen from here: ${file} is in no object; on a control-plane node, rotunda get certs --from ${KUBERNETES_DIRECTORY}`;
  }
  const shows = SHOWN_AT[server.process];
  if (shows === undefined) return `nobody knows from here where the ${server.process} listens`;
  const all = servers.filter(one => one.shows === shows);
  const direct = all.filter(({ isOwn }) => isOwn !== true);
  const isPod = client.process === 'pod';
  // Pods go past whatever stands in front of the control plane.
  const reached = isPod && direct.length > 0 ? direct : all;
  if (reached.length === 0) return `nobody knows from here where the servers of "${name}" listen`;
  const clients = client.nodes === 'anywhere' ? [] : nodeNames(nodes, client.nodes);
  return reached.map(({ host, port, serverName }, index) => ({
    from: clients.length === 0 ? 'anywhere' : (clients[index % clients.length] as string),
    host,
    port,
    serverName: isPod ? SERVICE_NAME : (serverName ?? host),
  }));
}

function isPublishedHere({ object }: Artefact): boolean {
  return object !== undefined && isPublished(object);
}

/** The CA that a client checks with: its own for whoever runs this, else the published one. */
function textsOf(
  { shown }: Cluster,
  { clusterInfo, rootCas }: ClusterObjects,
  { files: [file = ''] }: Artefact,
): Readonly<Record<string, string>> | undefined {
  const named = (text: string | undefined) => (text === undefined || text === '' ? undefined : { 'ca.crt': text });
  if (file.endsWith('/admin.conf')) return named(shown.ca);
  if (file === `${CLUSTER_INFO.namespace}/${CLUSTER_INFO.name}`) {
    const authorities = certificatesOfKubeconfig(clusterInfo?.data?.kubeconfig ?? '')?.authorities ?? [];
    return named(authorities.map(({ pem }) => pem).join('\n'));
  }
  // Pods have that one and no other; whoever has a file on a node was given the CA that this kubeconfig was given.
  return file.startsWith(`${KUBERNETES_DIRECTORY}/`)
    ? named(rootCaOf({ shown }, { rootCas }))
    : named(rootCaOf({ shown: {} }, { rootCas }));
}

function rootCaOf({ shown }: Pick<Cluster, 'shown'>, { rootCas }: Pick<ClusterObjects, 'rootCas'>): string | undefined {
  const own = rootCas.find(({ metadata }) => metadata?.namespace === ROOT_CA.namespace) ?? rootCas[0];
  return own?.data?.['ca.crt'] ?? shown.ca;
}

/** Whoever is nowhere in particular has a kubeconfig such as this one, or what is published. */
function assumptionOf({ process, nodes, verifiesWith, presents }: Edge['client']): string | undefined {
  if (nodes === 'anywhere') return undefined;
  const shown = typeof presents === 'object' && 'file' in presents ? presents.file : undefined;
  if (verifiesWith === undefined)
    return `${process} does not verify what it sees; its own ${shown} cannot be seen from here`;
  const file = verifiesWith.elsewhere?.file;
  const more = shown === undefined || shown === file ? '' : ` and ${shown}`;
  return `${file}${more} of ${process} cannot be seen from here: the published CA was used`;
}
