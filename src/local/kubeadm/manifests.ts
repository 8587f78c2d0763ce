import { dump } from 'js-yaml';
import type { Probe } from 'kubernetes-types/core/v1.d.ts';
import { days, formatGoDuration } from '../../kube/duration.ts';
import {
  CERTIFICATES_DIRECTORY,
  ETCD_CLIENT_PORT,
  ETCD_PEER_PORT,
  KUBE_APISERVER_PORT,
  KUBERNETES_DIRECTORY,
  STATIC_POD_NAMESPACE,
} from '../../kubeadm/names.ts';
import type { Component } from '../../kubeadm/node/sight.ts';
import {
  CA_BUNDLES,
  CLUSTER_NAME,
  ETCD_DATA,
  ETCD_METRICS_PORT,
  MANAGER_PORT,
  SCHEDULER_PORT,
  SERVICE_NETWORK,
  VERSION_OF_KUBERNETES,
} from './names.ts';

export interface ManifestOptions {
  readonly name: string;
  readonly address: string;
  /** The members of etcd: those of all control-plane nodes. */
  readonly members: readonly { readonly name: string; readonly address: string }[];
  readonly dayMs: number;
}

/**
 * The manifests of a control-plane node as kubeadm writes them, with its flags and probes, where `extraArgs` of ClusterConfiguration have
 * every server listen at its node's own address alone: all nodes here share one machine.
 */
export function manifestsOf(options: ManifestOptions): Readonly<Record<Component, string>> {
  const { address } = options;
  const at = (path: string, port: number, scheme: 'HTTP' | 'HTTPS') => ({ host: address, path, port, scheme });
  const kubeconfig = (file: string) => fileVolume('kubeconfig', `${KUBERNETES_DIRECTORY}/${file}`);
  return {
    'kube-apiserver': podText('kube-apiserver', apiServerFlags(options), {
      annotation: { 'kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint': `${address}:6443` },
      cpu: '250m',
      probes: probes(at('/livez', KUBE_APISERVER_PORT, 'HTTPS'), at('/readyz', KUBE_APISERVER_PORT, 'HTTPS')),
      volumes: [CAS_OF_SYSTEM, CERTIFICATES],
    }),
    'kube-controller-manager': podText('kube-controller-manager', managerFlags(options), {
      cpu: '200m',
      probes: probes(at('/healthz', MANAGER_PORT, 'HTTPS')),
      volumes: [CAS_OF_SYSTEM, CERTIFICATES, kubeconfig('controller-manager.conf')],
    }),
    'kube-scheduler': podText('kube-scheduler', schedulerFlags(options), {
      cpu: '100m',
      probes: probes(at('/livez', SCHEDULER_PORT, 'HTTPS'), at('/readyz', SCHEDULER_PORT, 'HTTPS')),
      volumes: [kubeconfig('scheduler.conf')],
    }),
    etcd: podText('etcd', etcdFlags(options), {
      annotation: {
        'kubeadm.kubernetes.io/etcd.advertise-client-urls': `https://${address}:${ETCD_CLIENT_PORT}`,
      },
      cpu: '100m',
      probes: probes(at('/health?serializable=true', ETCD_METRICS_PORT, 'HTTP')),
      volumes: [
        { name: 'etcd-data', path: ETCD_DATA, type: 'DirectoryOrCreate' },
        { name: 'etcd-certs', path: `${CERTIFICATES_DIRECTORY}/etcd`, type: 'DirectoryOrCreate' },
      ],
    }),
  };
}

type Flags = Readonly<Record<string, string>>;

const PKI = CERTIFICATES_DIRECTORY;
const MANAGER_CONF = `${KUBERNETES_DIRECTORY}/controller-manager.conf`;
const SCHEDULER_CONF = `${KUBERNETES_DIRECTORY}/scheduler.conf`;

function apiServerFlags({ address }: ManifestOptions): Flags {
  return {
    'advertise-address': address,
    'allow-privileged': 'true',
    'authorization-mode': 'Node,RBAC',
    'bind-address': address,
    'client-ca-file': `${PKI}/ca.crt`,
    'enable-admission-plugins': 'NodeRestriction',
    'enable-bootstrap-token-auth': 'true',
    'etcd-cafile': `${PKI}/etcd/ca.crt`,
    'etcd-certfile': `${PKI}/apiserver-etcd-client.crt`,
    'etcd-keyfile': `${PKI}/apiserver-etcd-client.key`,
    'etcd-servers': `https://${address}:${ETCD_CLIENT_PORT}`,
    'kubelet-client-certificate': `${PKI}/apiserver-kubelet-client.crt`,
    'kubelet-client-key': `${PKI}/apiserver-kubelet-client.key`,
    'kubelet-preferred-address-types': 'InternalIP,ExternalIP,Hostname',
    'proxy-client-cert-file': `${PKI}/front-proxy-client.crt`,
    'proxy-client-key-file': `${PKI}/front-proxy-client.key`,
    'requestheader-allowed-names': 'front-proxy-client',
    'requestheader-client-ca-file': `${PKI}/front-proxy-ca.crt`,
    'requestheader-extra-headers-prefix': 'X-Remote-Extra-',
    'requestheader-group-headers': 'X-Remote-Group',
    'requestheader-username-headers': 'X-Remote-User',
    'secure-port': String(KUBE_APISERVER_PORT),
    'service-account-issuer': 'https://kubernetes.default.svc.cluster.local',
    'service-account-key-file': `${PKI}/sa.pub`,
    'service-account-signing-key-file': `${PKI}/sa.key`,
    'service-cluster-ip-range': SERVICE_NETWORK,
    'tls-cert-file': `${PKI}/apiserver.crt`,
    'tls-private-key-file': `${PKI}/apiserver.key`,
  };
}

