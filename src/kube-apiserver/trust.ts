import { minutes } from '../kube/duration.ts';
import type { Delivery, Edge, Flow, Foreign, Holding, Side, TrustGraph } from '../trust/graph.ts';
import { configMap, type ObjectRef, secret } from '../trust/object.ts';
import type { NamedCertificate, ServedCertificates } from '../trust/serving.ts';
import { type DynamicHostnames, KUBE_APISERVER_CHAINS, type ObjectName } from './chains.ts';
import { COMBINED_BUNDLES } from './combined-bundles.ts';
import { type CopyRule, FIXED_COPIES } from './copies.ts';
import {
  CONFIG_NAMESPACE as CONFIG,
  MANAGED_NAMESPACE as MANAGED,
  OPERAND_NAMESPACE as OPERAND,
  OPERATOR_NAMESPACE as OPERATOR,
} from './namespaces.ts';
import {
  CERT_REGENERATION,
  CERT_SYNCER,
  CHECK_ENDPOINTS,
  KUBE_APISERVER,
  NAMED_CERTIFICATES,
  NODE_ADMIN,
  operandDeliveries,
  userCertificateName,
  WATCH_TERMINATION,
} from './operand-objects.ts';

/**
 * The trust graph of the kube-apiserver operator. `copies` are the rules in force; with those of the observers, the objects
 * that users supply are part of the graph too.
 */
export function kubeApiserverTrust(copies: readonly CopyRule[] = FIXED_COPIES): TrustGraph {
  return {
    deliveries: [...operandDeliveries(), KUBELET_CLIENT_CA],
    flows: [...rotated(), ...combined(), ...copied(copies), ...EMBEDDED],
    edges: EDGES,
  };
}

/** The kubelet's client CA: written by the agent of every node from the published bundle, re-read by the kubelet. */
const KUBELET_CLIENT_CA: Delivery = {
  object: configMap(MANAGED, 'kube-apiserver-client-ca'),
  carrier: 'node-agent',
  nodes: 'all',
  hostDirectory: '/etc/kubernetes',
  directory: '/etc/kubernetes',
  files: ['kubelet-ca.crt'],
  optional: false,
  uses: [{ process: 'kubelet', setting: 'authentication.x509.clientCAFile', takes: 'watch' }],
};

/** A new signer joins its bundle at once. */
function rotated(): Flow[] {
  return KUBE_APISERVER_CHAINS.map(({ controller, signer, bundle }) => ({
    from: secret(signer.namespace, signer.name),
    to: configMap(bundle.namespace, bundle.name),
    kind: 'trusted',
    by: controller,
  }));
}

function combined(): Flow[] {
  return COMBINED_BUNDLES.flatMap(({ destination, sources, builtBy }) =>
    sources.map(source => ({
      from: configMap(source.namespace, source.name),
      to: configMap(destination.namespace, destination.name),
      kind: 'combined' as const,
      by: builtBy.join(', '),
    })),
  );
}

function copied(rules: readonly CopyRule[]): Flow[] {
  const ref = ({ kind }: CopyRule, { namespace, name }: ObjectName): ObjectRef =>
    kind === 'secret' ? secret(namespace, name) : configMap(namespace, name);
  return rules.flatMap(rule =>
    rule.source === undefined
      ? []
      : [
          {
            from: ref(rule, rule.source),
            to: ref(rule, rule.destination),
            kind: 'copied',
            by: 'ResourceSyncController',
          },
        ],
  );
}

const EMBEDDED: readonly Flow[] = [
  embedded(secret(OPERATOR, 'node-system-admin-client'), 'node-kubeconfigs', 'NodeKubeconfigController'),
  embedded(configMap(OPERAND, 'kube-apiserver-server-ca'), 'node-kubeconfigs', 'NodeKubeconfigController'),
  {
    from: secret(OPERATOR, 'next-bound-service-account-signing-key'),
    to: configMap(OPERAND, 'bound-sa-token-signing-certs'),
    kind: 'embedded',
    by: 'BoundSATokenSignerController',
  },
  embedded(
    secret(OPERATOR, 'next-bound-service-account-signing-key'),
    'bound-service-account-signing-key',
    'BoundSATokenSignerController',
  ),
];

function embedded(from: ObjectRef, to: string, by: string): Flow {
  return { from, to: secret(OPERAND, to), kind: 'embedded', by };
}

const clientCA: Holding = { object: configMap(OPERAND, 'client-ca') };
const serverCA: Holding = { object: configMap(OPERAND, 'kube-apiserver-server-ca') };

