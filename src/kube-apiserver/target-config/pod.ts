import type { Container, EnvVar, Pod, Probe, ResourceRequirements, VolumeMount } from 'kubernetes-types/core/v1.d.ts';
import { DEFAULT_KEY_ALGORITHM } from '../../certrotation/secret.ts';
import type { KeyAlgorithm } from '../../pki/keys.ts';
import { RESOURCE_DIRECTORY } from '../../staticpod/config.ts';
import { OPERAND_NAMESPACE } from '../namespaces.ts';
import {
  CERTS_DIRECTORY,
  CERTS_MOUNT,
  mountedFile,
  RESOURCES_MOUNT,
  REVISION_DIRECTORY_PREFIX,
} from '../operand-objects.ts';
import { AUDIT_DIRECTORY } from './default-config.ts';
import type { PodValues } from './template.ts';

export const API_PORT = 6443;
export const INSECURE_READYZ_PORT = 6080;
export const CHECK_ENDPOINTS_PORT = 17697;

export interface PodOptions {
  /** The image with kube-apiserver. */
  readonly image: string;
  /** The image with our own programs. */
  readonly operatorImage: string;
  /** What starts them; the name of the program follows. */
  readonly operatorCommand: readonly string[];
  readonly server: Server;
  /** Of what is made while the operator is away. */
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
}

/** How kube-apiserver is started. */
export type Server =
  /** OpenShift's image: a shell, the wrapper that tells of terminations, and a configuration file. */
  | { readonly flavor: 'openshift' }
  /** Any other: the program and its flags. */
  | { readonly flavor: 'kubernetes'; readonly command: readonly string[]; readonly flags: readonly string[] };

const SYNCER_KUBECONFIG = mountedFile('ConfigMap', 'kube-apiserver-cert-syncer-kubeconfig', 'kubeconfig');

/**
 * The static pod (spec 20, section 4). `REVISION` is put in by the installer on each node; it stands nowhere else in here.
 */
export function kubeApiserverPod(values: PodValues, options: PodOptions): Pod {
  const { gracefulTerminationSeconds, proxy } = values;
  const containers = [serverContainer(values, options), ...sideContainers(options)].map(container => ({
    ...container,
    env: [...(container.env ?? []), ...proxy],
  }));
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: {
      namespace: OPERAND_NAMESPACE,
      name: 'kube-apiserver',
      labels: { app: 'openshift-kube-apiserver', apiserver: 'true', revision: 'REVISION' },
      annotations: {
        'kubectl.kubernetes.io/default-container': 'kube-apiserver',
        'target.workload.openshift.io/management': '{"effect": "PreferredDuringScheduling"}',
      },
    },
    spec: {
      initContainers: options.server.flavor === 'openshift' ? [setupContainer(values, options)] : [],
      containers,
      hostNetwork: true,
      priorityClassName: 'system-node-critical',
      terminationGracePeriodSeconds: gracefulTerminationSeconds,
      tolerations: [{ operator: 'Exists' }],
      volumes: [
        hostPath('resource-dir', `${RESOURCE_DIRECTORY}/${REVISION_DIRECTORY_PREFIX}-REVISION`),
        hostPath('cert-dir', `${RESOURCE_DIRECTORY}/${CERTS_DIRECTORY}`),
        hostPath('audit-dir', AUDIT_DIRECTORY),
      ],
    },
  };
}

const LOCK = `${AUDIT_DIRECTORY}/.lock`;

/** Waits until the old server is gone: first for its lock, and where that is held too long, for its ports. */
function setupContainer(
  { gracefulTerminationSeconds, setupTimeoutSeconds }: PodValues,
  options: PodOptions,
): Container {
  const script = `
chmod 0700 ${AUDIT_DIRECTORY}
touch ${AUDIT_DIRECTORY}/audit.log
chmod 0600 ${AUDIT_DIRECTORY}/*
exec {fd}>${LOCK}
if ! flock --wait ${gracefulTerminationSeconds} "$fd"; then
  echo "$(date -Iseconds -u) the old kube-apiserver still holds the lock" | tee -a ${AUDIT_DIRECTORY}/lock.log
  left=10
  while [ -n "$(ss -Htan state listening '( sport = ${API_PORT} or sport = ${INSECURE_READYZ_PORT} )')" ]; do
    if [ "$left" -eq 0 ]; then
      echo "the old kube-apiserver still listens"
      exit 1
    fi
    left=$((left - 1))
    sleep 1
  done
  sleep 65
fi
flock --unlock "$fd"
`;
  return {
    name: 'setup',
    image: options.image,
    ...COMMON,
    command: ['/usr/bin/timeout', String(setupTimeoutSeconds), '/bin/bash', '-ec'],
    args: [script.trimStart()],
    volumeMounts: [AUDIT_MOUNT],
    securityContext: { privileged: true },
    resources: requests('50Mi', '5m'),
  };
}

