import type { ConfigMap, Node } from 'kubernetes-types/core/v1.d.ts';
import { Informer, type InformerOptions } from '../../kube/informer.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, NODES } from '../../kube/resource.ts';
import { CONTROLLER_CONFIGS, type ControllerConfig } from '../../machine-config-api/controller-config.ts';
import { CONTROLLER_CONFIG_NAME, KUBECONFIG_DATA, MCO_NAMESPACE } from '../../machine-config-api/names.ts';

/** What the writer reads from; each holds one object, so that the agent's credentials may be narrow (spec 60, 1.4). */
export interface CertificateCaches {
  readonly controllerConfigs: Informer<ControllerConfig>;
  readonly kubeconfigData: Informer<ConfigMap>;
  readonly nodes: Informer<Node>;
}

type Options = Pick<InformerOptions<KubeObject>, 'clock' | 'onError'>;

/**
 * The informers, to be started by whoever owns them. The own Node is read with the node's credentials, which show no other node;
 * an account that all agents share could only be allowed to read all of them.
 */
export function certificateCaches(
  kube: Kube,
  nodeName: string,
  options: Options,
  nodeKube: Kube = kube,
): CertificateCaches {
  const only = (name: string) => ({ fieldSelector: `metadata.name=${name}` });
  return {
    controllerConfigs: new Informer<ControllerConfig>(kube, CONTROLLER_CONFIGS, {
      ...options,
      selection: only(CONTROLLER_CONFIG_NAME),
    }),
    kubeconfigData: new Informer<ConfigMap>(kube, CONFIG_MAPS, {
      ...options,
      selection: { namespace: MCO_NAMESPACE, ...only(KUBECONFIG_DATA) },
    }),
    nodes: new Informer<Node>(nodeKube, NODES, { ...options, selection: only(nodeName) }),
  };
}
