import type { Condition } from '../controller/condition.ts';
import { type KubeObject, resource } from '../kube/resource.ts';
import type {
  StaticPodOperatorResource,
  StaticPodOperatorSpec,
  StaticPodOperatorStatus,
} from '../staticpod/operator.ts';

/** A part of a configuration: maps, lists and single values. */
export type ConfigValue =
  | null
  | boolean
  | number
  | string
  | readonly ConfigValue[]
  | { readonly [key: string]: ConfigValue };
export type Config = { readonly [key: string]: ConfigValue };

/** `KubeAPIServer cluster` (operator.openshift.io/v1), spec 20, section 6. */
export interface KubeAPIServer extends StaticPodOperatorResource {
  spec?: KubeAPIServerSpec;
  status?: KubeAPIServerStatus;
}

export interface KubeAPIServerSpec extends StaticPodOperatorSpec {
  readonly observedConfig?: Config | null;
  readonly unsupportedConfigOverrides?: Config | null;
}

export interface KubeAPIServerStatus extends StaticPodOperatorStatus {
  readonly serviceAccountIssuers?: readonly ServiceAccountIssuer[];
}

/** The issuer without an expiration is the active one. */
export interface ServiceAccountIssuer {
  readonly name: string;
  readonly expirationTime?: string | null;
}

export interface APIServer extends KubeObject {
  spec?: {
    readonly servingCerts?: { readonly namedCertificates?: readonly NamedServingCert[] };
    readonly clientCA?: { readonly name?: string };
    readonly encryption?: { readonly type?: string };
    readonly audit?: AuditSpec;
    readonly additionalCORSAllowedOrigins?: readonly string[] | null;
  };
}

export interface NamedServingCert {
  readonly names?: readonly string[] | null;
  readonly servingCertificate?: { readonly name?: string };
}

export interface AuditSpec {
  readonly profile?: string;
  readonly customRules?: readonly { readonly group: string; readonly profile: string }[];
}

export interface Authentication extends KubeObject {
  spec?: {
    readonly type?: string;
    readonly oauthMetadata?: { readonly name?: string };
    readonly webhookTokenAuthenticator?: { readonly kubeConfig?: { readonly name?: string } } | null;
    readonly serviceAccountIssuer?: string;
  };
  status?: { readonly integratedOAuthMetadata?: { readonly name?: string } };
}

export interface Infrastructure extends KubeObject {
  spec?: {
    readonly cloudConfig?: { readonly name?: string; readonly key?: string };
    readonly platformSpec?: { readonly type?: string; readonly external?: { readonly platformName?: string } };
  };
  status?: {
    readonly apiServerURL?: string;
    readonly apiServerInternalURI?: string;
    /** What the documents call the field above; taken where the other one is missing. */
    readonly apiServerInternalURL?: string;
    readonly controlPlaneTopology?: string;
    readonly infrastructureTopology?: string;
    readonly platform?: string;
    readonly platformStatus?: {
      readonly type?: string;
      readonly aws?: { readonly region?: string };
      readonly gcp?: { readonly region?: string };
    };
  };
}

export interface Network extends KubeObject {
  spec?: { readonly serviceNodePortRange?: string };
  status?: {
    readonly serviceNetwork?: readonly string[];
    readonly clusterNetwork?: readonly { readonly cidr?: string; readonly hostPrefix?: number }[];
  };
}

export interface Proxy extends KubeObject {
  spec?: {
    readonly httpProxy?: string;
    readonly httpsProxy?: string;
    readonly trustedCA?: { readonly name?: string };
  };
  status?: { readonly httpProxy?: string; readonly httpsProxy?: string; readonly noProxy?: string };
}

/** One line of observation from one pod to one endpoint (controlplane.operator.openshift.io/v1alpha1). */
export interface PodNetworkConnectivityCheck extends KubeObject {
  spec?: {
    readonly sourcePod?: string;
    readonly targetEndpoint?: string;
    readonly tlsClientCert?: { readonly name?: string };
  };
  status?: ConnectivityStatus;
}

export interface ConnectivityStatus {
  readonly successes?: readonly ConnectivityLogEntry[];
  readonly failures?: readonly ConnectivityLogEntry[];
  readonly outages?: readonly ConnectivityOutage[];
  readonly conditions?: readonly Condition[];
}

export interface ConnectivityLogEntry {
  readonly time: string;
  readonly success: boolean;
  readonly reason?: string;
  readonly message?: string;
  /** A Go duration. */
  readonly latency?: string;
}

export interface ConnectivityOutage {
  readonly start: string;
  readonly end?: string;
  readonly startLogs?: readonly ConnectivityLogEntry[];
  readonly endLogs?: readonly ConnectivityLogEntry[];
  readonly message?: string;
}

/** The URL of the internal load balancer, under either of its two names. */
export function internalUrlOf({ status = {} }: Infrastructure): string {
  return status.apiServerInternalURI || status.apiServerInternalURL || '';
}

/** All of these have one instance, of this name. */
export const CLUSTER = { name: 'cluster' } as const;

const CONFIG = 'config.openshift.io/v1';

export const KUBE_API_SERVERS = resource<KubeAPIServer>(
  'operator.openshift.io/v1',
  'KubeAPIServer',
  'kubeapiservers',
  false,
);
/** Read for one thing: on which node a member is being replaced. */
export const ETCDS = resource<StaticPodOperatorResource>('operator.openshift.io/v1', 'Etcd', 'etcds', false);
export const API_SERVERS = resource<APIServer>(CONFIG, 'APIServer', 'apiservers', false);
export const AUTHENTICATIONS = resource<Authentication>(CONFIG, 'Authentication', 'authentications', false);
export const INFRASTRUCTURES = resource<Infrastructure>(CONFIG, 'Infrastructure', 'infrastructures', false);
export const NETWORKS = resource<Network>(CONFIG, 'Network', 'networks', false);
export const PROXIES = resource<Proxy>(CONFIG, 'Proxy', 'proxies', false);
export const CONNECTIVITY_CHECKS = resource<PodNetworkConnectivityCheck>(
  'controlplane.operator.openshift.io/v1alpha1',
  'PodNetworkConnectivityCheck',
  'podnetworkconnectivitychecks',
);
