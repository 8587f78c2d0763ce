import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { copyFileSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { ClusterRoleBinding } from 'kubernetes-types/rbac/v1.d.ts';
import { startApi } from '../../src/api/api.ts';
import { CONFIG_MAPS, EVENTS, NAMESPACES, PODS, resource, SECRETS, SERVICE_ACCOUNTS } from '../../src/kube/resource.ts';
import { LocalNode } from '../../src/local/node.ts';
import { localPodLogs } from '../../src/local/pod-logs.ts';
import { engineTokens } from '../../src/local/tokens.ts';
import type { CertificateAndKey } from '../../src/pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../../src/pki/issue.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../src/pki/pem.ts';
import { nodePod as staticPodProgram } from '../../src/staticpod/node-pod.ts';
import { eventually, PATIENCE_MS } from '../tools/eventually.ts';
import { atEnd, isAlive, isReady, NAMESPACE, temporaryDirectory, eventuallyPod as waitForPod } from './cluster.ts';

const CERT_DIR = '/etc/kubernetes/static-pod-resources/kube-apiserver-certs';
const ISSUE = { keys: systemKeys, lifetimeMs: 24 * 3_600_000, algorithm: 'P-256' as const };

const signerNamed = (commonName: string) => issueSigner({ ...ISSUE, now: new Date(), commonName });
const servingFor = (signer: CertificateAndKey, hostnames: string[]) =>
  issueServing({ ...ISSUE, now: new Date(), signer, hostnames });
const pem = ({ chain }: CertificateAndKey) => encodeCertificates(chain);
const fingerprint = ({ chain }: CertificateAndKey) =>
  createHash('sha256')
    .update(chain[0]?.der ?? '')
    .digest('hex');
const base64 = (text: string) => Buffer.from(text).toString('base64');
const pairData = (pair: CertificateAndKey) => ({
  'tls.crt': base64(pem(pair)),
  'tls.key': base64(encodePrivateKey(pair.key)),
});

function staticPod(port: number): Pod {
  const probe = (path: string) => ({ httpGet: { scheme: 'HTTPS', port, path }, timeoutSeconds: 10, periodSeconds: 5 });
  const mounts = [
    { name: 'resource-dir', mountPath: '/etc/kubernetes/static-pod-resources' },
    { name: 'cert-dir', mountPath: '/etc/kubernetes/static-pod-certs' },
  ];
  const secret = (name: string, file: string) => `/etc/kubernetes/static-pod-certs/secrets/${name}/tls.${file}`;
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: NAMESPACE, name: 'kube-apiserver', labels: { revision: 'REVISION' } },
    spec: {
      terminationGracePeriodSeconds: 5,
      containers: [
        {
          name: 'main',
          image: 'quay.io/openshift/kube-apiserver:v4.16',
          command: ['kube-apiserver'],
          args: [
            `--secure-port=${port}`,
            `--tls-cert-file=${secret('serving', 'crt')}`,
            `--tls-private-key-file=${secret('serving', 'key')}`,
            `--tls-sni-cert-key=${secret('localhost-serving', 'crt')},${secret('localhost-serving', 'key')}`,
            '--client-ca-file=/etc/kubernetes/static-pod-certs/configmaps/client-ca/ca-bundle.crt',
            '--etcd-cafile=/etc/kubernetes/static-pod-resources/configmaps/etcd-serving-ca/ca-bundle.crt',
          ],
          volumeMounts: mounts,
          startupProbe: { ...probe('healthz'), failureThreshold: 30 },
          livenessProbe: probe('livez'),
          readinessProbe: probe('readyz'),
        },
        {
          name: 'cert-syncer',
          image: 'rotunda',
          command: ['cluster-kube-apiserver-operator', 'cert-syncer'],
          args: ['--namespace=$(POD_NAMESPACE)', '--destination-dir=/etc/kubernetes/static-pod-certs'],
          env: [
            { name: 'POD_NAME', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } },
            { name: 'POD_NAMESPACE', valueFrom: { fieldRef: { fieldPath: 'metadata.namespace' } } },
          ],
          volumeMounts: mounts,
        },
      ],
      volumes: [
        {
          name: 'resource-dir',
          hostPath: { path: '/etc/kubernetes/static-pod-resources/kube-apiserver-pod-REVISION' },
        },
        { name: 'cert-dir', hostPath: { path: CERT_DIR } },
      ],
    },
  };
}

