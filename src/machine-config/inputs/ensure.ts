import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { applyConfigMap } from '../../kube/apply.ts';
import type { Clock } from '../../kube/clock.ts';
import { createIfMissing } from '../../kube/create-if-missing.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, SECRETS } from '../../kube/resource.ts';
import {
  CLUSTER_VERSIONS,
  DNSES,
  IMAGES,
  INFRASTRUCTURES,
  type Infrastructure,
  type InfrastructureStatus,
  NETWORKS,
  PROXIES,
} from '../../machine-config-api/cluster-config.ts';
import {
  CA_BUNDLE_KEY,
  CLUSTER,
  CONFIG_MANAGED_NAMESPACE,
  CONFIG_NAMESPACE,
  CONTROL_PLANE_NODE_LABEL,
  DOCKER_CONFIG_JSON_KEY,
  DOCKER_CONFIG_JSON_TYPE,
  KUBE_SYSTEM_NAMESPACE,
  MASTER_NODE_LABEL,
  MCO_NAMESPACE,
} from '../../machine-config-api/names.ts';
import { parseIp } from '../../pki/ip.ts';
import type { KeyAlgorithm, Keys } from '../../pki/keys.ts';
import { ignitionHost } from '../operator/pointer.ts';
import { OPERATOR_IMAGES, OS_IMAGE_URL } from '../source/images.ts';
import { PULL_SECRET } from '../source/pull-secret.ts';
import { type ClusterFacts, clusterFacts } from './facts.ts';
import { ensureServerTrust } from './server-trust.ts';

export interface MachineConfigInputs {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly keys: Keys;
  /** The release the operator says it is; images of another one are not read. */
  readonly releaseVersion: string;
  /** Where machines find the API, such as `https://api.example.com:6443`. What the cluster says of itself when absent. */
  readonly apiServerUrl?: string | undefined;
  /** Where we found the API ourselves: taken where neither is known. */
  readonly reachedAt?: string | undefined;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
  readonly signal?: AbortSignal | undefined;
}

/**
 * Makes what OpenShift's installer and release would have put into a cluster and the operator reads, where it is missing; what is
 * there belongs to whoever wrote it. On OpenShift itself, also while it is being installed, nothing is made. False then.
 */
export async function ensureMachineConfigInputs(inputs: MachineConfigInputs): Promise<boolean> {
  const { kube, signal } = inputs;
  if ((await getIfPresent(kube, CLUSTER_VERSIONS, { name: 'version' }, { signal })) !== undefined) return false;
  for (const name of [CONFIG_NAMESPACE, CONFIG_MANAGED_NAMESPACE, MCO_NAMESPACE]) {
    await createIfMissing(kube, NAMESPACES, { metadata: { name } }, signal);
  }
  const facts = await clusterFacts(kube, signal);
  await ensureConfiguration(inputs, facts);
  await ensureRelease(inputs);
  await ensurePullSecret(inputs);
  await ensureKubeletCa(inputs);
  const { status = {} } = await kube.get(INFRASTRUCTURES, { name: CLUSTER }, { signal });
  await ensureServerTrust({ ...inputs, host: hostOf(status) });
  // Last: it says that the cluster has left its bootstrap host, and with that where the kubelets' CA is (spec 50, KA-1).
  await createIfMissing(
    kube,
    CONFIG_MAPS,
    {
      metadata: { namespace: KUBE_SYSTEM_NAMESPACE, name: 'bootstrap', annotations: { [NO_BOOTSTRAP_HOST]: 'true' } },
      data: { status: 'complete' },
    },
    signal,
  );
  return true;
}

/** Ours: there is nothing to be cleaned up after it, and no etcd member of its own to be waited for. */
const NO_BOOTSTRAP_HOST = 'rotunda.dev/no-bootstrap-host';

/** The cluster's own configuration: platform None, networks as kubeadm was told or has by default. */
async function ensureConfiguration(inputs: MachineConfigInputs, facts: ClusterFacts): Promise<void> {
  const { kube, signal } = inputs;
  const metadata = { name: CLUSTER };
  const url = inputs.apiServerUrl ?? facts.apiServerUrl ?? inputs.reachedAt;
  await ensureInfrastructure(inputs, url);
  const { serviceNetwork, clusterNetwork } = facts;
  await createIfMissing(kube, NETWORKS, { metadata, spec: { serviceNetwork, clusterNetwork } }, signal);
  const network = await kube.get(NETWORKS, metadata, { signal });
  if ((network.spec?.serviceNetwork ?? []).length === 0) {
    const known = network.status?.serviceNetwork ?? serviceNetwork;
    const body = { spec: { serviceNetwork: known } };
    await kube.patch(NETWORKS, metadata, { type: 'merge', body }, { signal });
  }
  const { status = {} } = await kube.get(INFRASTRUCTURES, metadata, { signal });
  await createIfMissing(kube, DNSES, { metadata, spec: { baseDomain: baseDomainOf(hostOf(status)) } }, signal);
  await createIfMissing(kube, PROXIES, { metadata, spec: {} }, signal);
  await createIfMissing(kube, IMAGES, { metadata, spec: {} }, signal);
}

