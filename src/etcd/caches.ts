import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, type Resource, SECRETS } from '../kube/resource.ts';
import {
  type CacheOptions,
  cachedResources,
  informersOf,
  type StaticPodCaches,
  staticPodCaches,
} from '../staticpod/caches.ts';
import type { CachedResource } from '../staticpod/objects.ts';
import type { StaticPodOperatorResource } from '../staticpod/operator.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE, OPERATOR_NAMESPACE, SYSTEM_NAMESPACE } from './names.ts';
import { ETCDS, KUBE_API_SERVERS } from './resources.ts';

/** What the etcd operator keeps in memory of the cluster, and is woken by. */
export interface EtcdCaches {
  readonly staticPod: StaticPodCaches;
  readonly kubeApiServers: Informer<StaticPodOperatorResource>;
  readonly configMaps: Readonly<Record<OtherNamespace, Informer<ConfigMap>>>;
  readonly secrets: Readonly<Record<Exclude<OtherNamespace, typeof SYSTEM_NAMESPACE>, Informer<Secret>>>;
}

type OtherNamespace = typeof CONFIG_NAMESPACE | typeof OPERATOR_NAMESPACE | typeof SYSTEM_NAMESPACE;

export function etcdCaches(kube: Kube, options: CacheOptions = {}): EtcdCaches {
  const inNamespace = <T extends KubeObject>(resource: Resource<T>, namespace: string) =>
    new Informer(kube, resource, { ...options, selection: { namespace } });
  return {
    staticPod: staticPodCaches({ operator: ETCDS, operandNamespace: ETCD_NAMESPACE }, kube, options),
    kubeApiServers: new Informer(kube, KUBE_API_SERVERS, options),
    configMaps: {
      [CONFIG_NAMESPACE]: inNamespace(CONFIG_MAPS, CONFIG_NAMESPACE),
      [OPERATOR_NAMESPACE]: inNamespace(CONFIG_MAPS, OPERATOR_NAMESPACE),
      [SYSTEM_NAMESPACE]: inNamespace(CONFIG_MAPS, SYSTEM_NAMESPACE),
    },
    secrets: {
      [CONFIG_NAMESPACE]: inNamespace(SECRETS, CONFIG_NAMESPACE),
      [OPERATOR_NAMESPACE]: inNamespace(SECRETS, OPERATOR_NAMESPACE),
    },
  };
}

/** All of them, for `start` and `stop`. */
export function informersOfEtcd({
  staticPod,
  kubeApiServers,
  configMaps,
  secrets,
}: EtcdCaches): Informer<KubeObject>[] {
  const others = [
    kubeApiServers,
    ...Object.values(configMaps),
    ...Object.values(secrets),
  ] as unknown as Informer<KubeObject>[];
  return [...informersOf(staticPod), ...others];
}

/** All of them, for reading. */
export function cachedByEtcd({ staticPod, configMaps, secrets }: EtcdCaches): CachedResource[] {
  const cached = (resource: Resource, caches: Readonly<Record<string, Informer<ConfigMap> | Informer<Secret>>>) =>
    Object.entries(caches).map(([namespace, lister]) => ({ resource, namespace, lister }));
  return [
    ...cachedResources(staticPod, ETCD_NAMESPACE),
    ...cached(CONFIG_MAPS, configMaps),
    ...cached(SECRETS, secrets),
  ];
}
