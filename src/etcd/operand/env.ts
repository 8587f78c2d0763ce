import type { ConfigMap, Node, Secret } from 'kubernetes-types/core/v1.d.ts';
import { parseIp } from '../../pki/hosts.ts';
import { envVarName } from '../../staticpod/node/tokens.ts';
import { clientURL } from '../client/endpoints.ts';
import { foundingPlan } from '../founding.ts';
import { ALL_CERTS, BOOTSTRAP_IP, ENDPOINTS, PEER_PORT } from '../names.ts';
import { internalAddresses, preferredAddress, preferredFamily, urlHost } from '../node-address.ts';
import type { Profile, TrustFile } from '../profile.ts';
import type { EtcdSpec, Network } from '../resources.ts';

/** Where the files of section 2.7 are inside the pod. */
export const CERT_DIRECTORY = '/etc/kubernetes/static-pod-certs';
export const DATA_DIRECTORY = '/var/lib/etcd';

export interface EnvQuestion {
  readonly profile: Profile;
  /** The nodes of `status.nodeStatuses`. */
  readonly nodeNames: readonly string[];
  readonly nodes: readonly Node[];
  readonly network: Network | undefined;
  readonly endpoints: ConfigMap | undefined;
  readonly allCerts: Secret | undefined;
  readonly spec: EtcdSpec;
  readonly image: string;
}

export type Env = Readonly<Record<string, string>>;

const FIXED: Env = {
  ETCD_DATA_DIR: DATA_DIRECTORY,
  ETCD_ENABLE_PPROF: 'true',
  ETCD_EXPERIMENTAL_WATCH_PROGRESS_NOTIFY_INTERVAL: '5s',
  ETCD_SOCKET_REUSE_ADDRESS: 'true',
  ETCD_EXPERIMENTAL_WARNING_APPLY_DURATION: '200ms',
  ETCDCTL_API: '3',
};

const SPEEDS: Readonly<Record<string, Env>> = {
  '': { ETCD_HEARTBEAT_INTERVAL: '100', ETCD_ELECTION_TIMEOUT: '1000' },
  Standard: { ETCD_HEARTBEAT_INTERVAL: '100', ETCD_ELECTION_TIMEOUT: '1000' },
  Slower: { ETCD_HEARTBEAT_INTERVAL: '500', ETCD_ELECTION_TIMEOUT: '2500' },
};
const DEFAULT_QUOTA_GIB = 8;

/** The environment all containers of the static pod share (spec 40, P-5). Throws when something it depends on is missing. */
export function etcdEnv(question: EnvQuestion): Env {
  const { profile, nodeNames, spec, image } = question;
  if (nodeNames.length === 0) throw new Error("empty NodeStatuses, can't generate environment for getEscapedIPAddress");
  if (profile.release === 'later') requireServingCerts(nodeNames, question.allCerts);
  const speed = SPEEDS[spec.controlPlaneHardwareSpeed ?? ''];
  if (speed === undefined)
    throw new Error(
      `expected Standard or Slower as controlPlaneHardwareSpeed, found "${spec.controlPlaneHardwareSpeed}"`,
    );
  // As everywhere in the API, 0 is the same as nothing.
  const quotaGiB = spec.backendQuotaGiB || DEFAULT_QUOTA_GIB;
  const pair = certificatePath('etcd-peer-NODE_NAME');
  return {
    ...FIXED,
    ...nodeVariables(question),
    ...speed,
    ALL_ETCD_ENDPOINTS: endpointList(question.endpoints, 'with bootstrap'),
    ETCDCTL_ENDPOINTS: endpointList(question.endpoints, 'members only'),
    ETCDCTL_CACERT: trustPath(profile.trust.clients),
    ETCDCTL_CERT: `${pair}.crt`,
    ETCDCTL_KEY: `${pair}.key`,
    ETCD_IMAGE: image,
    ETCD_QUOTA_BACKEND_BYTES: String(quotaGiB * 1024 ** 3),
    ...(foundingPlan(question.endpoints) === undefined ? { ETCD_INITIAL_CLUSTER_STATE: 'existing' } : {}),
  };
}

