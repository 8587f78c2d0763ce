import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { FAMILY_TABLE, NODE_LEAVES } from '../etcd/cert-table.ts';
import { ALL_BUNDLES, ALL_CERTS, OPERATOR_LEASE as ETCD_LEASE } from '../etcd/names.ts';
import { nextKey, previousKey } from '../hand-over/family.ts';
import { minutes } from '../kube/duration.ts';
import { KubeError } from '../kube/error.ts';
import { CONFIG_MAPS, type KubeObject, LEASES, NAMESPACES, NODES, type Resource, SECRETS } from '../kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../kube-apiserver/chains.ts';
import { OPERATOR_LEASE as KUBE_APISERVER_LEASE } from '../kube-apiserver/namespaces.ts';
import { INFRASTRUCTURES } from '../kube-apiserver/resources.ts';
import { CONTROL_PLANE_NODE_LABEL, MASTER_NODE_LABEL } from '../machine-config-api/names.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import type { ObjectRef } from '../trust/object.ts';
import { NODE_RECEIPTS } from '../trust/receipts.ts';
import type { Weather } from './api.ts';
import { Cluster, type ClusterOptions, ETCD_OPERATOR, type Machine, OPERATOR } from './cluster.ts';
import { type ApiNames, TWIN_NAMES } from './inputs.ts';

/** A cluster as somebody saw it, for a twin to go on with. */
export interface Seen {
  readonly nodes: readonly Node[];
  /** Everything else, with keys that fit their certificates. */
  readonly objects: readonly (readonly [Resource, readonly KubeObject[]])[];
  /** Of what follows from other objects, what has not followed yet. */
  readonly outOfDate?: readonly ObjectRef[] | undefined;
  /** Whose certificates kubelets have. */
  readonly kubeletSigner?: CertificateAndKey | undefined;
}

export interface LoadOptions extends Pick<ClusterOptions, 'seed' | 'handOver' | 'tell' | 'leavesLullsOut'> {
  /** When it was seen. */
  readonly now: Date;
}

/** A cluster that goes on from what was seen. */
export interface LoadedCluster {
  readonly cluster: Cluster;
  /** What could not be taken as it was. */
  readonly notes: readonly string[];
}

/** What runs on the machines comes up within this time from the objects, before the moment at which they were seen. */
const SETTLE_MS = minutes(15);

/**
 * A twin that begins with the objects of a cluster instead of a fresh installation. Files on nodes and what processes have loaded cannot be
 * seen in objects: they are taken to be what the objects publish. So machines come up from them shortly before the moment at which they
 * were seen, with all that rotates held still; then the operator begins.
 */
export async function loadCluster(seen: Seen, { now, ...options }: LoadOptions): Promise<LoadedCluster> {
  const start = new Date(now.getTime() - SETTLE_MS);
  const cluster = new Cluster({ ...options, start, machines: seen.nodes.map(machineOf), names: namesIn(seen) });
  loadObjects(cluster, seen);
  const { weather } = cluster.api;
  cluster.api.weather = standstill(seen, weather);
  await cluster.begin({ kubeletSigner: seen.kubeletSigner });
  await cluster.goOn(now);
  cluster.api.weather = weather;
  // They know nothing of what they could not do before.
  for (const [name, lease] of OPERATORS) {
    const operator = cluster.component(name);
    operator.stop();
    cluster.api.delete('load', LEASES, lease);
    operator.start();
  }
  return { cluster, notes: notesOn(cluster) };
}

function loadObjects({ api }: Cluster, { nodes, objects }: Seen): void {
  const namespaces = new Set(objects.flatMap(([, items]) => items.map(({ metadata }) => metadata?.namespace)));
  for (const name of namespaces) if (name !== undefined) api.load(NAMESPACES, { metadata: { name } });
  for (const [resource, items] of objects) for (const object of items) api.load(resource, object);
  for (const node of nodes) {
    // What its agent has said of real certificates is not true of those in the twin: it says it anew.
    const { [NODE_RECEIPTS]: _receipts, ...annotations } = node.metadata?.annotations ?? {};
    api.load(NODES, { ...node, metadata: { ...node.metadata, annotations } });
  }
}

/** Nobody changes what rotates, nor what is out of date: that is still to come. */
function standstill({ nodes, objects, outOfDate = [] }: Seen, weather: Weather): Weather {
  const rotated = KUBE_APISERVER_CHAINS.flatMap(({ signer, bundle, target }) =>
    [signer, nextKey(signer), previousKey(signer), bundle, target].map(({ name }) => name),
  );
  // Of etcd, where it is there at all.
  const there = new Set(objects.flatMap(([, items]) => items.map(({ metadata }) => metadata?.name ?? '')));
  const ofEtcd = [
    ...Object.values(FAMILY_TABLE).flatMap(({ signer, bundle, client }) => [signer, bundle, client.secret]),
    ...NODE_LEAVES.flatMap(({ prefix }) => nodes.map(({ metadata }) => `${prefix}${metadata?.name}`)),
    ALL_CERTS,
    ALL_BUNDLES,
  ].filter(name => there.has(name));
  const held = new Set([...rotated, ...ofEtcd, ...outOfDate.map(({ name }) => name)]);
  return {
    ...weather,
    call(call) {
      const { verb, resource, name } = call;
      const isHeld = WRITES.has(verb) && KINDS.includes(resource) && held.has(name);
      return isHeld
        ? { before: new KubeError(503, 'ServiceUnavailable', `${name} is held still`) }
        : weather.call(call);
    },
  };
}

const OPERATORS = [
  [OPERATOR, KUBE_APISERVER_LEASE],
  [ETCD_OPERATOR, ETCD_LEASE],
] as const;
const KINDS: readonly Resource[] = [SECRETS, CONFIG_MAPS];
const WRITES: ReadonlySet<string> = new Set(['create', 'update', 'updateStatus', 'patch', 'delete']);

function machineOf({ metadata, status }: Node, index: number): Machine {
  const { name = `node-${index}`, labels = {} } = metadata ?? {};
  const address = status?.addresses?.find(({ type }) => type === 'InternalIP')?.address;
  return {
    name,
    // Two machines at one address would be one.
    address: address ?? `10.255.${Math.floor(index / 250)}.${(index % 250) + 1}`,
    isControlPlane: MASTER_NODE_LABEL in labels || CONTROL_PLANE_NODE_LABEL in labels,
  };
}

function namesIn({ objects }: Seen): ApiNames {
  const found = objects.find(([resource]) => resource === (INFRASTRUCTURES as Resource))?.[1][0];
  const { apiServerURL = '', apiServerInternalURI = '' } =
    (found as { status?: { apiServerURL?: string; apiServerInternalURI?: string } } | undefined)?.status ?? {};
  const host = (url: string, otherwise: string) => (URL.canParse(url) ? new URL(url).hostname : otherwise);
  return {
    external: host(apiServerURL, TWIN_NAMES.external),
    internal: host(apiServerInternalURI, TWIN_NAMES.internal),
  };
}

function notesOn({ nodes }: Cluster): string[] {
  const silent = nodes.filter(node => node.isControlPlane && node.pods.get('kube-apiserver')?.isReady !== true);
  if (silent.length === 0) return [];
  const names = silent.map(({ name }) => name).join(', ');
  return [`kube-apiserver does not come up on ${names} from what is here: roll-outs there are not foreseen`];
}
