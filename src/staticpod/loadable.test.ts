import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { silentLog } from '../controller/log.ts';
import { recordingEvents } from '../kube/events.ts';
import { MemoryKube } from '../kube/memory.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import { issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { unloadable } from './loadable.ts';
import { syncCertificates } from './node/cert-sync.ts';
import { copyContent } from './node/installer.ts';
import { deps, cluster as installerCluster, options } from './node/installer-testing.ts';
import { freeLock, temporaryFiles, visibleTree } from './node/testing.ts';
import { revisionReconcile } from './revision/controller.ts';
import { CONFIG, configMap, NAMESPACE, TestCluster } from './testing.ts';

const GARBLED = '-----BEGIN CERTIFICATE-----\nbm90IGEgY2VydGlmaWNhdGU=\n-----END CERTIFICATE-----\n';
const [A, B] = [await pair('a'), await pair('b')];

describe('what no process could load', () => {
  const cases: [name: string, data: Record<string, string>, problem: RegExp | undefined][] = [
    ['a pair', { 'tls.crt': A.crt, 'tls.key': A.key }, undefined],
    ['a chain', { 'tls.crt': A.crt + B.crt, 'tls.key': A.key }, undefined],
    ['a garbled certificate', { 'tls.crt': GARBLED, 'tls.key': A.key }, /^tls\.crt: it cannot be read$/],
    ['text that is no PEM', { 'tls.crt': 'x', 'tls.key': A.key }, /^tls\.crt: there is no certificate in it$/],
    ['a garbled key', { 'tls.crt': A.crt, 'tls.key': 'x' }, /^tls\.crt: .*private key/],
    ['an empty key', { 'tls.crt': A.crt, 'tls.key': '' }, /^tls\.crt: /],
    ['a key of another', { 'tls.crt': A.crt, 'tls.key': B.key }, /belongs to another certificate$/],
    ['half a pair', { 'tls.crt': A.crt }, /tls\.key is missing$/],
    ['the other half', { 'tls.key': A.key }, /tls\.crt is missing$/],
    ['an aggregate', { 'etcd-peer-m0.crt': A.crt, 'etcd-peer-m0.key': B.key }, /^etcd-peer-m0\.crt: .*another/],
    ['a bundle', { 'ca-bundle.crt': A.crt + B.crt }, undefined],
    ['an empty bundle', { 'ca-bundle.crt': '' }, /^ca-bundle\.crt: /],
    ['a bundle with a garbled entry', { 'ca-bundle.crt': A.crt + GARBLED }, /^ca-bundle\.crt: /],
    ['an aggregate of bundles', { 'server-ca-bundle.crt': A.crt, 'metrics-ca-bundle.crt': '' }, /^metrics-ca-bundle/],
    ['public keys', { 'service-account-001.pub': A.pub }, undefined],
    [
      'a garbled public key',
      { 'service-account-001.pub': 'x' },
      /^service-account-001\.pub: there is no public key in it$/,
    ],
    ['another label', { 'service-account-001.pub': A.pub.replaceAll('PUBLIC', 'RSA PUBLIC') }, undefined],
    ['a signing key', { 'service-account.key': A.key, 'service-account.pub': A.pub }, undefined],
    ['of another', { 'service-account.key': B.key, 'service-account.pub': A.pub }, /another public key$/],
    ['what is not ours to judge', { 'config.yaml': '{', kubeconfig: '', token: 'x', 'ca.crt': 'x' }, undefined],
    ['nothing', {}, undefined],
  ];
  for (const [name, data, problem] of cases) {
    test(name, () => {
      for (const found of [unloadable({ data }, 'configmap'), unloadable({ data: encoded(data) }, 'secret')]) {
        if (problem === undefined) assert.equal(found, undefined);
        else assert.match(found ?? '', problem);
        assert.doesNotMatch(found ?? '', /BEGIN|bm90|MII/);
      }
    });
  }

  test('what the cluster injects is its own affair, unless there is nothing in it', () => {
    const metadata = { labels: { 'config.openshift.io/inject-trusted-cabundle': 'true' } };
    assert.equal(unloadable({ metadata, data: { 'ca-bundle.crt': A.crt + GARBLED } }, 'configmap'), undefined);
    assert.match(unloadable({ metadata, data: { 'ca-bundle.crt': '' } }, 'configmap') ?? '', /^ca-bundle/);
  });
});

