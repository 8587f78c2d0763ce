import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { BUNDLE_KEY } from '../../src/certrotation/bundle.ts';
import { CLUSTER_OPERATORS } from '../../src/controller/cluster-operator-status.ts';
import { CONFIG_MAPS, PODS, SECRETS } from '../../src/kube/resource.ts';
import { EXTERNAL_NAME, INTERNAL_NAME } from '../../src/local/cluster-inputs.ts';
import { readCertificates } from '../../src/pki/pem.ts';
import {
  ask,
  eventually,
  forceRotation,
  loadedOn,
  OPERAND_NAMESPACE,
  sha256,
  startTestCluster,
  statusOf,
  unwellConditions,
} from './cluster.ts';

/** Which certificate is shown to whom (spec 20, 4.4). */
const SERVED = {
  localhost: 'localhost-serving-cert-certkey',
  'kubernetes.default.svc': 'service-network-serving-certkey',
  [EXTERNAL_NAME]: 'external-loadbalancer-serving-certkey',
  [INTERNAL_NAME]: 'internal-loadbalancer-serving-certkey',
  'localhost-recovery': 'localhost-recovery-serving-certkey',
  'somebody.else': 'service-network-serving-certkey',
} as const;

let cluster: Awaited<ReturnType<typeof startTestCluster>>;
before(async () => {
  cluster = await startTestCluster({ controlPlane: 3, workers: 1 });
});
after(() => cluster.stop());

test('three nodes reach a ready kube-apiserver each, and the operator has nothing to complain about', async () => {
  await cluster.ready();
  const unwell = await eventually(
    'all conditions are well',
    async () => (await unwellConditions(cluster)).length === 0,
  );
  assert.ok(unwell);
  const { latestAvailableRevision } = await statusOf(cluster);
  for (const { name } of cluster.controlPlane) {
    const pod = await cluster.kube.get(PODS, { namespace: OPERAND_NAMESPACE, name: `kube-apiserver-${name}` });
    assert.equal(pod.metadata?.labels?.revision, String(latestAvailableRevision));
    const statuses = pod.status?.containerStatuses ?? [];
    assert.equal(statuses.length, 5);
    for (const container of statuses) assert.deepEqual([container.name, container.ready], [container.name, true]);
    for (const container of statuses) assert.equal(container.restartCount, 0, container.name);
  }
  const told = await cluster.kube.get(CLUSTER_OPERATORS, { name: 'kube-apiserver' });
  const available = told.status?.conditions?.find(({ type }) => type === 'Available');
  assert.equal(available?.status, 'True');
});

test('every name is answered with its certificate, and the published bundle verifies all of them', async () => {
  const published = { namespace: 'openshift-config-managed', name: 'kube-apiserver-server-ca' };
  const ca = (await cluster.kube.get(CONFIG_MAPS, published)).data?.[BUNDLE_KEY];
  for (const node of cluster.controlPlane) {
    for (const [servername, secret] of Object.entries(SERVED)) {
      const verify = servername === 'somebody.else' || ca === undefined ? {} : { ca };
      const { peer } = await ask(node, '/readyz', { servername, ...verify });
      assert.equal(sha256(peer), await leafOf(secret), `${servername} on ${node.name}`);
    }
  }
});

test('a serving certificate that rotates is shown by the same processes, without a revision', async () => {
  const before = await Promise.all(cluster.controlPlane.map(loadedOn));
  const { latestAvailableRevision } = await statusOf(cluster);
  const old = await leafOf('service-network-serving-certkey');
  await forceRotation(cluster, OPERAND_NAMESPACE, 'service-network-serving-certkey');
  const next = await eventually('a new certificate', async () => {
    const leaf = await leafOf('service-network-serving-certkey');
    return leaf !== old && leaf;
  });
  for (const [index, node] of cluster.controlPlane.entries()) {
    // The default, and the one for the name: both come from this Secret.
    for (const servername of ['', 'kubernetes.default.svc']) {
      await eventually(
        `${node.name} shows it`,
        async () => sha256((await ask(node, '/readyz', { servername })).peer) === next,
      );
    }
    assert.equal((await loadedOn(node)).pid, before[index]?.pid);
  }
  assert.equal((await statusOf(cluster)).latestAvailableRevision, latestAvailableRevision);
  assert.deepEqual(await unwellConditions(cluster), []);
});

async function leafOf(name: string): Promise<string> {
  const { data = {} } = await cluster.kube.get(SECRETS, { namespace: OPERAND_NAMESPACE, name });
  const [leaf] = readCertificates(Buffer.from(data['tls.crt'] ?? '', 'base64').toString()).certificates;
  return sha256(leaf?.der ?? Buffer.alloc(0));
}
