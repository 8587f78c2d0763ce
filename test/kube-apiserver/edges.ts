import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../../src/certrotation/bundle.ts';
import { silentLog } from '../../src/controller/log.ts';
import { getIfPresent } from '../../src/kube/get.ts';
import { Informer } from '../../src/kube/informer.ts';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resource.ts';
import { CONFIG_NAMESPACE, MANAGED_NAMESPACE } from '../../src/kube-apiserver/namespaces.ts';
import { API_PORT } from '../../src/kube-apiserver/target-config/pod.ts';
import { kubeApiserverTrust } from '../../src/kube-apiserver/trust.ts';
import type { LocalCluster } from '../../src/local/cluster.ts';
import { EXTERNAL_NAME, INTERNAL_NAME } from '../../src/local/cluster-inputs.ts';
import { type LocalNode, MANIFESTS } from '../../src/local/node.ts';
import { StandInServer } from '../../src/local/stand-in-server.ts';
import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { issueClient, issueServing } from '../../src/pki/issue.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';
import { filesOfNodes, firstOf, objectsOfCluster, type ReadArtefact } from '../../src/trust/artefact.ts';
import type { Edge } from '../../src/trust/graph.ts';
import type { ObjectRef } from '../../src/trust/object.ts';
import { Prober, type Route } from '../../src/trust/prober.ts';
import { bundleOf, ISSUE, newCa, newServing } from './cluster.ts';

export const graph = kubeApiserverTrust();

const CERTS = '/etc/kubernetes/static-pod-resources/kube-apiserver-certs';
const KUBELET_CA = '/etc/kubernetes/kubelet-ca.crt';
const KUBELET_SERVING = '/var/lib/kubelet/pki/kubelet-server-current.pem';
const KUBELET_CLIENT = '/var/lib/kubelet/pki/kubelet-client-current.pem';
const PAUSE_MS = 150;
/** Who takes long is not away. */
const TIMEOUT_MS = 60_000;

/** What the installer and the signer of kubelets would have issued: certificates that are in no object of the operator. */
export interface Foreigners {
  readonly admin: CertificateAndKey;
  readonly kubeletClient: CertificateAndKey;
  readonly kubeletServing: CertificateAndKey;
}

/** Makes them, and makes their issuers known to the cluster. */
export async function issueForeigners({ kube, controlPlane }: LocalCluster): Promise<Foreigners> {
  const [adminCa, kubeletCa] = [await newCa('admin-kubeconfig-signer'), await newCa('kube-csr-signer')];
  const [node] = controlPlane as [LocalNode];
  const issue = { ...ISSUE, now: new Date() };
  const [admin, kubeletClient, kubeletServing] = await Promise.all([
    issueClient({ ...issue, signer: adminCa, user: { name: 'system:admin', groups: ['system:masters'] } }),
    issueClient({ ...issue, signer: kubeletCa, user: { name: `system:node:${node.name}`, groups: ['system:nodes'] } }),
    issueServing({ ...issue, signer: kubeletCa, hostnames: [node.name, node.address] }),
  ]);
  const metadata = { namespace: CONFIG_NAMESPACE, name: 'admin-kubeconfig-client-ca' };
  await kube.create(CONFIG_MAPS, { metadata, data: { [BUNDLE_KEY]: bundleOf(adminCa) } });
  const csr = { namespace: MANAGED_NAMESPACE, name: 'csr-controller-ca' };
  const body = { data: { [BUNDLE_KEY]: bundleOf(kubeletCa) } };
  await kube.patch(CONFIG_MAPS, csr, { type: 'merge', body });
  return { admin, kubeletClient, kubeletServing };
}

export interface Edges {
  readonly read: ReadArtefact;
  newProber(): Prober;
  stop(): Promise<void>;
}

/**
 * Every edge of the graph on a cluster of one node. Where the server is kube-apiserver, it is the one on the node; those that do not
 * run here are small servers that read exactly the files the graph names and take changes as it says.
 */