describe('revisions hold only what can be loaded', () => {
  test('a garbled certificate is held back with an event and a condition, and other changes go on with the last good one', async () => {
    const cluster = await clusterWith(certificate(A.crt, A.key));
    await cluster.run(reconcileOf(cluster));
    assert.equal((await cluster.status()).latestAvailableRevision, 1);

    await replace(cluster, certificate(GARBLED, A.key));
    await cluster.run(reconcileOf(cluster));
    assert.equal((await cluster.status()).latestAvailableRevision, 1, 'no revision for it');
    const problem = 'secret/test-secret cannot be loaded: tls.crt: it cannot be read';
    assert.deepEqual(await degraded(cluster), [
      'True',
      'UnusableContent',
      `${problem}\nthe content of revision 1 stays in use`,
    ]);
    await cluster.run(reconcileOf(cluster));
    assert.equal(cluster.events.filter(({ reason }) => reason === 'UnusableContent').length, 1, 'told once');

    await replace(cluster, configMap('test-pod', { a: '2' }));
    await cluster.run(reconcileOf(cluster));
    assert.equal((await cluster.status()).latestAvailableRevision, 2, 'the rest goes on');
    const copy = await cluster.kube.get(SECRETS, { namespace: NAMESPACE, name: 'test-secret-2' });
    assert.deepEqual(copy.data, certificate(A.crt, A.key).data);
    assert.equal((await degraded(cluster))[0], 'True');

    await replace(cluster, certificate(B.crt, B.key));
    await cluster.run(reconcileOf(cluster));
    assert.equal((await cluster.status()).latestAvailableRevision, 3);
    const mended = await cluster.kube.get(SECRETS, { namespace: NAMESPACE, name: 'test-secret-3' });
    assert.deepEqual(mended.data, certificate(B.crt, B.key).data);
    assert.equal((await degraded(cluster))[0], 'False');
  });

  test('without any good content there is no revision', async () => {
    const cluster = await clusterWith(certificate(A.crt, B.key));
    await cluster.run(reconcileOf(cluster)).catch(() => {});
    assert.equal((await cluster.status()).latestAvailableRevision ?? 0, 0);
    const [status, , message] = await degraded(cluster);
    assert.equal(status, 'True');
    assert.match(message ?? '', /secret\/test-secret cannot be loaded: .*another certificate/);
  });
});

test('a syncer keeps the last good files, says so, and writes the others', async t => {
  const { files } = await temporaryFiles(t);
  const kube = new MemoryKube();
  const bundle = (text: string): ConfigMap => ({
    metadata: { namespace: NAMESPACE, name: 'client-ca' },
    data: { 'ca-bundle.crt': text },
  });
  await kube.create(SECRETS, certificate(A.crt, A.key));
  await kube.create(CONFIG_MAPS, bundle(A.crt));
  const events = recordingEvents();
  const pass = async () => {
    const found = [...(await kube.list(SECRETS)).items, ...(await kube.list(CONFIG_MAPS)).items];
    const cached = (_kind: string, name: string) => found.find(({ metadata }) => metadata?.name === name);
    const lists = { configMaps: [{ name: 'client-ca' }], secrets: [{ name: 'test-secret' }] };
    const syncing = { namespace: NAMESPACE, destinationDir: '/certs', ...lists, contentCheck: unloadable };
    await syncCertificates(syncing, { kube, cached, files, lock: freeLock, events, log: silentLog });
  };
  await pass();
  const before = await visibleTree(files, '/certs');
  await kube.update(CONFIG_MAPS, bundle(''));
  await kube.update(SECRETS, certificate(B.crt, B.key));
  await assert.rejects(pass(), /no process could load configmap .*client-ca, so its files stay as they are/);
  const after = await visibleTree(files, '/certs');
  assert.equal(after['configmaps/client-ca/ca-bundle.crt'], before['configmaps/client-ca/ca-bundle.crt']);
  assert.notEqual(after['secrets/test-secret/tls.crt'], before['secrets/test-secret/tls.crt']);
  const told = events.events.find(({ reason }) => reason === 'CertificateUpdateFailed')?.message;
  assert.match(told ?? '', /no process could load configmap/);
});

