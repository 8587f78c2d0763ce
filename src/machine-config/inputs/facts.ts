import { load } from 'js-yaml';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { KUBE_SYSTEM_NAMESPACE } from '../../machine-config-api/names.ts';

/** What a cluster that is not OpenShift says about itself. */
export interface ClusterFacts {
  /** Where machines find the API. */
  readonly apiServerUrl: string | undefined;
  readonly serviceNetwork: readonly string[];
  readonly clusterNetwork: readonly { readonly cidr: string }[];
}

/** kubeadm's own default. */
const SERVICE_NETWORK = '10.96.0.0/12';
const API_PORT = 6443;

/** Reads what kubeadm left in the cluster; its defaults where it left nothing. */
export async function clusterFacts(kube: Kube, signal?: AbortSignal): Promise<ClusterFacts> {
  const text = async (namespace: string, name: string, key: string) =>
    (await getIfPresent(kube, CONFIG_MAPS, { namespace, name }, { signal }))?.data?.[key] ?? '';
  const kubeadm = parsed(await text(KUBE_SYSTEM_NAMESPACE, 'kubeadm-config', 'ClusterConfiguration')) as Kubeadm;
  const info = parsed(await text('kube-public', 'cluster-info', 'kubeconfig')) as Kubeconfig;
  const { controlPlaneEndpoint, networking = {} } = kubeadm;
  const endpoint = controlPlaneEndpoint ? endpointUrl(controlPlaneEndpoint) : undefined;
  return {
    apiServerUrl: endpoint ?? urlOf(info.clusters?.[0]?.cluster?.server ?? ''),
    serviceNetwork: listed(networking.serviceSubnet ?? SERVICE_NETWORK),
    clusterNetwork: listed(networking.podSubnet ?? '').map(cidr => ({ cidr })),
  };
}

interface Kubeadm {
  readonly controlPlaneEndpoint?: string;
  readonly networking?: { readonly serviceSubnet?: string; readonly podSubnet?: string };
}

interface Kubeconfig {
  readonly clusters?: readonly { readonly cluster?: { readonly server?: string } }[];
}

/** A document of somebody else's; one that cannot be read says nothing. */
function parsed(text: string): unknown {
  try {
    return load(text, { maxAliases: 0 }) ?? {};
  } catch {
    return {};
  }
}

function endpointUrl(endpoint: string): string | undefined {
  return urlOf(`https://${/:\d+$/.test(endpoint) ? endpoint : `${endpoint}:${API_PORT}`}`);
}

function urlOf(text: string): string | undefined {
  return URL.canParse(text) ? text.replace(/\/$/, '') : undefined;
}

function listed(text: string): string[] {
  return text
    .split(',')
    .map(each => each.trim())
    .filter(each => each !== '');
}
