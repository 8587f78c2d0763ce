import type { UserInfo } from '../pki/user.ts';
import type { Family } from './profile.ts';

/** One signer with everything that hangs on it (spec 40, section 2). */
export interface FamilyRow {
  /** The Secret's name, both of the wanted signer (`openshift-etcd`) and of the one in use (`openshift-config`). */
  readonly signer: string;
  readonly signerDescription: string;
  readonly bundle: string;
  readonly bundleDescription: string;
  /** Its key in `etcd-all-bundles`. */
  readonly bundleKey: string;
  readonly client: { readonly secret: string; readonly user: UserInfo; readonly description: string };
  /** The label `name` of the expiration gauge. */
  readonly gauge: string;
  /** How error texts call the signer's and the client's failures (spec 40, S-2 to S-10). */
  readonly errors: {
    readonly signer: string;
    readonly bundleInUse: string;
    readonly bundleWanted: string;
    readonly client: string;
  };
}

export const FAMILY_TABLE: Readonly<Record<Family, FamilyRow>> = {
  server: {
    signer: 'etcd-signer',
    signerDescription: 'etcd signer certificate authorities',
    bundle: 'etcd-ca-bundle',
    bundleDescription: 'bundle for etcd signer certificate authorities',
    bundleKey: 'server-ca-bundle.crt',
    client: {
      secret: 'etcd-client',
      user: { name: 'etcd-client', groups: ['system:etcd', 'etcd-client'] },
      description: 'etcd client certificate',
    },
    gauge: 'signer-ca',
    errors: {
      signer: 'error on ensuring etcd-signer cert',
      bundleInUse: 'error on ensuring signer bundle for existing pair',
      bundleWanted: 'error on ensuring signer bundle for new pair',
      client: 'error on ensuring etcd client cert',
    },
  },
  metrics: {
    signer: 'etcd-metric-signer',
    signerDescription: 'etcd metrics signer certificate authorities',
    bundle: 'etcd-metrics-ca-bundle',
    bundleDescription: 'bundle for etcd metrics signer certificate authorities',
    bundleKey: 'metrics-ca-bundle.crt',
    client: {
      secret: 'etcd-metric-client',
      user: { name: 'etcd-metric', groups: ['system:etcd', 'etcd-metric'] },
      description: 'etcd metrics client certificate',
    },
    gauge: 'metrics-signer-ca',
    errors: {
      signer: 'error on ensuring metrics-signer cert',
      bundleInUse: 'error on ensuring metrics signer bundle for existing pair',
      bundleWanted: 'error on ensuring metrics signer bundle',
      client: 'error on ensuring metrics client cert',
    },
  },
};

/** One of the certificates that every control-plane node has (spec 40, 2.4). */
export interface NodeLeafRow {
  /** The Secret is called `<prefix><node>`. */
  readonly prefix: string;
  readonly family: Family;
  readonly description: string;
  /** How error texts call it: while its names are worked out, and while it is made (spec 40, S-11 and S-12). */
  readonly errors: { readonly config: string; readonly sync: string };
}

export const NODE_LEAVES: readonly NodeLeafRow[] = [
  {
    prefix: 'etcd-peer-',
    family: 'server',
    description: 'Peer Cert for node',
    errors: { config: 'peer', sync: 'error on peer cert sync for node' },
  },
  {
    prefix: 'etcd-serving-',
    family: 'server',
    description: 'Serving Cert for node',
    errors: { config: 'serving', sync: 'error on serving cert sync for node' },
  },
  {
    prefix: 'etcd-serving-metrics-',
    family: 'metrics',
    description: 'Metric Serving Cert for node',
    errors: { config: 'metrics', sync: 'error on serving metrics cert sync for node' },
  },
];

/** What each certificate of a node is good for besides the node's own addresses (spec 40, C-7). */
export const COMMON_HOSTNAMES: readonly string[] = [
  'localhost',
  'etcd.kube-system.svc',
  'etcd.kube-system.svc.cluster.local',
  'etcd.openshift-etcd.svc',
  'etcd.openshift-etcd.svc.cluster.local',
  '127.0.0.1',
  '::1',
];
