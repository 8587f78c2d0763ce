import { basename } from 'node:path';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { rootedFiles } from '../../host/directory-disk.ts';
import { certificatesOfKubeconfig } from '../../inventory/kubeconfig.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import {
  CLUSTER_INFO,
  CONTROL_PLANE_LABEL,
  ETCD_CLIENT_PORT,
  ETCD_PEER_PORT,
  KUBE_APISERVER_PORT,
  KUBERNETES_DIRECTORY,
  ROOT_CA,
} from '../../kubeadm/names.ts';
import { kubeadmTrust } from '../../kubeadm/trust.ts';
import type { ReadArtefact } from '../../trust/artefact.ts';
import type { Edge, NodeSet, TrustGraph } from '../../trust/graph.ts';
import type { Texts } from '../../trust/material.ts';
import type { Route } from '../../trust/prober.ts';
import { internalAddressOf } from '../look/servers.ts';
import type { NodeRoot } from './node-files.ts';

/** The trust graph of a cluster that kubeadm made, whose nodes' disks can be seen from here: everybody shows and checks with what is there. */
export interface KubeadmNodeEdges {
  readonly graph: TrustGraph;
  routes(edge: Edge): readonly Route[] | string;
  readonly read: ReadArtefact;
  /** What an edge rests on that is in no file of a node. */
  assumed(edge: Edge): string | undefined;
}

const KUBELET_PORT = 10_250;
const PORTS: Readonly<Record<string, number>> = { 'kube-apiserver': KUBE_APISERVER_PORT, kubelet: KUBELET_PORT };
/** In every certificate of kube-apiserver that kubeadm made; pods know it by no other name. */
const SERVICE_NAME = 'kubernetes.default.svc';

export function kubeadmNodeEdges(kube: Kube, nodes: () => readonly Node[], root: NodeRoot): KubeadmNodeEdges {
  const graph = kubeadmTrust();
  return {
    graph,
    routes(edge) {
      const port = portOf(edge);
      if (port === undefined) return `nobody knows from here where the ${edge.server.process} listens`;
      const clients = namesOf(nodes(), placesOf(edge));
      const servers = of(nodes(), edge.server.nodes).flatMap(node => internalAddressOf(node) ?? []);
      return servers.flatMap(host =>
        clients.map(from => ({ from, host, port, serverName: isPod(edge) ? SERVICE_NAME : host })),
      );
    },
    read: async ({ files: [file = ''], isDelivered }, place) => {
      if (file.startsWith(`${CLUSTER_INFO.namespace}/`)) return forJoining(kube);
      if (!file.startsWith('/etc/') && !file.startsWith('/var/lib/')) return published(kube, ROOT_CA, 'ca.crt');
      return onNode(root(place), file, isDelivered);
    },
    assumed: edge =>
      isPod(edge) ? 'what is mounted into pods cannot be seen from here: the published CA was used' : undefined,
  };
}

function isPod({ client }: Edge): boolean {
  return client.process === 'pod';
}

function portOf({ name, server }: Edge): number | undefined {
  if (server.process !== 'etcd') return PORTS[server.process];
  return name === 'members of etcd to each other' ? ETCD_PEER_PORT : ETCD_CLIENT_PORT;
}

/** People have what is on control-plane nodes; whoever else is nowhere in particular could be on any node. */
function placesOf({ client }: Edge): NodeSet {
  const shown = client.presents;
  const isPerson = typeof shown === 'object' && 'file' in shown && shown.file.startsWith(`${KUBERNETES_DIRECTORY}/`);
  if (client.nodes !== 'anywhere') return client.nodes;
  return isPerson ? 'control-plane' : 'all';
}

function of(nodes: readonly Node[], set: NodeSet | 'anywhere'): Node[] {
  const isControlPlane = ({ metadata }: Node) => metadata?.labels?.[CONTROL_PLANE_LABEL] !== undefined;
  return nodes.filter(node => set !== 'control-plane' || isControlPlane(node));
}

function namesOf(nodes: readonly Node[], set: NodeSet): string[] {
  return of(nodes, set).map(({ metadata }) => metadata?.name ?? '');
}

async function published(
  kube: Kube,
  key: { readonly namespace: string; readonly name: string },
  field: string,
): Promise<Texts | undefined> {
  const text = (await getIfPresent(kube, CONFIG_MAPS, key))?.data?.[field];
  return text === undefined ? undefined : { [field]: text };
}

/** The CAs alone: nobody's credentials are in it. */
async function forJoining(kube: Kube): Promise<Texts | undefined> {
  const text = (await published(kube, CLUSTER_INFO, 'kubeconfig'))?.kubeconfig;
  const authorities = text === undefined ? [] : (certificatesOfKubeconfig(text)?.authorities ?? []);
  return authorities.length === 0 ? undefined : { 'ca.crt': authorities.map(({ pem }) => pem).join('\n') };
}

/** A kubeconfig has both inside; the key of a certificate lies beside it, where the certificate is shown and not only trusted. */
async function onNode(root: string | undefined, file: string, isShown: boolean): Promise<Texts | undefined> {
  if (root === undefined) return undefined;
  const files = rootedFiles(root);
  const read = async (path: string) => (await files.read(path))?.toString();
  const text = await read(file);
  if (text === undefined) return undefined;
  if (file.endsWith('.conf')) return { [`${basename(file)}.kubeconfig`]: text };
  const key = isShown && file.endsWith('.crt') ? await read(file.replace(/crt$/, 'key')) : undefined;
  return { [basename(file)]: text, ...(key !== undefined && { [basename(file).replace(/crt$/, 'key')]: key }) };
}