test('an installer leaves the last good files beside its revision, and brings none that cannot be loaded', async t => {
  const { files } = await temporaryFiles(t);
  const kube = await installerCluster(['7']);
  const install = () => copyContent(options(), deps(kube, files, { contentCheck: unloadable }));
  await assert.rejects(install(), /no process could load secrets serving: tls\.crt: there is no certificate in it/);
  const write = async (name: string, data: Record<string, string>) => {
    const found = await kube.get(SECRETS, { namespace: 'openshift-kube-apiserver', name });
    await kube.update(SECRETS, { ...found, data: encoded(data) });
  };
  const ca = await kube.get(CONFIG_MAPS, { namespace: 'openshift-kube-apiserver', name: 'client-ca' });
  await kube.update(CONFIG_MAPS, { ...ca, data: { 'ca-bundle.crt': A.crt } });
  await write('serving', { 'tls.crt': A.crt, 'tls.key': A.key });
  await install();
  await write('serving', { 'tls.crt': A.crt, 'tls.key': B.key });
  await install();
  const tree = await visibleTree(files, '/etc/kubernetes/static-pod-resources/kube-apiserver-certs');
  assert.equal(tree['secrets/serving/tls.key'], `600 ${A.key}`);
});

async function pair(commonName: string): Promise<{ crt: string; key: string; pub: string }> {
  const now = new Date('2026-01-01T00:00:00Z');
  const made = await issueSigner({ commonName, lifetimeMs: 86_400_000, now, keys: systemKeys, algorithm: 'P-256' });
  const { createPublicKey } = await import('node:crypto');
  const pub = createPublicKey(made.key).export({ format: 'pem', type: 'spki' }) as string;
  return { crt: encodeCertificates(made.chain), key: encodePrivateKey(made.key), pub };
}

function encoded(data: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(data).map(([name, text]) => [name, Buffer.from(text).toString('base64')]));
}

function certificate(crt: string, key: string): Secret {
  return { metadata: { namespace: NAMESPACE, name: 'test-secret' }, data: encoded({ 'tls.crt': crt, 'tls.key': key }) };
}

async function clusterWith(secret: Secret): Promise<TestCluster> {
  const cluster = new TestCluster({ kube: new MemoryKube() });
  await cluster.setOperator({});
  await cluster.put(configMap('test-pod', { a: '1' }));
  await cluster.kube.create(SECRETS, secret);
  return cluster;
}

function reconcileOf(cluster: TestCluster) {
  return revisionReconcile({ ...cluster.parts, config: { ...CONFIG, contentCheck: unloadable } });
}

async function replace({ kube }: TestCluster, object: Secret | ConfigMap): Promise<void> {
  if (object.kind === 'ConfigMap') await kube.update(CONFIG_MAPS, object);
  else await kube.update(SECRETS, object as Secret);
}

async function degraded(cluster: TestCluster): Promise<(string | undefined)[]> {
  const { conditions = [] } = await cluster.status();
  const found = conditions.find(({ type }) => type === 'RevisionControllerDegraded');
  return [found?.status, found?.reason, found?.message];
}