const LOCALHOST = 'https://localhost:6443';
const SERVICE = 'https://kubernetes.default.svc:443';
const EXTERNAL = 'https://<external API host>:6443';
const INTERNAL = 'https://<internal API host>:6443';

/** Every kind of connection the chains serve. What others bring to their own clients is said with `elsewhere`. */
const EDGES: readonly Edge[] = [
  {
    name: 'kube-apiserver to aggregated API servers',
    client: {
      process: KUBE_APISERVER,
      nodes: 'control-plane',
      presents: operand('aggregator-client'),
      // The caBundle of each APIService, which its owner keeps.
    },
    server: {
      process: 'aggregated API server',
      nodes: 'anywhere',
      endpoint: { url: 'https://<APIService endpoint>:443' },
      verifiesWith: {
        object: configMap(MANAGED, 'kube-apiserver-aggregator-client-ca'),
        elsewhere: {
          file: 'kube-system/extension-apiserver-authentication, requestheader-client-ca-file',
          takes: 'watch',
          by: KUBE_APISERVER,
        },
      },
    },
  },
  {
    name: 'front proxies to kube-apiserver',
    client: { process: 'front proxy', nodes: 'anywhere', presents: operand('aggregator-client') },
    server: kubeApiserver(LOCALHOST, 'localhost-serving-cert-certkey', {
      object: configMap(OPERAND, 'aggregator-client-ca'),
    }),
  },
  {
    name: 'kube-apiserver to kubelets',
    client: {
      process: KUBE_APISERVER,
      nodes: 'control-plane',
      presents: operand('kubelet-client'),
      verifiesWith: { object: configMap(OPERAND, 'kubelet-serving-ca') },
    },
    server: {
      process: 'kubelet',
      nodes: 'all',
      endpoint: { url: 'https://<node address>:10250' },
      presents: kubeletPair('kubelet-server-current.pem'),
      verifiesWith: { object: configMap(MANAGED, 'kube-apiserver-client-ca') },
    },
  },
  toKubeApiserver('check-endpoints', LOCALHOST, 'localhost-serving-cert-certkey', {
    process: CHECK_ENDPOINTS,
    nodes: 'control-plane',
    presents: operand('check-endpoints-client-cert-key'),
    verifiesWith: serverCA,
  }),
  toKubeApiserver('administrators inside the pod', LOCALHOST, 'localhost-serving-cert-certkey', {
    process: NODE_ADMIN,
    nodes: 'control-plane',
    presents: operand('control-plane-node-admin-client-cert-key'),
    verifiesWith: serverCA,
  }),
  ...[CERT_SYNCER, CERT_REGENERATION, WATCH_TERMINATION].map(process =>
    toKubeApiserver(
      `${process} (recovery path)`,
      LOCALHOST,
      'localhost-recovery-serving-certkey',
      { process, nodes: 'control-plane', presents: 'token', verifiesWith: serverCA },
      'localhost-recovery',
    ),
  ),
  nodeAdministrator('localhost', 'localhost', LOCALHOST, 'localhost-serving-cert-certkey'),
  nodeAdministrator(
    'localhost-recovery',
    'localhost-recovery',
    LOCALHOST,
    'localhost-recovery-serving-certkey',
    'localhost-recovery',
  ),
  nodeAdministrator('external load balancer', 'lb-ext', EXTERNAL, 'external-loadbalancer-serving-certkey'),
  nodeAdministrator('internal load balancer', 'lb-int', INTERNAL, 'internal-loadbalancer-serving-certkey'),
  toKubeApiserver('kube-controller-manager', INTERNAL, 'internal-loadbalancer-serving-certkey', {
    process: 'kube-controller-manager',
    nodes: 'control-plane',
    presents: managed('kube-controller-manager-client-cert-key', 'cluster-kube-controller-manager-operator'),
    verifiesWith: published('kube-controller-manager kubeconfig', 'cluster-kube-controller-manager-operator', 'pod'),
  }),
  toKubeApiserver('kube-scheduler', INTERNAL, 'internal-loadbalancer-serving-certkey', {
    process: 'kube-scheduler',
    nodes: 'control-plane',
    presents: managed('kube-scheduler-client-cert-key', 'cluster-kube-scheduler-operator'),
    verifiesWith: published('kube-scheduler kubeconfig', 'cluster-kube-scheduler-operator', 'pod'),
  }),
  toKubeApiserver('kubelets', INTERNAL, 'internal-loadbalancer-serving-certkey', {
    process: 'kubelet',
    nodes: 'all',
    presents: kubeletPair('kubelet-client-current.pem'),
    verifiesWith: published('/etc/kubernetes/kubeconfig', 'machine-config-operator', 'agent'),
  }),
  toKubeApiserver('pods', SERVICE, 'service-network-serving-certkey', {
    process: 'pod',
    nodes: 'all',
    presents: 'token',
    verifiesWith: {
      object: configMap(MANAGED, 'kube-apiserver-server-ca'),
      elsewhere: {
        file: '/var/run/secrets/kubernetes.io/serviceaccount/ca.crt',
        takes: 'watch',
        by: 'kube-controller-manager',
        rereads: {
          withinMs: minutes(6.5),
          source:
            'a kubelet looks at each pod anew within its sync period of a minute and up to half of that again; client-go 1.36 reads a CA file again every five minutes',
        },
      },
    },
  }),
  toKubeApiserver('administrators outside the cluster', EXTERNAL, 'external-loadbalancer-serving-certkey', {
    process: 'kubectl',
    nodes: 'anywhere',
    presents: {
      issuerIn: configMap(CONFIG, 'admin-kubeconfig-client-ca'),
      file: 'admin kubeconfig',
      takes: 'on-use',
      by: 'the installer',
    },
    verifiesWith: published('admin kubeconfig', 'the installer'),
  }),
];