function managerFlags({ address, dayMs }: ManifestOptions): Flags {
  return {
    'authentication-kubeconfig': MANAGER_CONF,
    'authorization-kubeconfig': MANAGER_CONF,
    'bind-address': address,
    'client-ca-file': `${PKI}/ca.crt`,
    'cluster-name': CLUSTER_NAME,
    'cluster-signing-cert-file': `${PKI}/ca.crt`,
    // That of kube-controller-manager itself, where a day has 24 hours.
    ...(dayMs === days(1) ? {} : { 'cluster-signing-duration': formatGoDuration(SIGNED_DAYS * dayMs) }),
    'cluster-signing-key-file': `${PKI}/ca.key`,
    controllers: '*,bootstrapsigner,tokencleaner',
    kubeconfig: MANAGER_CONF,
    'leader-elect': 'true',
    'requestheader-client-ca-file': `${PKI}/front-proxy-ca.crt`,
    'root-ca-file': `${PKI}/ca.crt`,
    'service-account-private-key-file': `${PKI}/sa.key`,
    'use-service-account-credentials': 'true',
  };
}

const SIGNED_DAYS = 365;

function schedulerFlags({ address }: ManifestOptions): Flags {
  return {
    'authentication-kubeconfig': SCHEDULER_CONF,
    'authorization-kubeconfig': SCHEDULER_CONF,
    'bind-address': address,
    kubeconfig: SCHEDULER_CONF,
    'leader-elect': 'true',
  };
}

/** Without the two flags whose names changed between 3.5 and 3.6: whatever etcd is found here understands the others. */
function etcdFlags({ name, address, members }: ManifestOptions): Flags {
  const peer = (host: string) => `https://${host}:${ETCD_PEER_PORT}`;
  return {
    'advertise-client-urls': `https://${address}:${ETCD_CLIENT_PORT}`,
    'cert-file': `${PKI}/etcd/server.crt`,
    'client-cert-auth': 'true',
    'data-dir': ETCD_DATA,
    'initial-advertise-peer-urls': peer(address),
    'initial-cluster': members.map(member => `${member.name}=${peer(member.address)}`).join(','),
    'key-file': `${PKI}/etcd/server.key`,
    'listen-client-urls': `https://${address}:${ETCD_CLIENT_PORT}`,
    'listen-metrics-urls': `http://${address}:${ETCD_METRICS_PORT}`,
    'listen-peer-urls': peer(address),
    name,
    'peer-cert-file': `${PKI}/etcd/peer.crt`,
    'peer-client-cert-auth': 'true',
    'peer-key-file': `${PKI}/etcd/peer.key`,
    'peer-trusted-ca-file': `${PKI}/etcd/ca.crt`,
    'snapshot-count': '10000',
    'trusted-ca-file': `${PKI}/etcd/ca.crt`,
  };
}

interface HostVolume {
  readonly name: string;
  readonly path: string;
  readonly type: string;
  readonly readOnly?: boolean;
}

const CAS_OF_SYSTEM: HostVolume = { name: 'ca-certs', path: CA_BUNDLES, type: 'DirectoryOrCreate', readOnly: true };
const CERTIFICATES: HostVolume = { name: 'k8s-certs', path: PKI, type: 'DirectoryOrCreate', readOnly: true };

function fileVolume(name: string, path: string): HostVolume {
  return { name, path, type: 'FileOrCreate', readOnly: true };
}

type HttpGet = NonNullable<Probe['httpGet']>;

function probes(alive: HttpGet, ready?: HttpGet): Readonly<Record<string, Probe>> {
  const slow = { initialDelaySeconds: 10, periodSeconds: 10, timeoutSeconds: 15 };
  return {
    livenessProbe: { failureThreshold: 8, httpGet: alive, ...slow },
    ...(ready && { readinessProbe: { failureThreshold: 3, httpGet: ready, periodSeconds: 1, timeoutSeconds: 15 } }),
    startupProbe: { failureThreshold: 24, httpGet: alive, ...slow },
  };
}

interface PodParts {
  readonly annotation?: Readonly<Record<string, string>>;
  readonly cpu: string;
  readonly probes: Readonly<Record<string, Probe>>;
  readonly volumes: readonly HostVolume[];
}

function podText(component: Component, flags: Flags, { annotation, cpu, probes: looks, volumes }: PodParts): string {
  const first = ['advertise-address', 'advertise-client-urls'].filter(name => name in flags);
  const names = [...first, ...Object.keys(flags).filter(name => !first.includes(name))];
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      ...(annotation && { annotations: annotation }),
      labels: { component, tier: 'control-plane' },
      name: component,
      namespace: STATIC_POD_NAMESPACE,
    },
    spec: {
      containers: [
        {
          command: [component, ...names.map(name => `--${name}=${flags[name]}`)],
          image: `registry.k8s.io/${component}:${VERSION_OF_KUBERNETES}`,
          imagePullPolicy: 'IfNotPresent',
          name: component,
          resources: { requests: { cpu } },
          ...looks,
          volumeMounts: volumes.map(({ name, path, readOnly }) => ({
            mountPath: path,
            name,
            ...(readOnly && { readOnly }),
          })),
        },
      ],
      hostNetwork: true,
      priority: 2_000_001_000,
      priorityClassName: 'system-node-critical',
      securityContext: { seccompProfile: { type: 'RuntimeDefault' } },
      volumes: volumes.map(({ name, path, type }) => ({ hostPath: { path, type }, name })),
    },
    status: {},
  };
  return dump(pod, { lineWidth: -1, noRefs: true });
}
