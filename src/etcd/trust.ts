import { RESOURCE_DIRECTORY } from '../staticpod/config.ts';
import type { Delivery, Edge, Flow, Holding, Side, TrustGraph, Use } from '../trust/graph.ts';
import { configMap, secret } from '../trust/object.ts';
import { CERT_SIGNER } from './cert-signer/options.ts';
import { FAMILY_TABLE, NODE_LEAVES } from './cert-table.ts';
import {
  ALL_BUNDLES,
  ALL_CERTS,
  CLIENT_PORT,
  CONFIG_NAMESPACE,
  ETCD_NAMESPACE,
  METRICS_PORT,
  METRICS_PROXY_PORT,
  OPERATOR_NAMESPACE,
  PEER_PORT,
} from './names.ts';
import { CERT_DIRECTORY } from './operand/env.ts';
import { CERTS_DIRECTORY_NAME } from './operand/pod.ts';
import { FAMILIES, type Profile, profileLater, type TrustFile } from './profile.ts';
import { copyRules } from './resource-sync.ts';

/** Who trusts whom around etcd, and how a change of one object gets to the processes (spec 40, sections 2, 5 and 7). */
export function etcdTrust(profile: Profile = profileLater()): TrustGraph {
  return {
    deliveries: [certificates(), ...bundles(profile)],
    flows: [...signed(), ...aggregated(profile), ...copied(profile)],
    edges: edges(profile),
  };
}

const ETCD = 'etcd';
const READYZ = 'etcd-readyz';
const METRICS_PROXY = 'etcd-metrics';
const ETCDCTL = 'etcdctl';
const OPERATOR = 'etcd-operator';

/**
 * Files reach the nodes with a revision, and the members are restarted for it; a leaf would be taken at the next handshake, a CA would
 * not (spec 40, P-3 and P-6).
 */
function delivery(
  kind: 'secrets' | 'configmaps',
  object: Delivery['object'],
  files: readonly string[],
  uses: readonly Use[],
): Delivery {
  return {
    object,
    carrier: 'revision',
    nodes: 'control-plane',
    hostDirectory: `${RESOURCE_DIRECTORY}/${CERTS_DIRECTORY_NAME}/${kind}/${object.name}`,
    directory: `${CERT_DIRECTORY}/${kind}/${object.name}`,
    files,
    optional: false,
    uses,
  };
}

function certificates(): Delivery {
  const files = NODE_LEAVES.flatMap(({ prefix }) => [`${prefix}<node>.crt`, `${prefix}<node>.key`]);
  return delivery('secrets', secret(ETCD_NAMESPACE, ALL_CERTS), files, [
    { process: ETCD, setting: '--cert-file', takes: 'per-handshake' },
    { process: ETCD, setting: '--peer-cert-file', takes: 'per-handshake' },
    { process: METRICS_PROXY, setting: '--cert-file', takes: 'per-handshake' },
    { process: READYZ, setting: '--serving-cert-file', takes: 'per-handshake' },
    { process: ETCDCTL, setting: 'ETCDCTL_CERT', takes: 'on-use' },
  ]);
}

function bundles({ trust }: Profile): Delivery[] {
  const uses: [TrustFile, Use][] = [
    [trust.clients, { process: ETCD, setting: '--trusted-ca-file', takes: 'restart' }],
    [trust.clients, { process: READYZ, setting: '--client-cacert-file', takes: 'per-handshake' }],
    [trust.clients, { process: ETCDCTL, setting: 'ETCDCTL_CACERT', takes: 'on-use' }],
    [trust.peers, { process: ETCD, setting: '--peer-trusted-ca-file', takes: 'restart' }],
    [trust.peers, { process: METRICS_PROXY, setting: '--cacert', takes: 'per-handshake' }],
    [trust.scrapers, { process: METRICS_PROXY, setting: '--trusted-ca-file', takes: 'per-handshake' }],
  ];
  const byObject = Map.groupBy(uses, ([{ configMap: name }]) => name);
  return [...byObject].map(([name, group]) =>
    delivery(
      'configmaps',
      configMap(ETCD_NAMESPACE, name),
      [...new Set(group.map(([{ key }]) => key))],
      group.map(([, use]) => use),
    ),
  );
}

/** The wanted signer joins the bundle at once, and is put to use when everybody runs with that. */
function signed(): Flow[] {
  return FAMILIES.flatMap(family => {
    const { signer, bundle } = FAMILY_TABLE[family];
    const [wanted, inUse] = [secret(ETCD_NAMESPACE, signer), secret(CONFIG_NAMESPACE, signer)];
    const to = configMap(ETCD_NAMESPACE, bundle);
    return [
      { from: wanted, to, kind: 'trusted', by: CERT_SIGNER },
      { from: inUse, to, kind: 'trusted', by: CERT_SIGNER },
      { from: wanted, to: inUse, kind: 'copied', by: CERT_SIGNER },
    ] as const;
  });
}