export async function startEdges(cluster: LocalCluster, foreigners: Foreigners): Promise<Edges> {
  const [node] = cluster.controlPlane as [LocalNode];
  const on = (path: string) => join(node.root, path);
  const { admin, kubeletClient, kubeletServing } = foreigners;
  write(on(KUBELET_CLIENT), combined(kubeletClient));
  write(on(KUBELET_SERVING), combined(kubeletServing));
  const aggregated = await newServing('aggregated.example.svc');
  write(on('/tmp/aggregated.crt'), encodeCertificates(aggregated.chain));
  write(on('/tmp/aggregated.key'), encodePrivateKey(aggregated.key));
  const stopWriting = await writeKubeletCa(cluster, on(KUBELET_CA));

  const serve = async (cert: string, key: string, clientCa: string): Promise<StandInServer> => {
    const rules = { servingReload: 'watch', clientCaReload: 'watch', sni: [], others: [] } as const;
    const listen = [{ host: node.address, port: 0 }];
    const settings = { listen, serving: { cert: on(cert), key: on(key) }, clientCa: on(clientCa), ...rules };
    const server = new StandInServer({ name: 'edge', settings, log: silentLog });
    await server.start();
    return server;
  };
  const requestHeaderCa = `${CERTS}/configmaps/aggregator-client-ca/ca-bundle.crt`;
  const localhost = `${CERTS}/secrets/localhost-serving-cert-certkey`;
  const servers = {
    // kube-apiserver republishes the request-header CA that it has loaded, and aggregated servers watch that.
    aggregated: await serve('/tmp/aggregated.crt', '/tmp/aggregated.key', requestHeaderCa),
    // A stand-in authenticates nobody by request headers, so the CA for that has a listener of its own.
    frontProxy: await serve(`${localhost}/tls.crt`, `${localhost}/tls.key`, requestHeaderCa),
    kubelet: await serve(KUBELET_SERVING, KUBELET_SERVING, KUBELET_CA),
  };

  const routes = (edge: Edge): Route[] => {
    const from = edge.client.nodes === 'anywhere' ? 'anywhere' : node.name;
    const to = (server: StandInServer) => ({ from, host: node.address, port: server.ports()[0] as number });
    if (edge.server.process === 'aggregated API server')
      return [{ ...to(servers.aggregated), serverName: 'aggregated.example.svc' }];
    if (edge.client.process === 'front proxy') return [to(servers.frontProxy)];
    if (edge.server.process === 'kubelet') return [{ ...to(servers.kubelet), serverName: node.address }];
    const { url } = edge.server.endpoint;
    const serverName = url.includes('external') ? EXTERNAL_NAME : url.includes('internal') ? INTERNAL_NAME : undefined;
    return [{ from, host: node.address, port: API_PORT, serverName }];
  };

  const read = firstOf(
    async ({ object, files }) =>
      object === undefined && files[0] === 'admin kubeconfig' ? { 'admin.pem': combined(admin) } : undefined,
    filesOfNodes({
      root: place => (place === node.name ? node.root : undefined),
      revision: () => runningRevision(node),
    }),
    objectsOfCluster(object => getObject(cluster, object)),
  );
  return {
    read,
    newProber: () => new Prober({ graph, routes, read, pauseMs: PAUSE_MS, timeoutMs: TIMEOUT_MS }),
    async stop() {
      await Promise.all([...Object.values(servers).map(server => server.stop()), stopWriting()]);
    },
  };
}

async function getObject({ kube }: Pick<LocalCluster, 'kube'>, { kind, ...key }: ObjectRef) {
  return kind === 'Secret' ? getIfPresent(kube, SECRETS, key) : getIfPresent(kube, CONFIG_MAPS, key);
}

const lastRevision = new Map<string, number>();

/** The revision in the manifest of the node; between two of them, the last. */
function runningRevision({ root }: LocalNode): number | undefined {
  try {
    const manifest = readFileSync(join(root, MANIFESTS, 'kube-apiserver-pod.yaml'), 'utf8');
    const revision = /kube-apiserver-pod-(\d+)/.exec(manifest)?.[1];
    if (revision !== undefined) lastRevision.set(root, Number(revision));
  } catch {
    // It is being replaced.
  }
  return lastRevision.get(root);
}

/** Does what the agent of a node does with the published client CA. */
async function writeKubeletCa({ kube }: LocalCluster, path: string): Promise<() => Promise<void>> {
  const informer = new Informer<ConfigMap>(kube, CONFIG_MAPS, { selection: { namespace: MANAGED_NAMESPACE } });
  const note = ({ metadata, data }: ConfigMap) => {
    if (metadata?.name === 'kube-apiserver-client-ca') write(path, data?.[BUNDLE_KEY] ?? '');
  };
  informer.subscribe({ add: note, update: (_, configMap) => note(configMap) });
  informer.start();
  await informer.synced;
  return () => informer.stop();
}

function write(path: string, text: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(`${path}.new`, text);
  renameSync(`${path}.new`, path);
}

function combined({ chain, key }: CertificateAndKey): string {
  return `${encodeCertificates(chain)}${encodePrivateKey(key)}`;
}
