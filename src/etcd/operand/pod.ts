import type { Container, EnvVar, Pod, Probe, Volume, VolumeMount } from 'kubernetes-types/core/v1.d.ts';
import { RESOURCE_DIRECTORY } from '../../staticpod/config.ts';
import { CLIENT_PORT, ETCD_NAMESPACE, METRICS_PORT, METRICS_PROXY_PORT, PEER_PORT, READYZ_PORT } from '../names.ts';
import type { Profile } from '../profile.ts';
import { CERT_DIRECTORY, certificatePath, DATA_DIRECTORY, type Env, trustPath } from './env.ts';

export interface PodOptions {
  readonly profile: Profile;
  readonly env: Env;
  readonly image: string;
  readonly operatorImage: string;
  /** What runs our own program in the operator's image. */
  readonly command: readonly string[];
  /** `debug` or `info`. */
  readonly logLevel: string;
  /** `all` interfaces, or only the address of the `node`, where several nodes share a machine. */
  readonly listenOn: 'all' | 'node';
  readonly withMetricsProxy: boolean;
}

/** Upstream's labels; the operator and the guards find the pods by them. */
export const OPERAND_LABELS = { app: 'etcd', 'k8s-app': 'etcd', etcd: 'true' } as const;
/** The directory of the unrevisioned files below the resource directory. */
export const CERTS_DIRECTORY_NAME = 'etcd-certs';

/** Filled in by the installer on each node. */
const NODE_IP = '$(NODE_NODE_ENVVAR_NAME_IP)';
const URL_HOST = '$(NODE_NODE_ENVVAR_NAME_ETCD_URL_HOST)';

/**
 * The static pod (spec 40, section 7). Commands are plain argument lists without a shell, so that any etcd image will do.
 * `REVISION`, `NODE_NAME` and `NODE_ENVVAR_NAME` stand for what only the node knows.
 */
export function etcdPod(options: PodOptions): Pod {
  const containers = [
    etcdctl(options),
    etcd(options),
    ...(options.withMetricsProxy ? [metricsProxy(options)] : []),
    readyz(options),
  ];
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      name: 'etcd',
      namespace: ETCD_NAMESPACE,
      annotations: {
        'kubectl.kubernetes.io/default-container': 'etcd',
        'target.workload.openshift.io/management': '{"effect": "PreferredDuringScheduling"}',
      },
      labels: { ...OPERAND_LABELS, revision: 'REVISION' },
    },
    spec: {
      initContainers: [addressCheck(options)],
      containers,
      hostNetwork: true,
      priorityClassName: 'system-node-critical',
      tolerations: [{ operator: 'Exists' }],
      volumes: VOLUMES,
    },
  };
}