const CLUSTER_ROLE_BINDINGS = resource<ClusterRoleBinding>(
  'rbac.authorization.k8s.io/v1',
  'ClusterRoleBinding',
  'clusterrolebindings',
  false,
);

async function startControlPlane(t: TestContext) {
  const directory = temporaryDirectory(t);
  const nodes: LocalNode[] = [];
  const api = await startApi({ dir: join(directory, 'api'), podLogs: localPodLogs(() => nodes) });
  const { hostname, port } = new URL(api.url);
  const address = `127.${1 + Math.floor(Math.random() * 250)}.${Math.floor(Math.random() * 250)}.1`;
  const node = new LocalNode({
    name: 'master-0',
    root: join(directory, 'nodes', 'master-0'),
    kube: api.kube,
    address,
    kubeconfig: api.kubeconfigPath,
    issueToken: engineTokens(api.engine),
    env: { KUBERNETES_SERVICE_HOST: hostname, KUBERNETES_SERVICE_PORT: port, ROTUNDA_SETTLE_PAUSE: '0s' },
    programs: {
      rotunda: [process.execPath, fileURLToPath(new URL('programs.ts', import.meta.url))],
      useRealBinaries: false,
    },
  });
  nodes.push(node);
  atEnd(t, async () => {
    await node.stop();
    await api.close();
  });
  const { kube } = api;
  await kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  await kube.create(SERVICE_ACCOUNTS, { metadata: { namespace: NAMESPACE, name: 'installer-sa' } });
  await kube.create(CLUSTER_ROLE_BINDINGS, {
    metadata: { name: 'installer' },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'ServiceAccount', namespace: NAMESPACE, name: 'installer-sa' }],
  });
  await node.start();
  const signer = await signerNamed('signer');
  const serving = await servingFor(signer, ['kubernetes.default.svc']);
  const localhost = await servingFor(signer, ['localhost', '127.0.0.1']);
  await kube.create(SECRETS, {
    metadata: { namespace: NAMESPACE, name: 'serving' },
    type: 'kubernetes.io/tls',
    data: pairData(serving),
  });
  await kube.create(SECRETS, {
    metadata: { namespace: NAMESPACE, name: 'localhost-serving' },
    type: 'kubernetes.io/tls',
    data: pairData(localhost),
  });
  await kube.create(CONFIG_MAPS, {
    metadata: { namespace: NAMESPACE, name: 'client-ca' },
    data: { 'ca-bundle.crt': pem(signer) },
  });
  const owner = await kube.create(CONFIG_MAPS, { metadata: { namespace: NAMESPACE, name: 'owner' } });
  const publish = async (revision: number, pod: Pod | string) => {
    const text = typeof pod === 'string' ? pod : JSON.stringify(pod);
    await kube.create(CONFIG_MAPS, {
      metadata: { namespace: NAMESPACE, name: `kube-apiserver-pod-${revision}` },
      data: { 'pod.yaml': text },
    });
    await kube.create(CONFIG_MAPS, {
      metadata: { namespace: NAMESPACE, name: `etcd-serving-ca-${revision}` },
      data: { 'ca-bundle.crt': pem(signer) },
    });
  };
  const install = async (revision: number) => {
    const name = `installer-${revision}-master-0`;
    await kube.create(
      PODS,
      staticPodProgram({
        namespace: NAMESPACE,
        name,
        nodeName: 'master-0',
        owner: { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata?.uid ?? '' },
        app: 'installer',
        container: 'installer',
        image: 'rotunda',
        command: ['cluster-kube-apiserver-operator', 'installer'],
        args: [
          '-v=2',
          `--revision=${revision}`,
          `--namespace=${NAMESPACE}`,
          '--pod=kube-apiserver-pod',
          '--resource-dir=/etc/kubernetes/static-pod-resources',
          '--pod-manifest-dir=/etc/kubernetes/manifests',
          '--configmaps=kube-apiserver-pod',
          '--configmaps=etcd-serving-ca',
          `--cert-dir=${CERT_DIR}`,
          '--cert-configmaps=client-ca',
          '--cert-secrets=serving',
          '--cert-secrets=localhost-serving',
          '--optional-cert-secrets=user-serving',
        ],
      }),
    );
    return waitForPod(
      api.engine,
      name,
      'ended',
      ({ status }) => status?.phase === 'Succeeded' || status?.phase === 'Failed',
    );
  };
  return { api, node, address, signer, serving, localhost, publish, install };
}