async function ensureInfrastructure({ kube, signal }: MachineConfigInputs, url: string | undefined): Promise<void> {
  const metadata = { name: CLUSTER };
  await createIfMissing(kube, INFRASTRUCTURES, { metadata, spec: {} }, signal);
  const found: Infrastructure = await kube.get(INFRASTRUCTURES, metadata, { signal });
  const { apiServerInternalURI, platformStatus, platform, controlPlaneTopology } = found.status ?? {};
  if (apiServerInternalURI && (platformStatus ?? platform) && controlPlaneTopology) return;
  if (!apiServerInternalURI && url === undefined) {
    throw new Error(
      'infrastructure cluster: status.apiServerInternalURI is empty, and the cluster does not say where machines find its API',
    );
  }
  const topology = (await countControlPlane(kube, signal)) === 1 ? 'SingleReplica' : 'HighlyAvailable';
  const status = {
    apiServerInternalURI: apiServerInternalURI || url,
    platform: platform ?? platformStatus?.type ?? 'None',
    platformStatus: platformStatus ?? { type: platform ?? 'None' },
    controlPlaneTopology: controlPlaneTopology || topology,
  };
  await kube.patch(INFRASTRUCTURES, metadata, { type: 'merge', body: { status } }, { subresource: 'status', signal });
}

async function countControlPlane(kube: Kube, signal: AbortSignal | undefined): Promise<number> {
  const { items } = await listAll(kube, NODES, { signal });
  return items.filter(
    ({ metadata }) =>
      metadata?.labels?.[CONTROL_PLANE_NODE_LABEL] !== undefined || metadata?.labels?.[MASTER_NODE_LABEL] !== undefined,
  ).length;
}

/** Where machines look for the API and for their first config: a name or an address. */
function hostOf(status: InfrastructureStatus): string {
  return ignitionHost(status)
    .replace(/:\d+$/, '')
    .replace(/^\[|\]$/g, '');
}

/** The domain below which a cluster has its names, as far as the name of its API tells. */
function baseDomainOf(host: string): string {
  return parseIp(host) === undefined ? host.replace(/^api(?:-int)?\./, '') : 'cluster.local';
}

/** Ours, on what we made and keep up to date. What somebody else made has not got it. */
const PROVIDED = 'rotunda.dev/provided-by';
const US = 'machine-config-operator';

/** No operating system comes with us, so there is no image of one. Both follow our own release (spec 50, 3.3). */
async function ensureRelease({ kube, releaseVersion, signal }: MachineConfigInputs): Promise<void> {
  const releases: Record<string, Record<string, string>> = {
    [OPERATOR_IMAGES]: { 'images.json': JSON.stringify({ releaseVersion }) },
    [OS_IMAGE_URL]: { releaseVersion, baseOSContainerImage: '', baseOSExtensionsContainerImage: '' },
  };
  for (const [name, data] of Object.entries(releases)) {
    const key = { namespace: MCO_NAMESPACE, name };
    const found = await getIfPresent(kube, CONFIG_MAPS, key, { signal });
    if (found !== undefined && found.metadata?.annotations?.[PROVIDED] !== US) continue;
    const required: ConfigMap = { metadata: { ...key, annotations: { [PROVIDED]: US } }, data };
    await applyConfigMap({ kube, events: { event() {} }, signal }, required);
  }
}

/** Machines pull without credentials until somebody puts some in. */
async function ensurePullSecret({ kube, signal }: MachineConfigInputs): Promise<void> {
  const data = { [DOCKER_CONFIG_JSON_KEY]: Buffer.from('{"auths":{}}').toString('base64') };
  const metadata = { namespace: CONFIG_NAMESPACE, name: PULL_SECRET };
  await createIfMissing(kube, SECRETS, { metadata, type: DOCKER_CONFIG_JSON_TYPE, data }, signal);
}

/**
 * Where no operator publishes whom kubelets should trust: those the API server trusts, which every API server says of itself. The
 * kube-apiserver operator takes the object over when it comes.
 */
async function ensureKubeletCa({ kube, signal }: MachineConfigInputs): Promise<void> {
  const key = { namespace: KUBE_SYSTEM_NAMESPACE, name: 'extension-apiserver-authentication' };
  const bundle = (await getIfPresent(kube, CONFIG_MAPS, key, { signal }))?.data?.['client-ca-file'];
  if (!bundle) return;
  const metadata = { namespace: CONFIG_MANAGED_NAMESPACE, name: 'kube-apiserver-client-ca' };
  await createIfMissing(kube, CONFIG_MAPS, { metadata, data: { [CA_BUNDLE_KEY]: bundle } }, signal);
}