function serverContainer(values: PodValues, { image, server }: PodOptions): Container {
  return {
    name: 'kube-apiserver',
    image,
    ...COMMON,
    ...(server.flavor === 'openshift'
      ? { command: ['/bin/bash', '-ec'], args: [openshiftScript(values)] }
      : {
          command: [...server.command],
          args: [
            ...server.flags,
            '--advertise-address=$(HOST_IP)',
            `-v=${values.verbosity}`,
            '--permit-address-sharing',
          ],
        }),
    ports: [{ containerPort: API_PORT }],
    env: [
      ...POD_IDENTITY,
      { name: 'STATIC_POD_VERSION', value: 'REVISION' },
      { name: 'HOST_IP', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } },
      { name: 'GOGC', value: String(values.gcPercent) },
    ],
    volumeMounts: [RESOURCES, CERTS, AUDIT_MOUNT],
    startupProbe: probe(API_PORT, 'healthz', { periodSeconds: 5, failureThreshold: 30 }),
    livenessProbe: probe(API_PORT, 'livez', { periodSeconds: 10, failureThreshold: 3 }),
    readinessProbe: probe(API_PORT, 'readyz', { periodSeconds: 5, failureThreshold: 1 }),
    securityContext: { privileged: true },
    resources: requests('1Gi', '265m'),
  };
}

function openshiftScript({ gracefulTerminationSeconds, verbosity }: PodValues): string {
  const trusted = mountedFile('ConfigMap', 'trusted-ca-bundle', 'ca-bundle.crt');
  const wrapper = [
    'watch-termination',
    `--termination-touch-file=${AUDIT_DIRECTORY}/.terminating`,
    `--termination-log-file=${AUDIT_DIRECTORY}/termination.log`,
    `--graceful-termination-duration=${gracefulTerminationSeconds}s`,
    `--kubeconfig=${SYNCER_KUBECONFIG}`,
  ];
  const server = [
    'hyperkube',
    'kube-apiserver',
    `--openshift-config=${mountedFile('ConfigMap', 'config', 'config.yaml')}`,
    '--advertise-address=${HOST_IP}',
    `-v=${verbosity}`,
    '--permit-address-sharing',
  ];
  return `exec {fd}>${LOCK}
flock --wait 30 "$fd" || { echo "the setup container still holds the lock"; exit 1; }
if [ -f ${trusted} ]; then
  cp -f ${trusted} /etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem
fi
exec ${wrapper.join(' ')} -- ${server.join(' ')}
`;
}

/** The programs beside the server (spec 20, section 5). */
function sideContainers({ operatorImage, operatorCommand, keyAlgorithm }: PodOptions): Container[] {
  const isUsual = keyAlgorithm === undefined || keyAlgorithm === DEFAULT_KEY_ALGORITHM;
  const side = (name: string, program: string, args: string[], cpu = '5m'): Container => ({
    name: `kube-apiserver-${name}`,
    image: operatorImage,
    ...COMMON,
    command: [...operatorCommand, program],
    args,
    resources: requests('50Mi', cpu),
  });
  const health = probe(CHECK_ENDPOINTS_PORT, 'healthz', { initialDelaySeconds: 10 });
  return [
    {
      ...side('cert-syncer', 'cert-syncer', [
        `--kubeconfig=${SYNCER_KUBECONFIG}`,
        '--namespace=$(POD_NAMESPACE)',
        `--destination-dir=${CERTS_MOUNT}`,
      ]),
      env: POD_IDENTITY,
      volumeMounts: [RESOURCES, CERTS],
    },
    {
      ...side('cert-regeneration-controller', 'cert-regeneration-controller', [
        `--kubeconfig=${SYNCER_KUBECONFIG}`,
        '--namespace=$(POD_NAMESPACE)',
        '-v=2',
        ...(isUsual ? [] : [`--key-algorithm=${keyAlgorithm}`]),
      ]),
      env: POD_IDENTITY,
      volumeMounts: [RESOURCES],
    },
    {
      ...side('insecure-readyz', 'insecure-readyz', [
        `--insecure-port=${INSECURE_READYZ_PORT}`,
        `--delegate-url=https://localhost:${API_PORT}/readyz`,
      ]),
      ports: [{ containerPort: INSECURE_READYZ_PORT }],
    },
    {
      ...side(
        'check-endpoints',
        'check-endpoints',
        [
          `--kubeconfig=${mountedFile('ConfigMap', 'check-endpoints-kubeconfig', 'kubeconfig')}`,
          `--listen=0.0.0.0:${CHECK_ENDPOINTS_PORT}`,
          '--namespace=$(POD_NAMESPACE)',
          '-v=2',
        ],
        '10m',
      ),
      ports: [
        {
          name: 'check-endpoints',
          hostPort: CHECK_ENDPOINTS_PORT,
          containerPort: CHECK_ENDPOINTS_PORT,
          protocol: 'TCP',
        },
      ],
      env: POD_IDENTITY,
      volumeMounts: [RESOURCES, CERTS],
      livenessProbe: health,
      readinessProbe: health,
    },
  ];
}

const COMMON = { imagePullPolicy: 'IfNotPresent', terminationMessagePolicy: 'FallbackToLogsOnError' } as const;

const POD_IDENTITY: EnvVar[] = [
  { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
  { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
];

const RESOURCES: VolumeMount = { name: 'resource-dir', mountPath: RESOURCES_MOUNT };
const CERTS: VolumeMount = { name: 'cert-dir', mountPath: CERTS_MOUNT };
const AUDIT_MOUNT: VolumeMount = { name: 'audit-dir', mountPath: AUDIT_DIRECTORY };

const PROBE_TIMEOUT_SECONDS = 10;

function probe(port: number, path: string, timing: Partial<Probe>): Probe {
  return { httpGet: { scheme: 'HTTPS', port, path }, timeoutSeconds: PROBE_TIMEOUT_SECONDS, ...timing };
}

function requests(memory: string, cpu: string): ResourceRequirements {
  return { requests: { memory, cpu } };
}

function hostPath(name: string, path: string): { name: string; hostPath: { path: string } } {
  return { name, hostPath: { path } };
}
