import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import { CONTROLLER_CONFIGS } from '../../machine-config-api/controller-config.ts';
import { MACHINE_CONFIG_POOLS, MACHINE_CONFIGS } from '../../machine-config-api/machine-config.ts';
import { CONTROLLER_CONFIG_NAME, MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import type { ServedVersion } from './accept.ts';
import { bootstrapKubeconfig, firstBootConfig, servedConfigName } from './serve.ts';

export interface FirstBootRequest {
  readonly pool: string;
  readonly version: ServedVersion;
  /** Where the kubelet of the new machine finds the API. */
  readonly apiServerUrl: string;
  /** True for the first machines of a cluster: a pool without machines has only a config it wants, none that was tried. */
  readonly isFirst?: boolean | undefined;
}

const TOKEN_SECRET = 'node-bootstrapper-token';
const SERVER_CA_CONFIG_MAP = 'kubeconfig-data';

/** Collects what a new machine of a pool is given, as the cluster has it now (spec 50, 10.2). Throws where a part is missing. */
export async function firstBootOf(
  kube: Kube,
  { pool: name, version, apiServerUrl, isFirst = false }: FirstBootRequest,
  signal?: AbortSignal,
): Promise<object> {
  const options = { signal };
  const pool = await kube.get(MACHINE_CONFIG_POOLS, { name }, options);
  const configName = servedConfigName(pool) || (isFirst ? (pool.spec?.configuration?.name ?? '') : '');
  if (configName === '') throw new Error(`pool ${name} has no rendered config yet`);
  const [rendered, controllerConfig, token, serverCa] = await Promise.all([
    kube.get(MACHINE_CONFIGS, { name: configName }, options),
    kube.get(CONTROLLER_CONFIGS, { name: CONTROLLER_CONFIG_NAME }, options),
    kube.get(SECRETS, { namespace: MCO_NAMESPACE, name: TOKEN_SECRET }, options),
    getIfPresent(kube, CONFIG_MAPS, { namespace: MCO_NAMESPACE, name: SERVER_CA_CONFIG_MAP }, options),
  ]);
  return firstBootConfig({
    rendered,
    controllerConfig: controllerConfig.spec ?? {},
    kubeconfig: bootstrapKubeconfig(apiServerUrl, serverCaOf(serverCa, token), tokenOf(token)),
    version,
  });
}

function serverCaOf(configMap: ConfigMap | undefined, token: Secret): Buffer {
  const base64 = configMap?.binaryData?.['ca-bundle.crt'] ?? token.data?.['ca.crt'];
  if (!base64) throw new Error(`neither configmap ${SERVER_CA_CONFIG_MAP} nor secret ${TOKEN_SECRET} holds a CA`);
  return Buffer.from(base64, 'base64');
}

function tokenOf({ data = {} }: Secret): string {
  const base64 = data['token'];
  if (!base64) throw new Error(`secret ${MCO_NAMESPACE}/${TOKEN_SECRET} holds no token yet`);
  return Buffer.from(base64, 'base64').toString('utf8');
}