function aggregated({ aggregatesBundles }: Profile): Flow[] {
  const leaves = NODE_LEAVES.map(({ prefix }) => ({
    from: secret(ETCD_NAMESPACE, `${prefix}<node>`),
    to: secret(ETCD_NAMESPACE, ALL_CERTS),
    kind: 'combined' as const,
    by: CERT_SIGNER,
  }));
  const trusts = FAMILIES.map(family => ({
    from: configMap(ETCD_NAMESPACE, FAMILY_TABLE[family].bundle),
    to: configMap(ETCD_NAMESPACE, ALL_BUNDLES),
    kind: 'combined' as const,
    by: CERT_SIGNER,
  }));
  return [...leaves, ...(aggregatesBundles ? trusts : [])];
}

function copied(profile: Profile): Flow[] {
  return copyRules(profile).map(({ kind, source, destination }) => {
    const ref = kind === 'Secret' ? secret : configMap;
    return {
      from: ref(source.namespace, source.name),
      to: ref(destination.namespace, destination.name),
      kind: 'copied',
      by: 'ResourceSyncController',
    };
  });
}

function edges({ trust }: Profile): Edge[] {
  const held = ({ configMap: name }: TrustFile): Holding => ({ object: configMap(ETCD_NAMESPACE, name) });
  const leaf = (prefix: string): Holding => ({
    object: secret(ETCD_NAMESPACE, ALL_CERTS),
    files: [`${prefix}<node>.crt`, `${prefix}<node>.key`],
  });
  const member = (port: number, verifiesWith: Holding): Edge['server'] => ({
    process: ETCD,
    nodes: 'control-plane',
    presents: leaf(port === PEER_PORT ? 'etcd-peer-' : 'etcd-serving-'),
    verifiesWith,
    endpoint: { url: `https://<node address>:${port}` },
  });
  const inPod = (process: string, verifiesWith: Holding): Side => ({
    process,
    nodes: 'control-plane',
    presents: leaf('etcd-peer-'),
    verifiesWith,
  });
  const { server, metrics } = FAMILY_TABLE;
  return [
    { name: 'etcd to etcd', client: inPod(ETCD, held(trust.peers)), server: member(PEER_PORT, held(trust.peers)) },
    {
      name: 'etcd-readyz to etcd',
      client: inPod(READYZ, held(trust.clients)),
      server: member(CLIENT_PORT, held(trust.clients)),
    },
    {
      name: 'etcdctl to etcd',
      client: inPod(ETCDCTL, held(trust.clients)),
      server: member(CLIENT_PORT, held(trust.clients)),
    },
    {
      name: 'etcd-metrics to etcd',
      client: inPod(METRICS_PROXY, held(trust.peers)),
      server: member(METRICS_PORT, held(trust.clients)),
    },
    {
      name: 'kube-apiserver to etcd',
      client: {
        process: 'kube-apiserver',
        nodes: 'control-plane',
        presents: elsewhere(
          secret(CONFIG_NAMESPACE, server.client.secret),
          'secrets/etcd-client/tls.crt',
          'restart',
          'kube-apiserver operator',
        ),
        verifiesWith: elsewhere(
          configMap(CONFIG_NAMESPACE, 'etcd-serving-ca'),
          'configmaps/etcd-serving-ca/ca-bundle.crt',
          'restart',
          'kube-apiserver operator',
        ),
      },
      server: member(CLIENT_PORT, held(trust.clients)),
    },
    {
      name: 'etcd operator to etcd',
      client: {
        process: OPERATOR,
        nodes: 'anywhere',
        presents: elsewhere(
          secret(ETCD_NAMESPACE, server.client.secret),
          'read from the API',
          'per-handshake',
          OPERATOR,
        ),
        verifiesWith: elsewhere(
          configMap(ETCD_NAMESPACE, server.bundle),
          'read from the API',
          'per-handshake',
          OPERATOR,
        ),
      },
      server: member(CLIENT_PORT, held(trust.clients)),
    },
    {
      name: 'Prometheus to etcd-metrics',
      client: {
        process: 'prometheus',
        nodes: 'anywhere',
        presents: elsewhere(
          secret(OPERATOR_NAMESPACE, metrics.client.secret),
          'ServiceMonitor etcd',
          'watch',
          'Prometheus operator',
        ),
        verifiesWith: elsewhere(
          configMap(OPERATOR_NAMESPACE, 'etcd-metric-serving-ca'),
          'ServiceMonitor etcd',
          'watch',
          'Prometheus operator',
        ),
      },
      server: {
        process: METRICS_PROXY,
        nodes: 'control-plane',
        presents: leaf('etcd-serving-metrics-'),
        verifiesWith: held(trust.scrapers),
        endpoint: { url: `https://<node address>:${METRICS_PROXY_PORT}` },
      },
    },
  ];
}

function elsewhere(
  object: Holding['object'],
  file: string,
  takes: 'watch' | 'per-handshake' | 'restart',
  by: string,
): Holding {
  return { object, elsewhere: { file, takes, by } };
}