interface Answer {
  readonly peer: string;
  readonly body: unknown;
}

/** A handshake of its own each time; `servername` empty: none is sent. */
function get(host: string, port: number, path: string, servername = '', client?: CertificateAndKey): Promise<Answer> {
  const identity = client === undefined ? {} : { cert: pem(client), key: encodePrivateKey(client.key) };
  return new Promise((resolve, reject) => {
    const sent = request(
      { host, port, path, servername, agent: false, rejectUnauthorized: false, timeout: PATIENCE_MS, ...identity },
      response => {
        const peer = (response.socket as import('node:tls').TLSSocket).getPeerCertificate().raw;
        let text = '';
        response.on('data', (chunk: Buffer) => {
          text += chunk.toString();
        });
        response.once('end', () => {
          const body: unknown = response.headers['content-type'] === 'application/json' ? JSON.parse(text) : text;
          resolve({ peer: createHash('sha256').update(peer).digest('hex'), body });
        });
      },
    );
    sent.once('timeout', () => sent.destroy(new Error('no answer in time')));
    sent.once('error', reject);
    sent.end();
  });
}

test('an installer brings a revision to a node; certificates change under the running server', async t => {
  const { api, node, address, signer, serving, localhost, publish, install } = await startControlPlane(t);
  const { kube, engine } = api;
  const port = 6443;
  await publish(1, staticPod(port));
  const installed = await install(1);
  assert.equal(installed.status?.phase, 'Succeeded', JSON.stringify(installed.status?.containerStatuses));
  const pod = await waitForPod(engine, 'kube-apiserver-master-0', 'ready', isReady);
  assert.equal(pod.metadata?.labels?.revision, '1');
  assert.equal(pod.metadata?.annotations?.['rotunda.dev/stand-in'], 'true', 'it says that it only stands in');
  const events = async () => (await kube.list(EVENTS, { namespace: NAMESPACE })).items.map(({ reason }) => reason);
  await eventually('the installer reports', async () => (await events()).includes('StaticPodInstallerCompleted'));

  type Loaded = {
    pid: number;
    standIn: boolean;
    inputs: { name: string; certificates?: string[]; isStale: boolean }[];
  };
  const loaded = async () => (await get(address, port, '/rotunda.dev/loaded')).body as Loaded;
  const input = (report: Loaded, name: string) => report.inputs.find(other => other.name === name);
  const { pid } = await loaded();
  assert.ok(isAlive(pid));
  assert.equal((await get(address, port, '/healthz')).peer, fingerprint(serving));
  assert.equal((await get(address, port, '/healthz', 'localhost')).peer, fingerprint(localhost));
  assert.equal((await get(address, port, '/healthz', 'elsewhere.example')).peer, fingerprint(serving));

  const next = await servingFor(signer, ['kubernetes.default.svc']);
  const secret = await kube.get(SECRETS, { namespace: NAMESPACE, name: 'serving' });
  await kube.update(SECRETS, { ...secret, data: pairData(next) });
  await eventually(
    'the new certificate is presented',
    async () => (await get(address, port, '/healthz')).peer === fingerprint(next),
  );
  assert.equal((await loaded()).pid, pid, 'the same process');
  const path = join(node.root, CERT_DIR, 'secrets/serving/tls.key');
  assert.equal(statSync(path).mode & 0o777, 0o600);
  assert.equal(readFileSync(path, 'utf8'), encodePrivateKey(next.key));
  await eventually('the syncer reports', async () => (await events()).includes('CertificateUpdated'));

  // A client of a new CA is a stranger until the bundle with its CA arrives.
  const newSigner = await signerNamed('new signer');
  const client = await issueClient({
    ...ISSUE,
    now: new Date(),
    signer: newSigner,
    user: { name: 'admin', groups: [] },
  });
  const trusted = async () =>
    ((await get(address, port, '/rotunda.dev/client', '', client)).body as { trusted?: boolean }).trusted;
  assert.equal(await trusted(), false);
  const bundle = await kube.get(CONFIG_MAPS, { namespace: NAMESPACE, name: 'client-ca' });
  await kube.update(CONFIG_MAPS, { ...bundle, data: { 'ca-bundle.crt': pem(signer) + pem(newSigner) } });
  await eventually('the client is trusted', trusted);
  assert.equal((await loaded()).pid, pid);

  // What the real server reads only at its start is not taken, and the server says so.
  const etcdCa = join(
    node.root,
    'etc/kubernetes/static-pod-resources/kube-apiserver-pod-1/configmaps/etcd-serving-ca/ca-bundle.crt',
  );
  writeFileSync(etcdCa, pem(newSigner));
  const report = await loaded();
  assert.equal(input(report, 'etcd-ca')?.isStale, true);
  assert.deepEqual(input(report, 'etcd-ca')?.certificates, [fingerprint(signer)]);

  const logs: string[] = [];
  const read = localPodLogs(() => [node]).read(pod, 'main', {
    follow: false,
    previous: false,
    timestamps: false,
    tailLines: 3,
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  for await (const chunk of await read) logs.push(Buffer.from(chunk).toString());
  assert.equal(logs.join('').trimEnd().split('\n').length, 3);
  assert.match(logs.join(''), /Loaded client CA/);

  // A newer revision replaces the process; the one before stays on the disk.
  const second = staticPod(port);
  second.metadata = { ...second.metadata, annotations: { changed: 'yes' } };
  await publish(2, second);
  assert.equal((await install(2)).status?.phase, 'Succeeded');
  await waitForPod(
    engine,
    'kube-apiserver-master-0',
    'revision 2',
    found => found.metadata?.labels?.revision === '2' && isReady(found),
  );
  assert.notEqual((await loaded()).pid, pid);
  assert.equal(isAlive(pid), false);
});

test('a revision that cannot be installed is reported and leaves the running one alone', async t => {
  const { api, address, publish, install } = await startControlPlane(t);
  const port = 6443;
  await publish(1, staticPod(port));
  await install(1);
  await waitForPod(api.engine, 'kube-apiserver-master-0', 'ready', isReady);
  const { pid } = (await get(address, port, '/rotunda.dev/loaded')).body as { pid: number };
  await publish(2, 'a: [1');
  const failed = await install(2);
  assert.equal(failed.status?.phase, 'Failed');
  const terminated = failed.status?.containerStatuses?.[0]?.state?.terminated;
  assert.equal(terminated?.exitCode, 1);
  assert.match(
    terminated?.message ?? '',
    /^failed to copy: manifest kube-apiserver-pod\.yaml in configmap test\/kube-apiserver-pod-2 is not YAML/,
  );
  assert.ok(isAlive(pid));

  // A pair that does not match is refused by the running server, and fatal for one that starts.
  const root = api.kubeconfigPath?.replace('/api/kubeconfig', '/nodes/master-0') ?? '';
  const secrets = join(root, CERT_DIR, 'secrets');
  const key = join(secrets, 'serving/tls.key');
  rmSync(join(root, 'etc/kubernetes/manifests/kube-apiserver-pod.yaml'));
  await eventually('stopped', () => !isAlive(pid));
  const good = readFileSync(key);
  copyFileSync(join(secrets, 'localhost-serving/tls.key'), key);
  const manifest = staticPod(port);
  manifest.spec = { ...manifest.spec, containers: manifest.spec?.containers.slice(0, 1) ?? [] };
  const text = JSON.stringify(manifest).replaceAll('REVISION', '1');
  writeFileSync(join(root, 'etc/kubernetes/manifests/kube-apiserver-pod.yaml'), text);
  const broken = await waitForPod(api.engine, 'kube-apiserver-master-0', 'failing', ({ status }) => {
    const [container] = status?.containerStatuses ?? [];
    return (container?.restartCount ?? 0) > 0 && container?.lastState?.terminated?.exitCode === 1;
  });
  assert.equal(isReady(broken), false);
  writeFileSync(key, good);
});
