import { createPublicKey } from 'node:crypto';
import { dump } from 'js-yaml';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { BOOTSTRAP_KUBECONFIG, KUBELET, LIVE_KUBECONFIG } from '../daemon/certificates/paths.ts';
import { days } from '../kube/duration.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, NAMESPACES, NODES } from '../kube/resource.ts';
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

/** What the installer and those operators would put into a cluster that are not in the twin. */
export async function provideInputs(kube: Kube, nodes: readonly TwinNode[], keys: Keys, now: Date): Promise<void> {
  for (const name of ['default', 'kube-system', MCO_NAMESPACE, ETCD_NAMESPACE])
    await kube.create(NAMESPACES, { metadata: { name } });
  await ensureCluster(kube);
  const topology =
    nodes.filter(({ isControlPlane }) => isControlPlane).length === 1 ? 'SingleReplica' : 'HighlyAvailable';
  const infrastructure = await kube.create(INFRASTRUCTURES, {
    metadata: CLUSTER,
    spec: { platformSpec: { type: 'None' } },
  });
  await kube.updateStatus(INFRASTRUCTURES, {
    ...infrastructure,
    status: {
      apiServerURL: `https://${EXTERNAL_NAME}:6443`,
      apiServerInternalURI: `https://${INTERNAL_NAME}:6443`,
      controlPlaneTopology: topology,
      platform: 'None',
      platformStatus: { type: 'None' },
    },
  });
  await kube.create(AUTHENTICATIONS, { metadata: CLUSTER, spec: { type: 'None' } });
  const network = await kube.create(NETWORKS, { metadata: CLUSTER, spec: {} });
  await kube.updateStatus(NETWORKS, {
    ...network,
    status: { serviceNetwork: ['172.30.0.0/16'], clusterNetwork: [{ cidr: '10.128.0.0/14', hostPrefix: 23 }] },
  });
  const issuing = { keys, now, lifetimeMs: OUTLIVES_EVERYTHING_MS, algorithm: 'Ed25519' } as const;
  const csrSigner = await issueSigner({ ...issuing, commonName: 'kube-csr-signer' });
  await kube.create(CONFIG_MAPS, bundle(MANAGED_NAMESPACE, 'csr-controller-ca', csrSigner));
  const key = createPublicKey(await keys.generate('Ed25519')).export({ format: 'pem', type: 'spki' });
  await kube.create(CONFIG_MAPS, {
    metadata: { namespace: MANAGED_NAMESPACE, name: 'sa-token-signing-certs' },
    data: { 'service-account-001.pub': key.toString() },
  });
  for (const node of nodes) await provideNode(kube, node, csrSigner, issuing);
}

type Issuing = Parameters<typeof issueSigner>[0] extends infer T ? Omit<T & object, 'commonName'> : never;

async function provideNode(kube: Kube, node: TwinNode, signer: CertificateAndKey, issuing: Issuing): Promise<void> {
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
    clusters: [{ name: 'local', cluster: { server: `https://${INTERNAL_NAME}:6443` } }],
    contexts: [{ name: 'kubelet', context: { cluster: 'local', user: 'kubelet' } }],
    users: [{ name: 'kubelet', user: { 'client-certificate': '/var/lib/kubelet/pki/kubelet-client-current.pem' } }],
  });
  for (const path of [BOOTSTRAP_KUBECONFIG, LIVE_KUBECONFIG]) disk.write(path, kubeconfig, 0o600);
  const role = isControlPlane ? 'master' : 'worker';
  const stored = await kube.create(NODES, {
    metadata: {
      name,
      labels: { [`node-role.kubernetes.io/${role}`]: '', 'kubernetes.io/os': 'linux' },
      annotations: { [CURRENT_CONFIG]: `rendered-${role}` },
    },
  });
  await kube.updateStatus(NODES, {
    ...stored,
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
