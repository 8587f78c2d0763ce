import type { ConfigMap, Node, Pod, Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import type { ClusterRoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import type { Clock } from '../kube/clock.ts';
import { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import {
  CONFIG_MAPS,
  type KubeObject,
  NODES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  type Resource,
  SECRETS,
  SERVICE_ACCOUNTS,
} from '../kube/resource.ts';
import { CLUSTER_ROLE_BINDINGS } from './backing-resource.ts';
import type { StaticPodOperatorConfig } from './config.ts';
import { CONTROL_PLANE_LABELS } from './nodes.ts';
import type { CachedResource } from './objects.ts';
import type { StaticPodOperatorResource } from './operator.ts';

/** What the controllers of a static-pod operator keep in memory of the cluster. */
export interface StaticPodCaches {
  readonly operator: Informer<StaticPodOperatorResource>;
  readonly configMaps: Informer<ConfigMap>;
  readonly secrets: Informer<Secret>;
  readonly pods: Informer<Pod>;
  readonly nodes: Informer<Node>;
  readonly serviceAccounts: Informer<ServiceAccount>;
  readonly roleBindings: Informer<ClusterRoleBinding>;
  readonly budgets: Informer<PodDisruptionBudget>;
}

export interface CacheOptions {
  readonly clock?: Clock | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Informers over the operand's namespace and the few cluster-wide things; to be started by whoever owns them. */
export function staticPodCaches(
  { operator, operandNamespace: namespace }: Pick<StaticPodOperatorConfig, 'operator' | 'operandNamespace'>,
  kube: Kube,
  options: CacheOptions = {},
): StaticPodCaches {
  const everywhere = <T extends KubeObject>(resource: Resource<T>) => new Informer(kube, resource, options);
  const inNamespace = <T extends KubeObject>(resource: Resource<T>) =>
    new Informer(kube, resource, { ...options, selection: { namespace } });
  const [[label]] = Object.entries(CONTROL_PLANE_LABELS) as [[string, string]];
  return {
    operator: everywhere(operator),
    configMaps: inNamespace(CONFIG_MAPS),
    secrets: inNamespace(SECRETS),
    pods: inNamespace(PODS),
    nodes: new Informer(kube, NODES, { ...options, selection: { labelSelector: `${label}=` } }),
    serviceAccounts: inNamespace(SERVICE_ACCOUNTS),
    roleBindings: everywhere(CLUSTER_ROLE_BINDINGS),
    budgets: inNamespace(POD_DISRUPTION_BUDGETS),
  };
}

/** All of them, for `start` and `stop`. */
export function informersOf(caches: StaticPodCaches): Informer<KubeObject>[] {
  return Object.values(caches) as Informer<KubeObject>[];
}

/** All of them, for reading. */
export function cachedResources(caches: StaticPodCaches, namespace: string): CachedResource[] {
  return informersOf(caches).map(informer => {
    const { resource } = informer;
    return { resource, namespace: resource.namespaced ? namespace : undefined, lister: informer };
  });
}
