import type { ListedObject } from '../staticpod/config.ts';
import { type Lifetimes, lifetimes } from './lifetimes.ts';
import { ALL_BUNDLES, ALL_CERTS, ENDPOINTS, POD_CONFIG_MAP } from './names.ts';

/** What etcd's clients and peers are verified with, and what scrapers of its metrics are verified with. */
export type Family = 'server' | 'metrics';
export const FAMILIES: readonly Family[] = ['server', 'metrics'];

/** A CA bundle as a process reads it: a key of a ConfigMap. */
export interface TrustFile {
  readonly configMap: string;
  readonly key: string;
}

/** Which upstream release a cluster looks like. What the two have in common is not in here. */
export interface Profile {
  readonly release: '4.16' | 'later';
  /** Who makes the wanted signer the one in use: an administrator (spec 40, R-2), or we, behind the gate (section 12). */
  readonly handOver: 'manual' | 'automatic';
  readonly lifetimes: Lifetimes;
  /** Both bundles in one object, so that a bundle change is one revision and not up to two (spec 40, RS-4). */
  readonly aggregatesBundles: boolean;
  /** Which bundle each kind of process reads. */
  readonly trust: {
    /** etcd's client port, etcdctl, readyz. */
    readonly clients: TrustFile;
    /** etcd's peer port, and the metrics proxy towards etcd. */
    readonly peers: TrustFile;
    readonly scrapers: TrustFile;
  };
  readonly revisioned: { readonly configMaps: readonly ListedObject[]; readonly secrets: readonly ListedObject[] };
  readonly unrevisioned: { readonly configMaps: readonly ListedObject[]; readonly secrets: readonly ListedObject[] };
}

/** Scripts and the manifest for a restore come with an OpenShift release; where there are none, there are none. */
const RESTORE: readonly ListedObject[] = [
  { name: 'restore-etcd-pod', optional: true },
  { name: 'etcd-scripts', optional: true },
];
const CA_FILE = 'ca-bundle.crt';
const COPIES_4_16 = [
  'etcd-serving-ca',
  'etcd-peer-client-ca',
  'etcd-metrics-proxy-serving-ca',
  'etcd-metrics-proxy-client-ca',
].map(name => ({ name }));

/** The layout of 4.16, where an administrator changes the signer (spec 40, sections 2 to 10). */
export function profile416(dayMs?: number): Profile {
  return {
    release: '4.16',
    handOver: 'manual',
    lifetimes: lifetimes('three years', dayMs),
    aggregatesBundles: false,
    trust: {
      clients: { configMap: 'etcd-serving-ca', key: CA_FILE },
      peers: { configMap: 'etcd-peer-client-ca', key: CA_FILE },
      scrapers: { configMap: 'etcd-metrics-proxy-serving-ca', key: CA_FILE },
    },
    revisioned: {
      configMaps: [{ name: POD_CONFIG_MAP }, ...COPIES_4_16, { name: ENDPOINTS }],
      secrets: [{ name: ALL_CERTS }],
    },
    unrevisioned: { configMaps: [...RESTORE, ...COPIES_4_16], secrets: [{ name: ALL_CERTS }] },
  };
}

/** The layout since 4.17, where signers change by themselves (spec 40, section 12). The default. */
export function profileLater(dayMs?: number): Profile {
  const server = { configMap: ALL_BUNDLES, key: 'server-ca-bundle.crt' };
  return {
    release: 'later',
    handOver: 'automatic',
    lifetimes: lifetimes('five years', dayMs),
    aggregatesBundles: true,
    trust: { clients: server, peers: server, scrapers: { configMap: ALL_BUNDLES, key: 'metrics-ca-bundle.crt' } },
    revisioned: {
      configMaps: [{ name: POD_CONFIG_MAP }, { name: ENDPOINTS }, { name: ALL_BUNDLES }],
      secrets: [{ name: ALL_CERTS }],
    },
    unrevisioned: {
      configMaps: [...RESTORE, { name: ALL_BUNDLES }, { name: 'external-etcd-pod', optional: true }],
      secrets: [{ name: ALL_CERTS }],
    },
  };
}

/** The files that must hold a signer before anything it signed may be shown: one kind of process reads each. */
export function trustFilesOf({ trust }: Profile, family: Family): readonly TrustFile[] {
  const files = family === 'server' ? [trust.clients, trust.peers] : [trust.scrapers];
  return files.filter(
    ({ configMap, key }, index) =>
      files.findIndex(other => other.configMap === configMap && other.key === key) === index,
  );
}