function toKubeApiserver(client: string, url: string, certificate: string, side: Side, serverName?: string): Edge {
  return {
    name: `${client} to kube-apiserver`,
    client: side,
    server: kubeApiserver(url, certificate, clientCA, serverName),
  };
}

function nodeAdministrator(via: string, name: string, url: string, certificate: string, serverName?: string): Edge {
  const kubeconfig: Holding = { object: secret(OPERAND, 'node-kubeconfigs'), files: [`${name}.kubeconfig`] };
  const side: Side = { process: NODE_ADMIN, nodes: 'control-plane', presents: kubeconfig, verifiesWith: kubeconfig };
  return toKubeApiserver(`node administrators, ${via}`, url, certificate, side, serverName);
}

function kubeApiserver(url: string, certificate: string, verifiesWith: Holding, serverName?: string): Edge['server'] {
  return {
    process: KUBE_APISERVER,
    nodes: 'control-plane',
    presents: operand(certificate),
    verifiesWith,
    endpoint: { url, ...(serverName === undefined ? {} : { serverName }) },
  };
}

function kubeletPair(file: string): Foreign {
  const issuerIn = configMap(MANAGED, 'csr-controller-ca');
  return { issuerIn, file: `/var/lib/kubelet/pki/${file}`, takes: 'watch', by: 'certificate signing requests' };
}

function operand(name: string): Holding {
  return { object: secret(OPERAND, name) };
}

function managed(name: string, by: string): Holding {
  const file = `/etc/kubernetes/static-pod-certs/secrets/${name}`;
  return { object: secret(MANAGED, name), elsewhere: { file, takes: 'watch', by } };
}

function published(file: string, by: string, seenBy?: 'agent' | 'pod'): Holding {
  return {
    object: configMap(MANAGED, 'kube-apiserver-server-ca'),
    elsewhere: { file, takes: 'restart', by, ...(seenBy && { seenBy }) },
  };
}

/**
 * The certificates kube-apiserver chooses from, with the host names that are dynamic and those of the user's certificates: the names
 * the user gave with one, or else those inside it.
 */
export function servedCertificates(
  hostnames: Readonly<Record<DynamicHostnames, readonly string[]>>,
  users: readonly Omit<NamedCertificate, 'object'>[] = [],
): ServedCertificates {
  const builtIn = NAMED_CERTIFICATES.map(name => {
    const chain = KUBE_APISERVER_CHAINS.find(({ target }) => target.name === name);
    const creator = chain?.target.creator;
    if (creator?.kind !== 'serving') throw new RangeError(`${name} is not the target of a serving chain`);
    const names = typeof creator.hostnames === 'string' ? hostnames[creator.hostnames] : creator.hostnames;
    return { object: secret(OPERAND, name), names };
  });
  const ofUsers = users.map((user, index) => ({ ...user, object: secret(OPERAND, userCertificateName(index)) }));
  return { fallback: secret(OPERAND, 'service-network-serving-certkey'), named: [...builtIn, ...ofUsers] };
}
