import type { Random } from '../random.ts';

type Field = (r: Random) => unknown;
export type Fields = Readonly<Record<string, Field>>;

const oneOf =
  (...values: readonly unknown[]): Field =>
  r =>
    r.pick(values);
const flag: Field = r => r.chance(0.5);

/** Fields of the kubelet that an administrator may set. */
export const FIELDS: Fields = {
  maxPods: oneOf(100, 500, 0, -1),
  podsPerCore: oneOf(0, 10),
  podPidsLimit: oneOf(-1, 0, 8192),
  kubeAPIQPS: oneOf(0, 10, 50),
  kubeAPIBurst: oneOf(0, 10),
  protectKernelDefaults: flag,
  serializeImagePulls: flag,
  rotateCertificates: flag,
  serverTLSBootstrap: flag,
  enforceNodeAllocatable: r => r.some(['pods', 'kube-reserved']),
  failSwapOn: flag,
  hairpinMode: oneOf('', 'veth'),
  evictionHard: r => amounts(r, ['memory.available', 'nodefs.available'], ['100Mi', '10%']),
  evictionSoft: oneOf({ 'memory.available': '200Mi' }),
  evictionSoftGracePeriod: oneOf({ 'memory.available': '1m30s' }),
  evictionPressureTransitionPeriod: oneOf('5m', '0s', '5m0s'),
  evictionMaxPodGracePeriod: oneOf(0, 1, 2),
  systemReserved: r => amounts(r, ['memory', 'cpu', 'ephemeral-storage', 'pid'], ['1Gi', '500m', '', '2']),
  kubeReserved: oneOf({ memory: '1Gi' }),
  containerLogMaxSize: oneOf('50Mi', '10Mi', ''),
  containerLogMaxFiles: oneOf(5, 7, 0),
  imageGCHighThresholdPercent: oneOf(80, 0),
  imageMinimumGCAge: oneOf('2m', '0s'),
  cpuManagerPolicy: oneOf('static', 'none', ''),
  cpuManagerReconcilePeriod: oneOf('5s', '10s'),
  topologyManagerPolicy: oneOf('single-numa-node', ''),
  reservedSystemCPUs: oneOf('0,1', ''),
  authentication: oneOf(
    { anonymous: { enabled: true } },
    { anonymous: { enabled: false } },
    { x509: { clientCAFile: '/x' } },
    { webhook: { enabled: false, cacheTTL: '2m' } },
    {},
  ),
  authorization: oneOf({ mode: 'Webhook' }, { webhook: { cacheAuthorizedTTL: '5m' } }, {}),
  allowedUnsafeSysctls: r => r.some(['kernel.msg*', 'net.core.somaxconn']),
  nodeStatusUpdateFrequency: oneOf('10s', '1m', '0s'),
  nodeStatusReportFrequency: oneOf('5m', '1m'),
  registryPullQPS: oneOf(0, 5),
  registryBurst: oneOf(0, 10),
  eventRecordQPS: oneOf(0, 5),
  streamingConnectionIdleTimeout: oneOf('0s', '4h'),
  tlsCipherSuites: r => r.some(['TLS_AES_128_GCM_SHA256', 'X']),
  tlsMinVersion: oneOf('VersionTLS13', ''),
  shutdownGracePeriod: oneOf('30s', '0s'),
  memorySwap: oneOf({ swapBehavior: 'LimitedSwap' }, {}),
  logging: oneOf({ format: 'json' }),
  makeIPTablesUtilChains: flag,
  systemCgroups: oneOf('/x', ''),
  cgroupRoot: oneOf('/', '/x', ''),
  enableSystemLogQuery: flag,
  registerWithTaints: oneOf([{ key: 'a', effect: 'NoSchedule' }]),
  reservedMemory: oneOf([{ numaNode: 0, limits: { memory: '1Gi' } }]),
  volumePluginDir: oneOf('/x', ''),
  kind: oneOf('KubeletConfiguration'),
  apiVersion: oneOf('kubelet.config.k8s.io/v1beta1'),
};

/** Fields that belong to the cluster. */
export const FORBIDDEN: Fields = {
  cgroupDriver: oneOf('systemd', ''),
  clusterDNS: oneOf(['1.1.1.1'], []),
  clusterDomain: oneOf('x', ''),
  featureGates: oneOf({ A: true }, {}),
  staticPodPath: oneOf('/x', ''),
};

/** Values of another type than the kubelet reads, and fields it does not know. */
export const MISTYPED: Fields = {
  maxPods: oneOf('500', 1.5, true),
  evictionHard: oneOf('x', { 'memory.available': 5 }, []),
  serializeImagePulls: oneOf('false'),
  evictionPressureTransitionPeriod: oneOf('5', 'abc', 300),
  unknownField: oneOf(1),
  kubeAPIQPS: oneOf(3_000_000_000),
  imageMinimumGCAge: oneOf('2 minutes', '1d'),
  systemReserved: oneOf({ memory: 1 }, 'x'),
  MaxPods: oneOf(77),
  authentication: oneOf('x'),
  tlsCipherSuites: oneOf('x'),
  topologyManagerPolicy: oneOf(null),
};

const CIPHERS = [
  'ECDHE-RSA-AES128-GCM-SHA256',
  'AES128-SHA',
  'nope',
  'TLS_AES_128_GCM_SHA256',
  'DHE-RSA-AES128-GCM-SHA256',
  'AES256-SHA256',
  'ECDHE-ECDSA-AES256-SHA384',
];

export function tlsProfile(r: Random): object {
  return r.pick<object>([
    { type: 'Old' },
    { type: 'Intermediate' },
    { type: 'Modern' },
    { type: '' },
    { type: 'Weird' },
    { type: 'Custom' },
    {
      type: 'Custom',
      custom: { ciphers: r.some(CIPHERS), minTLSVersion: r.pick(['VersionTLS11', 'VersionTLS13', '']) },
    },
  ]);
}

/** Some fields with their values. */
export function chosen(r: Random, fields: Fields, count: number): Record<string, unknown> {
  const names = r.shuffle(Object.keys(fields)).slice(0, count);
  return Object.fromEntries(names.map(name => [name, fields[name]!(r)]));
}

function amounts(r: Random, names: readonly string[], values: readonly string[]): object {
  return Object.fromEntries(r.some(names).map(name => [name, r.pick(values)]));
}
