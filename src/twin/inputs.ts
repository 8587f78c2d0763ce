import { createPublicKey } from 'node:crypto';
import { dump } from 'js-yaml';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { BOOTSTRAP_KUBECONFIG, KUBELET, LIVE_KUBECONFIG } from '../daemon/certificates/paths.ts';
import { createIfMissing } from '../kube/create-if-missing.ts';
import { days } from '../kube/duration.ts';
import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, type KubeObject, keyOf, NAMESPACES, NODES, type Resource } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { ensureCluster } from '../kube-apiserver/ensure-cluster.ts';
import { ETCD_NAMESPACE, MANAGED_NAMESPACE } from '../kube-apiserver/namespaces.ts';
import { AUTHENTICATIONS, CLUSTER, INFRASTRUCTURES, NETWORKS } from '../kube-apiserver/resources.ts';
import { CURRENT_CONFIG, MCO_NAMESPACE } from '../machine-config-api/names.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../pki/issue.ts';
import type { Keys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import type { TwinNode } from './node.ts';

export const EXTERNAL_NAME = 'api.twin.example.com';
export const INTERNAL_NAME = 'api-int.twin.example.com';

/** Nobody renews what these sign: kube-controller-manager's part is not in the twin. */
const OUTLIVES_EVERYTHING_MS = days(365 * 200);

/** What stands in a twin for what cannot be made up: where the API is, and who signs the certificates of kubelets. */
export interface Given {
  readonly names?: ApiNames | undefined;
  readonly kubeletSigner?: CertificateAndKey | undefined;
  /** Whether nodes say that they have the config of their pool; false where agents find that out. */
  readonly hasConfigs?: boolean | undefined;
}

/** The names of the API's load balancers. */
export interface ApiNames {
  readonly external: string;
  readonly internal: string;
}

export const TWIN_NAMES: ApiNames = { external: EXTERNAL_NAME, internal: INTERNAL_NAME };

/** What the installer and those operators would put into a cluster that are not in the twin. What is there already stays. */
export async function provideInputs(
  kube: Kube,
  nodes: readonly TwinNode[],
  keys: Keys,
  now: Date,
  { names = TWIN_NAMES, kubeletSigner, hasConfigs = true }: Given = {},
): Promise<void> {
  for (const name of ['default', 'kube-system', MCO_NAMESPACE, ETCD_NAMESPACE])
    await createIfMissing(kube, NAMESPACES, { metadata: { name } });
  await ensureCluster(kube);
  const topology =
    nodes.filter(({ isControlPlane }) => isControlPlane).length === 1 ? 'SingleReplica' : 'HighlyAvailable';
  await provide(kube, INFRASTRUCTURES, {
    metadata: CLUSTER,
    spec: { platformSpec: { type: 'None' } },
    status: {
      apiServerURL: `https://${names.external}:6443`,
      apiServerInternalURI: `https://${names.internal}:6443`,
      controlPlaneTopology: topology,
      platform: 'None',
      platformStatus: { type: 'None' },
    },
  });
  await createIfMissing(kube, AUTHENTICATIONS, { metadata: CLUSTER, spec: { type: 'None' } });
  await provide(kube, NETWORKS, {
    metadata: CLUSTER,
    spec: {},
    status: { serviceNetwork: ['172.30.0.0/16'], clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }] },
  });
  const issuing = { keys, now, lifetimeMs: OUTLIVES_EVERYTHING_MS, algorithm: 'Ed25519' } as const;
  const csrSigner = kubeletSigner ?? (await issueSigner({ ...issuing, commonName: 'kube-csr-signer' }));
  await createIfMissing(kube, CONFIG_MAPS, bundle(MANAGED_NAMESPACE, 'csr-controller-ca', csrSigner));
  const key = createPublicKey(await keys.generate('Ed25519')).export({ format: 'pem', type: 'spki' });
  await createIfMissing(kube, CONFIG_MAPS, {
    metadata: { namespace: MANAGED_NAMESPACE, name: 'sa-token-signing-certs' },
    data: { 'service-account-001.pub': key.toString() },
  });
  for (const node of nodes) await provideNode(kube, node, csrSigner, { ...issuing, hasConfigs }, names);
}

/** Makes an object with its status where there is none. */
async function provide<T extends KubeObject & { status?: unknown }>(
  kube: Kube,
  resource: Resource<T>,
  object: T,
): Promise<void> {
  if ((await getIfPresent(kube, resource, keyOf(object))) !== undefined) return;
  await kube.updateStatus(resource, { ...(await kube.create(resource, object)), status: object.status });
}

type Issuing = Parameters<typeof issueSigner>[0] extends infer T ? Omit<T & object, 'commonName'> : never;

async function provideNode(
  kube: Kube,
  node: TwinNode,
  signer: CertificateAndKey,
  issuing: Issuing & { readonly hasConfigs: boolean },
  { internal }: ApiNames,
): Promise<void> {
  const { name, address, disk, isControlPlane } = node;
  const user = { name: `system:node:${name}`, groups: ['system:nodes'] };
  const client = await issueClient({ ...issuing, signer, user });
  const serving = await issueServing({ ...issuing, signer, hostnames: [address, name] });
  disk.write('/var/lib/kubelet/pki/kubelet-client-current.pem', pem(client), 0o600);
  disk.write('/var/lib/kubelet/pki/kubelet-server-current.pem', pem(serving), 0o600);
  disk.write(`/etc/systemd/system/${KUBELET}`, '[Service]\nExecStart=/usr/bin/kubelet\n');
  const kubeconfig = dump({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'kubelet',
    clusters: [{ name: 'local', cluster: { server: `https://${internal}:6443` } }],
    contexts: [{ name: 'kubelet', context: { cluster: 'local', user: 'kubelet' } }],
    users: [{ name: 'kubelet', user: { 'client-certificate': '/var/lib/kubelet/pki/kubelet-client-current.pem' } }],
  });
  for (const path of [BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG]) disk.write(path, kubeconfig, 0o600);
  const role = isControlPlane ? 'master' : 'worker';
  await provide(kube, NODES, {
    metadata: {
      name,
      labels: { [`node-role.kubernetes.io/${role}`]: '', 'kubernetes.io/os': 'linux' },
      annotations: issuing.hasConfigs ? { [CURRENT_CONFIG]: `rendered-${role}` } : {},
    },
    status: {
      addresses: [{ type: 'InternalIP', address }],
      conditions: [{ type: 'Ready', status: 'True', lastTransitionTime: formatRfc3339(issuing.now) }],
      nodeInfo: { kubeletVersion: 'v1.29.0' } as never,
    },
  });
}

function bundle(namespace: string, name: string, { chain }: CertificateAndKey) {
  return { metadata: { namespace, name }, data: { [BUNDLE_KEY]: encodeCertificates(chain) } };
}

function pem({ chain, key }: CertificateAndKey): string {
  return encodeCertificates(chain) + encodePrivateKey(key);
}
