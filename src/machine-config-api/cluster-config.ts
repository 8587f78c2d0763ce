import { type KubeObject, resource } from '../kube/resource.ts';
import type { TlsSecurityProfile } from './machine-config.ts';

/** The kinds of config.openshift.io that machine configuration reads, as far as it reads them. */
const API_VERSION = 'config.openshift.io/v1';

export interface PlatformStatus {
  type?: string;
  [platform: string]: unknown;
}

export interface InfrastructureStatus {
  apiServerInternalURI?: string;
  controlPlaneTopology?: string;
  etcdDiscoveryDomain?: string;
  /** Older than `platformStatus.type`. */
  platform?: string;
  platformStatus?: PlatformStatus;
}

export interface Infrastructure extends KubeObject {
  spec?: { cloudConfig?: { name?: string; key?: string } };
  status?: InfrastructureStatus;
}

export interface MtuMigration {
  network?: { from?: number; to?: number };
  machine?: { from?: number; to?: number };
}

export interface Network extends KubeObject {
  spec?: {
    serviceNetwork?: readonly string[];
    clusterNetwork?: readonly { readonly cidr: string }[];
    networkType?: string;
  };
  status?: {
    serviceNetwork?: readonly string[];
    networkType?: string;
    migration?: { networkType?: string; mtu?: MtuMigration } | null;
  };
}

export interface ProxyStatus {
  httpProxy?: string;
  httpsProxy?: string;
  noProxy?: string;
}

export interface Proxy extends KubeObject {
  spec?: { trustedCA?: { name?: string } };
  status?: ProxyStatus;
}

export interface Dns extends KubeObject {
  spec?: { baseDomain?: string };
}

export interface RegistrySources {
  insecureRegistries?: readonly string[];
  blockedRegistries?: readonly string[];
  allowedRegistries?: readonly string[];
  containerRuntimeSearchRegistries?: readonly string[];
}

export interface Image extends KubeObject {
  spec?: { additionalTrustedCA?: { name?: string }; registrySources?: RegistrySources };
}

/** Where images of a repository may be had besides from there. */
export interface ImageMirrors {
  source: string;
  mirrors?: readonly string[];
  /** `NeverContactSource` or `AllowContactingSource`, which is the default. */
  mirrorSourcePolicy?: string;
}

/** The older form of ImageDigestMirrorSet. */
export interface ImageContentSourcePolicy extends KubeObject {
  spec?: { repositoryDigestMirrors?: readonly ImageMirrors[] };
}

export interface ImageDigestMirrorSet extends KubeObject {
  spec?: { imageDigestMirrors?: readonly ImageMirrors[] };
}

export interface ImageTagMirrorSet extends KubeObject {
  spec?: { imageTagMirrors?: readonly ImageMirrors[] };
}

export interface FeatureGate extends KubeObject {
  spec?: {
    featureSet?: string;
    customNoUpgrade?: { enabled?: readonly string[]; disabled?: readonly string[] };
  };
  /** By release, as a controller of its own has worked it out of the spec. */
  status?: {
    featureGates?: readonly {
      version: string;
      enabled?: readonly { name: string }[];
      disabled?: readonly { name: string }[];
    }[];
  };
}

export interface Scheduler extends KubeObject {
  spec?: { mastersSchedulable?: boolean };
}

/** Settings for all nodes, not a node. */
export interface NodeConfig extends KubeObject {
  spec?: { workerLatencyProfile?: string; cgroupMode?: string };
}

/** What an OpenShift cluster is a version of; other clusters have none. */
export interface ClusterVersion extends KubeObject {
  status?: { desired?: { image?: string } };
}

export interface ApiServer extends KubeObject {
  spec?: { tlsSecurityProfile?: TlsSecurityProfile };
}

export const INFRASTRUCTURES = resource<Infrastructure>(API_VERSION, 'Infrastructure', 'infrastructures', false);
export const NETWORKS = resource<Network>(API_VERSION, 'Network', 'networks', false);
export const PROXIES = resource<Proxy>(API_VERSION, 'Proxy', 'proxies', false);
export const DNSES = resource<Dns>(API_VERSION, 'DNS', 'dnses', false);
export const IMAGES = resource<Image>(API_VERSION, 'Image', 'images', false);
export const SCHEDULERS = resource<Scheduler>(API_VERSION, 'Scheduler', 'schedulers', false);
export const CLUSTER_VERSIONS = resource<ClusterVersion>(API_VERSION, 'ClusterVersion', 'clusterversions', false);
export const NODE_CONFIGS = resource<NodeConfig>(API_VERSION, 'Node', 'nodes', false);
export const API_SERVERS = resource<ApiServer>(API_VERSION, 'APIServer', 'apiservers', false);
export const FEATURE_GATES = resource<FeatureGate>(API_VERSION, 'FeatureGate', 'featuregates', false);
export const IMAGE_DIGEST_MIRROR_SETS = resource<ImageDigestMirrorSet>(
  API_VERSION,
  'ImageDigestMirrorSet',
  'imagedigestmirrorsets',
  false,
);
export const IMAGE_TAG_MIRROR_SETS = resource<ImageTagMirrorSet>(
  API_VERSION,
  'ImageTagMirrorSet',
  'imagetagmirrorsets',
  false,
);
export const IMAGE_CONTENT_SOURCE_POLICIES = resource<ImageContentSourcePolicy>(
  'operator.openshift.io/v1alpha1',
  'ImageContentSourcePolicy',
  'imagecontentsourcepolicies',
  false,
);
