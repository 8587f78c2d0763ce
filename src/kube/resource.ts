import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import type { Deployment, ReplicaSet } from 'kubernetes-types/apps/v1.d.ts';
import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import type { Lease } from 'kubernetes-types/coordination/v1.d.ts';
import type {
  ConfigMap,
  Event,
  Namespace,
  Node,
  Pod,
  Secret,
  Service,
  ServiceAccount,
} from 'kubernetes-types/core/v1.d.ts';
import type { ObjectMeta } from 'kubernetes-types/meta/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';

/** What every Kubernetes object has. */
export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata?: ObjectMeta;
}

/** A kind of object and where it lives in the API. The type parameter carries the object's type to the caller. */
export interface Resource<T extends KubeObject = KubeObject> {
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  readonly kind: string;
  readonly namespaced: boolean;
  /** Never present at run time; it only ties the descriptor to its object type. */
  readonly object?: T;
}

/** Names one object. `namespace` is required for namespaced resources and forbidden for the others. */
export interface ObjectKey {
  readonly name: string;
  readonly namespace?: string | undefined;
}

/** Describes a resource of any group, custom ones included. */
export function resource<T extends KubeObject>(
  apiVersion: string,
  kind: string,
  plural: string,
  namespaced = true,
): Resource<T> {
  const slash = apiVersion.indexOf('/');
  const group = slash < 0 ? '' : apiVersion.slice(0, slash);
  return { group, version: apiVersion.slice(slash + 1), kind, plural, namespaced };
}

/** `v1` or `<group>/<version>`. */
export function apiVersionOf(resource: Resource): string {
  return resource.group === '' ? resource.version : `${resource.group}/${resource.version}`;
}

/** The key of an object that has been read or is about to be written. */
export function keyOf(object: KubeObject): ObjectKey {
  const { name, namespace } = object.metadata ?? {};
  if (name === undefined) throw new TypeError(`${object.kind ?? 'object'} without metadata.name has no key`);
  return namespace === undefined ? { name } : { name, namespace };
}

export const SECRETS = resource<Secret>('v1', 'Secret', 'secrets');
export const CONFIG_MAPS = resource<ConfigMap>('v1', 'ConfigMap', 'configmaps');
export const NAMESPACES = resource<Namespace>('v1', 'Namespace', 'namespaces', false);
export const NODES = resource<Node>('v1', 'Node', 'nodes', false);
export const PODS = resource<Pod>('v1', 'Pod', 'pods');
export const SERVICES = resource<Service>('v1', 'Service', 'services');
export const SERVICE_ACCOUNTS = resource<ServiceAccount>('v1', 'ServiceAccount', 'serviceaccounts');
export const EVENTS = resource<Event>('v1', 'Event', 'events');
export const CUSTOM_RESOURCE_DEFINITIONS = resource<CustomResourceDefinition>(
  'apiextensions.k8s.io/v1',
  'CustomResourceDefinition',
  'customresourcedefinitions',
  false,
);
export const LEASES = resource<Lease>('coordination.k8s.io/v1', 'Lease', 'leases');
export const DEPLOYMENTS = resource<Deployment>('apps/v1', 'Deployment', 'deployments');
export const REPLICA_SETS = resource<ReplicaSet>('apps/v1', 'ReplicaSet', 'replicasets');
export const POD_DISRUPTION_BUDGETS = resource<PodDisruptionBudget>(
  'policy/v1',
  'PodDisruptionBudget',
  'poddisruptionbudgets',
);
export const CERTIFICATE_SIGNING_REQUESTS = resource<CertificateSigningRequest>(
  'certificates.k8s.io/v1',
  'CertificateSigningRequest',
  'certificatesigningrequests',
  false,
);
