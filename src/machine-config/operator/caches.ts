import type { ConfigMap, Node, Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import { CLUSTER_OPERATORS, type ClusterOperator } from '../../controller/cluster-operator-status.ts';
import { Informer, type InformerOptions } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, NODES, type Resource, SECRETS, SERVICE_ACCOUNTS } from '../../kube/resource.ts';
import {
  DNSES,
  type Dns,
  IMAGES,
  type Image,
  INFRASTRUCTURES,
  type Infrastructure,
  NETWORKS,
  type Network,
  NODE_CONFIGS,
  type NodeConfig,
  PROXIES,
  type Proxy,
} from '../../machine-config-api/cluster-config.ts';
import { CONTROLLER_CONFIGS, type ControllerConfig } from '../../machine-config-api/controller-config.ts';
import {
  CONTAINER_RUNTIME_CONFIGS,
  type ContainerRuntimeConfig,
  KUBELET_CONFIGS,
  type KubeletConfig,
  MACHINE_CONFIG_POOLS,
  MACHINE_CONFIGS,
  type MachineConfig,
  type MachineConfigPool,
} from '../../machine-config-api/machine-config.ts';
import { MACHINE_CONFIGURATIONS, type MachineConfiguration } from '../../machine-config-api/machine-configuration.ts';
import {
  CLUSTER,
  CONFIG_MANAGED_NAMESPACE,
  CONFIG_NAMESPACE,
  KUBE_APISERVER_OPERATOR_NAMESPACE,
  KUBE_SYSTEM_NAMESPACE,
  MACHINE_API_NAMESPACE,
  MCO_NAMESPACE,
} from '../../machine-config-api/names.ts';
import { ONLY_PULL_SECRET } from '../source/pull-secret.ts';
import type { ClusterSources } from './sources.ts';

/** Where sources are; ConfigMaps elsewhere are nothing to us (spec 50, OP-1 watches them all). */
const CONFIG_MAP_NAMESPACES = [
  KUBE_SYSTEM_NAMESPACE,
  CONFIG_NAMESPACE,
  CONFIG_MANAGED_NAMESPACE,
  KUBE_APISERVER_OPERATOR_NAMESPACE,
  MCO_NAMESPACE,
] as const;
const SECRET_SELECTIONS = [
  ONLY_PULL_SECRET,
  { namespace: MCO_NAMESPACE },
  { namespace: MACHINE_API_NAMESPACE },
] as const;

/** What the operator keeps in memory of the cluster. */
export interface OperatorCaches {
  readonly configMaps: ReadonlyMap<string, Informer<ConfigMap>>;
  readonly secrets: ReadonlyMap<string, Informer<Secret>>;
  readonly serviceAccounts: Informer<ServiceAccount>;
  readonly clusterOperators: Informer<ClusterOperator>;
  readonly nodes: Informer<Node>;
  readonly controllerConfigs: Informer<ControllerConfig>;
  readonly machineConfigs: Informer<MachineConfig>;
  readonly pools: Informer<MachineConfigPool>;
  readonly kubeletConfigs: Informer<KubeletConfig>;
  readonly runtimeConfigs: Informer<ContainerRuntimeConfig>;
  readonly machineConfigurations: Informer<MachineConfiguration>;
  readonly infrastructures: Informer<Infrastructure>;
  readonly networks: Informer<Network>;
  readonly proxies: Informer<Proxy>;
  readonly dnses: Informer<Dns>;
  readonly images: Informer<Image>;
  readonly nodeConfigs: Informer<NodeConfig>;
}

type Options = Pick<InformerOptions<KubeObject>, 'clock' | 'onError'>;

/** The informers of the operator, to be started by whoever owns them. */
export function operatorCaches(kube: Kube, options: Options): OperatorCaches {
  const everywhere = <T extends KubeObject>(resource: Resource<T>) => new Informer<T>(kube, resource, options);
  const inNamespace = <T extends KubeObject>(resource: Resource<T>, namespace: string) =>
    new Informer<T>(kube, resource, { ...options, selection: { namespace } });
  return {
    configMaps: new Map(CONFIG_MAP_NAMESPACES.map(namespace => [namespace, inNamespace(CONFIG_MAPS, namespace)])),
    secrets: new Map(
      SECRET_SELECTIONS.map(selection => [selection.namespace, new Informer(kube, SECRETS, { ...options, selection })]),
    ),
    serviceAccounts: inNamespace(SERVICE_ACCOUNTS, MCO_NAMESPACE),
    clusterOperators: everywhere(CLUSTER_OPERATORS),
    nodes: everywhere(NODES),
    controllerConfigs: everywhere(CONTROLLER_CONFIGS),
    machineConfigs: everywhere(MACHINE_CONFIGS),
    pools: everywhere(MACHINE_CONFIG_POOLS),
    kubeletConfigs: everywhere(KUBELET_CONFIGS),
    runtimeConfigs: everywhere(CONTAINER_RUNTIME_CONFIGS),
    machineConfigurations: everywhere(MACHINE_CONFIGURATIONS),
    infrastructures: everywhere(INFRASTRUCTURES),
    networks: everywhere(NETWORKS),
    proxies: everywhere(PROXIES),
    dnses: everywhere(DNSES),
    images: everywhere(IMAGES),
    nodeConfigs: everywhere(NODE_CONFIGS),
  };
}

/** All of them, for `start`, `stop` and triggers. */
export function operatorInformers({ configMaps, secrets, ...others }: OperatorCaches): Informer<KubeObject>[] {
  return [...configMaps.values(), ...secrets.values(), ...Object.values(others)] as unknown as Informer<KubeObject>[];
}

/** The sources of ControllerConfig, read from memory. */
export function cachedSources(caches: OperatorCaches): ClusterSources {
  const cluster = { name: CLUSTER };
  return {
    configMap: (namespace, name) => caches.configMaps.get(namespace)?.get({ namespace, name }),
    secret: (namespace, name) => caches.secrets.get(namespace)?.get({ namespace, name }),
    serviceAccount: (namespace, name) => caches.serviceAccounts.get({ namespace, name }),
    infrastructure: caches.infrastructures.get(cluster),
    network: caches.networks.get(cluster),
    proxy: caches.proxies.get(cluster),
    dns: caches.dnses.get(cluster),
    image: caches.images.get(cluster),
    hasImageRegistry: caches.clusterOperators.get({ name: 'image-registry' }) !== undefined,
  };
}