/** The file of a certificate or key of the aggregate, without its ending. */
export function certificatePath(leaf: string): string {
  return `${CERT_DIRECTORY}/secrets/${ALL_CERTS}/${leaf}`;
}

export function trustPath({ configMap, key }: TrustFile): string {
  return `${CERT_DIRECTORY}/configmaps/${configMap}/${key}`;
}

/** The names of the variables of one node. */
export function nodeVariableNames(
  nodeName: string,
): Record<'ip' | 'urlHost' | 'name' | 'initialCluster' | 'initialState', string> {
  const prefix = `NODE_${envVarName(nodeName)}`;
  return {
    ip: `${prefix}_IP`,
    urlHost: `${prefix}_ETCD_URL_HOST`,
    name: `${prefix}_ETCD_NAME`,
    initialCluster: `${prefix}_INITIAL_CLUSTER`,
    initialState: `${prefix}_INITIAL_CLUSTER_STATE`,
  };
}

function nodeVariables({ nodeNames, nodes, network, endpoints }: EnvQuestion): Env {
  const family = preferredFamily(network);
  const known = new Map(nodes.map(node => [node.metadata?.name ?? '', node]));
  const voters = new Set(Object.values(endpoints?.data ?? {}));
  const isVoter = (name: string) => {
    const node = known.get(name);
    return node !== undefined && internalAddresses(node).some(address => voters.has(address));
  };
  const hosts = new Map(
    nodeNames.map(name => {
      const node = known.get(name);
      if (node === undefined) throw new Error(`node "${name}" not found`);
      return [name, urlHost(preferredAddress(node, family))] as const;
    }),
  );
  const plan = foundingPlan(endpoints) ?? [];
  const variables: Record<string, string> = {};
  for (const [name, host] of hosts) {
    const names = nodeVariableNames(name);
    // Who starts without data joins those who are members by then; with data, etcd does not look at this.
    const before = plan.slice(0, Math.max(0, plan.indexOf(name)));
    const cluster = nodeNames.filter(
      other => other === name || (plan.includes(name) ? before.includes(other) : isVoter(other)),
    );
    variables[names.ip] = host;
    variables[names.urlHost] = host;
    variables[names.name] = name;
    if (plan.length > 0) variables[names.initialState] = name === plan[0] ? 'new' : 'existing';
    variables[names.initialCluster] = cluster
      .map(other => `${other}=https://${hosts.get(other)}:${PEER_PORT}`)
      .join(',');
  }
  return variables;
}

function endpointList(endpoints: ConfigMap | undefined, which: 'with bootstrap' | 'members only'): string {
  if (endpoints === undefined) throw new Error(`configmap "${ENDPOINTS}" not found`);
  const bootstrap = which === 'with bootstrap' ? endpoints.metadata?.annotations?.[BOOTSTRAP_IP] : undefined;
  if (bootstrap && parseIp(bootstrap) === undefined)
    throw new Error(`configmaps/${ENDPOINTS} contains invalid bootstrap ip address: ${bootstrap}`);
  const addresses = [...(bootstrap ? [bootstrap] : []), ...Object.values(endpoints.data ?? {})];
  for (const address of addresses) {
    if (parseIp(address) === undefined)
      throw new Error(`configmaps/${ENDPOINTS} contains invalid ip address: ${address}`);
  }
  return addresses.map(clientURL).sort().join(',');
}

/** A manifest that names a node before its certificates are there would have its pod fail (spec 40, N-11 and T-9). */
function requireServingCerts(nodeNames: readonly string[], allCerts: Secret | undefined): void {
  for (const node of nodeNames) {
    const key = `etcd-serving-${node}.key`;
    if (!allCerts?.data?.[key]) throw new Error(`could not find serving cert for node [${node}] and key [${key}]`);
  }
}
