import type { Node, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { Informer, type InformerOptions } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import { type KubeObject, NODES, PODS, type Resource, SECRETS } from '../../kube/resource.ts';
import {
  API_SERVERS,
  type ApiServer,
  FEATURE_GATES,
  type FeatureGate,
  IMAGE_CONTENT_SOURCE_POLICIES,
  IMAGE_DIGEST_MIRROR_SETS,
  IMAGE_TAG_MIRROR_SETS,
  IMAGES,
  type Image,
  type ImageContentSourcePolicy,
  type ImageDigestMirrorSet,
  type ImageTagMirrorSet,
  NODE_CONFIGS,
  type NodeConfig,
  SCHEDULERS,
  type Scheduler,
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
import { MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import { ONLY_PULL_SECRET } from '../source/pull-secret.ts';

/** What the controllers keep in memory of the cluster. */
export interface ControllerCaches {
  readonly controllerConfigs: Informer<ControllerConfig>;
  readonly machineConfigs: Informer<MachineConfig>;
  readonly pools: Informer<MachineConfigPool>;
  readonly kubeletConfigs: Informer<KubeletConfig>;
  readonly runtimeConfigs: Informer<ContainerRuntimeConfig>;
  readonly nodes: Informer<Node>;
  /** Of `openshift-config`: only the pull secret; signers live there too. */
  readonly secrets: Informer<Secret>;
  /** The operator's own. */
  readonly operatorPods: Informer<Pod>;
  readonly schedulers: Informer<Scheduler>;
  readonly nodeConfigs: Informer<NodeConfig>;
  readonly apiServers: Informer<ApiServer>;
  readonly featureGates: Informer<FeatureGate>;
  readonly images: Informer<Image>;
  readonly contentPolicies: Informer<ImageContentSourcePolicy>;
  readonly digestMirrors: Informer<ImageDigestMirrorSet>;
  readonly tagMirrors: Informer<ImageTagMirrorSet>;
}

type Options = Pick<InformerOptions<KubeObject>, 'clock' | 'onError'>;

/** The informers of the controllers, to be started by whoever owns them. */
export function controllerCaches(kube: Kube, options: Options): ControllerCaches {
  const everywhere = <T extends KubeObject>(resource: Resource<T>) => new Informer<T>(kube, resource, options);
  return {
    controllerConfigs: everywhere(CONTROLLER_CONFIGS),
    machineConfigs: everywhere(MACHINE_CONFIGS),
    pools: everywhere(MACHINE_CONFIG_POOLS),
    kubeletConfigs: everywhere(KUBELET_CONFIGS),
    runtimeConfigs: everywhere(CONTAINER_RUNTIME_CONFIGS),
    nodes: everywhere(NODES),
    secrets: new Informer(kube, SECRETS, { ...options, selection: ONLY_PULL_SECRET }),
    operatorPods: new Informer(kube, PODS, {
      ...options,
      selection: { namespace: MCO_NAMESPACE, labelSelector: 'k8s-app=machine-config-operator' },
    }),
    schedulers: everywhere(SCHEDULERS),
    nodeConfigs: everywhere(NODE_CONFIGS),
    apiServers: everywhere(API_SERVERS),
    featureGates: everywhere(FEATURE_GATES),
    images: everywhere(IMAGES),
    contentPolicies: everywhere(IMAGE_CONTENT_SOURCE_POLICIES),
    digestMirrors: everywhere(IMAGE_DIGEST_MIRROR_SETS),
    tagMirrors: everywhere(IMAGE_TAG_MIRROR_SETS),
  };
}

/** All of them, for `start` and `stop`. */
export function controllerInformers(caches: ControllerCaches): Informer<KubeObject>[] {
  return Object.values(caches);
}
