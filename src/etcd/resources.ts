import { type KubeObject, type Resource, resource } from '../kube/resource.ts';
import type { StaticPodOperatorResource, StaticPodOperatorSpec } from '../staticpod/operator.ts';

/** The resource `cluster` the operator is steered with and reports to. */
export interface Etcd extends StaticPodOperatorResource {
  spec?: EtcdSpec;
}

export interface EtcdSpec extends StaticPodOperatorSpec {
  /** `Standard`, `Slower` or empty: the operator chooses. */
  readonly controlPlaneHardwareSpeed?: string;
  readonly backendQuotaGiB?: number;
}

export const ETCDS: Resource<Etcd> = resource<Etcd>('operator.openshift.io/v1', 'Etcd', 'etcds', false);

/** Read for two things: which revision each API server runs, and so which etcd CAs it has loaded; and where one is being replaced. */
export const KUBE_API_SERVERS: Resource<StaticPodOperatorResource> = resource<StaticPodOperatorResource>(
  'operator.openshift.io/v1',
  'KubeAPIServer',
  'kubeapiservers',
  false,
);

export interface Network extends KubeObject {
  spec?: { readonly serviceNetwork?: readonly string[] };
  status?: { readonly serviceNetwork?: readonly string[] };
}

export const NETWORKS: Resource<Network> = resource<Network>('config.openshift.io/v1', 'Network', 'networks', false);

export interface FeatureGate extends KubeObject {
  status?: { readonly featureGates?: readonly { readonly enabled?: readonly { readonly name: string }[] }[] };
}

export const FEATURE_GATES: Resource<FeatureGate> = resource<FeatureGate>(
  'config.openshift.io/v1',
  'FeatureGate',
  'featuregates',
  false,
);

/** All of these have one instance, of this name. */
export const CLUSTER = { name: 'cluster' } as const;
