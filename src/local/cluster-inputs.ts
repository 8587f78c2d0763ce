import { createPublicKey } from 'node:crypto';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { loadSecret, TLS_CERT, TLS_KEY, TLS_SECRET } from '../certrotation/secret.ts';
import type { Clock } from '../kube/clock.ts';
import { days, formatGoDuration } from '../kube/duration.ts';
import { isAlreadyExists } from '../kube/error.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, keyOf, NAMESPACES, type Resource, SECRETS } from '../kube/resource.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE, MANAGED_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import { AUTHENTICATIONS, CLUSTER, INFRASTRUCTURES, NETWORKS } from '../kube-apiserver/resources.ts';
import { ROTATION_BASE } from '../kube-apiserver/rotation/base.ts';
import { API_PORT } from '../kube-apiserver/target-config/pod.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueClient, issueSigner } from '../pki/issue.ts';
import type { KeyAlgorithm, Keys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';

/** Below `localhost` (RFC 6761): whatever they resolve to, it is this machine. */
export const EXTERNAL_NAME = 'api.rotunda.localhost';
export const INTERNAL_NAME = 'api-int.rotunda.localhost';

/** Where kube-controller-manager keeps what signs the certificates of kubelets. */
export const CSR_SIGNER = { namespace: 'openshift-kube-controller-manager-operator', name: 'csr-signer' };

const SERVICE_NETWORK = '172.30.0.0/16';
const POD_NETWORK = { cidr: '10.128.0.0/14', hostPrefix: 23 };
/** Nobody renews what these sign. */
const LIFETIME_MS = days(3650);

export interface ClusterInputs {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly keys: Keys;
  /** Addresses of the control-plane nodes by name: there etcd would be. */
  readonly controlPlane: ReadonlyMap<string, string>;
  /** Whether an etcd operator provides what kube-apiserver needs of etcd. */
  readonly hasEtcd: boolean;
  readonly keyAlgorithm?: KeyAlgorithm | undefined;
  /** How long a day of rotation lasts: programs on the nodes find it in the cluster. */
  readonly dayMs?: number | undefined;
}

/**
 * What the installer and operators that do not run here would put into the cluster. Certificates are made once and then stay: an
 * object that is there belongs to whoever wrote it.
 */
export async function provideClusterInputs(inputs: ClusterInputs): Promise<void> {
  const { kube, controlPlane } = inputs;
  for (const name of [CONFIG_NAMESPACE, MANAGED_NAMESPACE, ETCD_NAMESPACE]) {
    await createOnce(kube, NAMESPACES, { metadata: { name } });
  }
  await provideConfiguration(kube, controlPlane.size);
  if (!inputs.hasEtcd) await provideEtcdTrust(inputs);
  await provideCsrSigner(inputs);
  await provideTokenKey(inputs);
  await provideRotationDay(inputs);
}

/** The cluster's configuration follows the number of nodes. */
async function provideConfiguration(kube: Kube, size: number): Promise<void> {
  const topology = size === 1 ? 'SingleReplica' : 'HighlyAvailable';
  await createOnce(kube, INFRASTRUCTURES, { metadata: CLUSTER, spec: { platformSpec: { type: 'None' } } });
  await setStatus(kube, INFRASTRUCTURES, {
    apiServerURL: `https://${EXTERNAL_NAME}:${API_PORT}`,
    apiServerInternalURI: `https://${INTERNAL_NAME}:${API_PORT}`,
    controlPlaneTopology: topology,
    infrastructureTopology: topology,
    platform: 'None',
    platformStatus: { type: 'None' },
  });
  // 4.16 looks for the issuer of tokens in it, and calls itself Degraded without it. Nobody logs in over OAuth here.
  await createOnce(kube, AUTHENTICATIONS, { metadata: CLUSTER, spec: { type: 'None' } });
  await createOnce(kube, NETWORKS, { metadata: CLUSTER, spec: {} });
  await setStatus(kube, NETWORKS, { serviceNetwork: [SERVICE_NETWORK], clusterNetwork: [POD_NETWORK] });
}

async function setStatus(kube: Kube, resource: Resource, status: object): Promise<void> {
  await kube.patch(resource, CLUSTER, { type: 'merge', body: { status } }, { subresource: 'status' });
}

/** The bundle comes last: where it is, its client certificate is too. */
async function provideEtcdTrust(inputs: ClusterInputs): Promise<void> {
  const { kube, controlPlane } = inputs;
  await createOnce(kube, CONFIG_MAPS, {
    metadata: { namespace: ETCD_NAMESPACE, name: 'etcd-endpoints' },
    data: Object.fromEntries(controlPlane),
  });
  const bundle = { namespace: CONFIG_NAMESPACE, name: 'etcd-serving-ca' };
  const client = { namespace: CONFIG_NAMESPACE, name: 'etcd-client' };
  if ((await getIfPresent(kube, CONFIG_MAPS, bundle)) !== undefined) return;
  if ((await getIfPresent(kube, SECRETS, client)) !== undefined) await kube.delete(SECRETS, client);
  const signer = await issueSigner({ ...issuing(inputs), commonName: 'etcd-signer' });
  const pair = await issueClient({
    ...issuing(inputs),
    signer,
    user: { name: 'etcd-client', groups: ['etcd-client'] },
  });
  await kube.create(SECRETS, tlsSecret(client, pair));
  await kube.create(CONFIG_MAPS, bundleConfigMap(bundle, signer));
}

/**
 * What signs the certificates of kubelets: kept, because nodes may be added later. The bundle comes last here too; what it held before
 * stays in it.
 */
async function provideCsrSigner(inputs: ClusterInputs): Promise<void> {
  const { kube } = inputs;
  const name = { namespace: MANAGED_NAMESPACE, name: 'csr-controller-ca' };
  await createOnce(kube, NAMESPACES, { metadata: { name: CSR_SIGNER.namespace } });
  if ((await getIfPresent(kube, SECRETS, CSR_SIGNER)) === undefined) {
    const signer = await issueSigner({ ...issuing(inputs), commonName: 'kube-csr-signer' });
    await createOnce(kube, SECRETS, tlsSecret(CSR_SIGNER, signer));
  }
  const bundle = bundleConfigMap(name, loadSecret(await kube.get(SECRETS, CSR_SIGNER)));
  const existing = await getIfPresent(kube, CONFIG_MAPS, name);
  const [own = '', known = ''] = [bundle.data?.[BUNDLE_KEY], existing?.data?.[BUNDLE_KEY]];
  if (existing === undefined) await createOnce(kube, CONFIG_MAPS, bundle);
  else if (!known.includes(own)) {
    await kube.update(CONFIG_MAPS, { ...existing, data: { ...existing.data, [BUNDLE_KEY]: own + known } });
  }
}

/** Tokens that kube-controller-manager signs itself; nobody does here. */
async function provideTokenKey({ kube, keys, keyAlgorithm = 'RSA-2048' }: ClusterInputs): Promise<void> {
  const name = { namespace: MANAGED_NAMESPACE, name: 'sa-token-signing-certs' };
  if ((await getIfPresent(kube, CONFIG_MAPS, name)) !== undefined) return;
  const key = createPublicKey(await keys.generate(keyAlgorithm));
  const text = key.export({ format: 'pem', type: 'spki' }).toString();
  await createOnce(kube, CONFIG_MAPS, { metadata: name, data: { 'service-account-001.pub': text } });
}

/** Tells everybody in the cluster how long a day of rotation lasts. */
export async function provideRotationDay({
  kube,
  dayMs = days(1),
}: Pick<ClusterInputs, 'kube' | 'dayMs'>): Promise<void> {
  const data = { base: formatGoDuration(dayMs) };
  const existing = await getIfPresent(kube, CONFIG_MAPS, ROTATION_BASE);
  if (existing === undefined) {
    if (dayMs !== days(1)) await createOnce(kube, CONFIG_MAPS, { metadata: ROTATION_BASE, data });
  } else if (existing.data?.['base'] !== data.base) {
    await kube.patch(CONFIG_MAPS, ROTATION_BASE, { type: 'merge', body: { data } });
  }
}

interface ObjectName {
  readonly namespace: string;
  readonly name: string;
}

/** How everything here is issued. */
export function issuing({ keys, clock, keyAlgorithm }: Pick<ClusterInputs, 'keys' | 'clock' | 'keyAlgorithm'>) {
  return { keys, algorithm: keyAlgorithm, now: clock.now(), lifetimeMs: LIFETIME_MS } as const;
}

function bundleConfigMap(metadata: ObjectName, { chain }: CertificateAndKey): ConfigMap {
  return { metadata, data: { [BUNDLE_KEY]: encodeCertificates(chain) } };
}

function tlsSecret(metadata: ObjectName, { chain, key }: CertificateAndKey): Secret {
  const base64 = (text: string) => Buffer.from(text).toString('base64');
  const data = { [TLS_CERT]: base64(encodeCertificates(chain)), [TLS_KEY]: base64(encodePrivateKey(key)) };
  return { metadata, type: TLS_SECRET, data };
}

async function createOnce<T extends KubeObject>(kube: Kube, resource: Resource<T>, object: T): Promise<void> {
  if ((await getIfPresent(kube, resource, keyOf(object))) !== undefined) return;
  try {
    await kube.create(resource, object);
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
}