/** Refuses to start with an address that is not the node's: the certificates would be for somebody else (spec 40, P-5). */
function addressCheck(options: PodOptions): Container {
  const script = [
    'for address in "$EXPECTED_IP" "$EXPECTED_URL_HOST"; do',
    '  case "$address" in',
    '    "$POD_IP" | "[$POD_IP]") ;;',
    '    *) echo "expected this node to have the address $address, found $POD_IP" >&2; exit 1 ;;',
    '  esac',
    'done',
  ];
  return {
    ...common(options, 'etcd-ensure-env-vars', options.operatorImage, { memory: '60Mi', cpu: '10m' }),
    command: ['/bin/sh', '-c', script.join('\n')],
    env: [
      ...variables(options),
      { name: 'EXPECTED_IP', value: NODE_IP },
      { name: 'EXPECTED_URL_HOST', value: URL_HOST },
      { name: 'POD_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
    ],
  };
}

/** First, so that a shell into the pod finds `etcdctl` ready to use. */
function etcdctl(options: PodOptions): Container {
  return {
    ...common(options, 'etcdctl', options.operatorImage, { memory: '60Mi', cpu: '10m' }),
    command: ['/bin/sh', '-c', 'trap "exit 0" TERM INT; while sleep 3600 & wait $!; do :; done'],
    volumeMounts: MOUNTS,
  };
}

/** Spec 40, P-4. */
function etcd(options: PodOptions): Container {
  const { profile, logLevel, listenOn } = options;
  const [serving, peer] = [certificatePath('etcd-serving-NODE_NAME'), certificatePath('etcd-peer-NODE_NAME')];
  const listen = (port: number) => `https://${listenOn === 'all' ? '0.0.0.0' : NODE_IP}:${port}`;
  return {
    ...common(options, 'etcd', options.image, { memory: '600Mi', cpu: '300m' }),
    command: [
      'etcd',
      '--logger=zap',
      `--log-level=${logLevel}`,
      '--snapshot-count=10000',
      `--initial-advertise-peer-urls=https://${NODE_IP}:${PEER_PORT}`,
      `--cert-file=${serving}.crt`,
      `--key-file=${serving}.key`,
      `--trusted-ca-file=${trustPath(profile.trust.clients)}`,
      '--client-cert-auth=true',
      `--peer-cert-file=${peer}.crt`,
      `--peer-key-file=${peer}.key`,
      `--peer-trusted-ca-file=${trustPath(profile.trust.peers)}`,
      '--peer-client-cert-auth=true',
      `--advertise-client-urls=https://${NODE_IP}:${CLIENT_PORT}`,
      `--listen-client-urls=${listen(CLIENT_PORT)}`,
      `--listen-peer-urls=${listen(PEER_PORT)}`,
      '--metrics=extensive',
      `--listen-metrics-urls=${listen(METRICS_PORT)}`,
    ],
    env: [
      ...variables(options),
      { name: 'ETCD_NAME', value: '$(NODE_NODE_ENVVAR_NAME_ETCD_NAME)' },
      { name: 'ETCD_INITIAL_CLUSTER', value: '$(NODE_NODE_ENVVAR_NAME_INITIAL_CLUSTER)' },
      // While a cluster is founded, the first node begins it and the others join.
      ...(options.env.ETCD_INITIAL_CLUSTER_STATE === undefined
        ? [{ name: 'ETCD_INITIAL_CLUSTER_STATE', value: '$(NODE_NODE_ENVVAR_NAME_INITIAL_CLUSTER_STATE)' }]
        : []),
      { name: 'ETCD_STATIC_POD_VERSION', value: 'REVISION' },
      // The check at start has another name since etcd 3.6. As a flag the wrong one ends etcd, as a variable it is only warned about.
      { name: 'ETCD_EXPERIMENTAL_INITIAL_CORRUPT_CHECK', value: 'true' },
      { name: 'ETCD_FEATURE_GATES', value: 'InitialCorruptCheck=true' },
    ],
    ports: [port('etcd', CLIENT_PORT), port('etcd-peer', PEER_PORT), port('etcd-metrics', METRICS_PORT)],
    readinessProbe: probe('readyz', { timeoutSeconds: 30, failureThreshold: 5, periodSeconds: 5, successThreshold: 1 }),
    livenessProbe: probe('healthz', { timeoutSeconds: 30, failureThreshold: 5, periodSeconds: 5, successThreshold: 1 }),
    startupProbe: probe('readyz', {
      initialDelaySeconds: 10,
      timeoutSeconds: 1,
      failureThreshold: 18,
      periodSeconds: 10,
      successThreshold: 1,
    }),
    volumeMounts: MOUNTS,
  };
}

/** Lets scrapers in that have a certificate of the metrics signer. */
function metricsProxy(options: PodOptions): Container {
  const { profile, listenOn } = options;
  const [serving, peer] = [certificatePath('etcd-serving-metrics-NODE_NAME'), certificatePath('etcd-peer-NODE_NAME')];
  return {
    ...common(options, 'etcd-metrics', options.operatorImage, { memory: '200Mi', cpu: '40m' }),
    command: [
      ...options.command,
      'etcd-metrics-proxy',
      `--endpoints=https://${URL_HOST}:${METRICS_PORT}`,
      `--metrics-addr=https://${listenOn === 'all' ? '0.0.0.0' : NODE_IP}:${METRICS_PROXY_PORT}`,
      `--cert=${peer}.crt`,
      `--key=${peer}.key`,
      `--cacert=${trustPath(profile.trust.peers)}`,
      `--cert-file=${serving}.crt`,
      `--key-file=${serving}.key`,
      `--trusted-ca-file=${trustPath(profile.trust.scrapers)}`,
    ],
    ports: [port('proxy-metrics', METRICS_PROXY_PORT)],
    volumeMounts: MOUNTS.filter(({ name }) => name === 'cert-dir'),
  };
}

/** Answers the probes for etcd, which wants to see a client certificate from everybody. */
function readyz(options: PodOptions): Container {
  const serving = certificatePath('etcd-serving-NODE_NAME');
  const host = options.listenOn === 'all' ? 'localhost' : URL_HOST;
  return {
    ...common(options, 'etcd-readyz', options.operatorImage, { memory: '50Mi', cpu: '10m' }),
    command: [
      ...options.command,
      'etcd-readyz',
      `--target=https://${host}:${CLIENT_PORT}`,
      `--listen-address=${options.listenOn === 'all' ? '0.0.0.0' : NODE_IP}`,
      `--listen-port=${READYZ_PORT}`,
      `--serving-cert-file=${serving}.crt`,
      `--serving-key-file=${serving}.key`,
      '--client-cert-file=$(ETCDCTL_CERT)',
      '--client-key-file=$(ETCDCTL_KEY)',
      '--client-cacert-file=$(ETCDCTL_CACERT)',
    ],
    ports: [port('readyz', READYZ_PORT)],
    volumeMounts: MOUNTS.filter(({ name }) => name === 'cert-dir'),
  };
}

function common(
  options: PodOptions,
  name: string,
  image: string,
  requests: { memory: string; cpu: string },
): Container {
  return {
    name,
    image,
    imagePullPolicy: 'IfNotPresent',
    terminationMessagePolicy: 'FallbackToLogsOnError',
    securityContext: { privileged: true },
    resources: { requests },
    env: variables(options),
  };
}

/** Sorted, so that the same environment is the same text. */
function variables({ env }: PodOptions): EnvVar[] {
  return Object.keys(env)
    .sort()
    .map(name => ({ name, value: env[name] ?? '' }));
}

function port(name: string, containerPort: number): NonNullable<Container['ports']>[number] {
  return { name, containerPort, protocol: 'TCP' };
}

function probe(path: string, timing: Omit<Probe, 'httpGet'>): Probe {
  return { httpGet: { scheme: 'HTTPS', port: READYZ_PORT, path }, ...timing };
}

const MOUNTS: VolumeMount[] = [
  { name: 'static-pod-dir', mountPath: '/etc/kubernetes/manifests' },
  { name: 'resource-dir', mountPath: '/etc/kubernetes/static-pod-resources' },
  { name: 'cert-dir', mountPath: CERT_DIRECTORY },
  { name: 'data-dir', mountPath: DATA_DIRECTORY },
];

const VOLUMES: Volume[] = [
  { name: 'static-pod-dir', hostPath: { path: '/etc/kubernetes/manifests' } },
  { name: 'resource-dir', hostPath: { path: `${RESOURCE_DIRECTORY}/etcd-pod-REVISION` } },
  { name: 'cert-dir', hostPath: { path: `${RESOURCE_DIRECTORY}/${CERTS_DIRECTORY_NAME}` } },
  { name: 'data-dir', hostPath: { path: DATA_DIRECTORY, type: '' } },
];
