import assert from 'node:assert/strict';
import { X509Certificate } from 'node:crypto';
import { describe, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { minutes } from '../../kube/duration.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NODES, SECRETS } from '../../kube/resource.ts';
import { INFRASTRUCTURES, NETWORKS } from '../../machine-config-api/cluster-config.ts';
import { CONFIG_MANAGED_NAMESPACE, CONFIG_NAMESPACE, MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { certificate, installDefinitions, makeOpenShift, NOW, RELEASE, TestCluster } from '../testing.ts';
import { ensureMachineConfigInputs, type MachineConfigInputs } from './ensure.ts';

async function withCluster(work: (kube: Kube, ensure: Ensure) => Promise<void>): Promise<void> {
  const clock = new VirtualClock(NOW);
  const ca = await certificate('kubernetes');
  const api = await startEngine({ clock, rootCa: () => ca });
  try {
    await installDefinitions(api);
    const inputs = { kube: api.kube, clock, keys: seededKeys('inputs'), keyAlgorithm: 'P-256' as const };
    await work(api.kube, async more => {
      await api.idle();
      return ensureMachineConfigInputs({ ...inputs, releaseVersion: RELEASE, ...more });
    });
  } finally {
    await api.close();
  }
}

type Ensure = (more?: Partial<MachineConfigInputs>) => Promise<boolean>;
const kubeSystem = (name: string, data: Record<string, string>) => ({
  metadata: { namespace: 'kube-system', name },
  data,
});
const KUBEADM =
  'controlPlaneEndpoint: api.example.com:6443\nnetworking:\n  serviceSubnet: 10.10.0.0/16\n  podSubnet: 10.20.0.0/16,fd00::/48\n';

describe('what a cluster that is not OpenShift lacks', () => {
  test('is made from what kubeadm left, and only once', () =>
    withCluster(async (kube, ensure) => {
      const ca = await certificate('kubernetes');
      await kube.create(CONFIG_MAPS, kubeSystem('kubeadm-config', { ClusterConfiguration: KUBEADM }));
      await kube.create(CONFIG_MAPS, kubeSystem('extension-apiserver-authentication', { 'client-ca-file': ca }));
      await kube.create(NODES, { metadata: { name: 'n', labels: { 'node-role.kubernetes.io/control-plane': '' } } });
      assert.equal(await ensure(), true);
      const { status } = await kube.get(INFRASTRUCTURES, { name: 'cluster' });
      assert.equal(status?.apiServerInternalURI, 'https://api.example.com:6443');
      assert.equal(status?.controlPlaneTopology, 'SingleReplica');
      const { spec } = await kube.get(NETWORKS, { name: 'cluster' });
      assert.deepEqual(spec, {
        serviceNetwork: ['10.10.0.0/16'],
        clusterNetwork: [{ cidr: '10.20.0.0/16' }, { cidr: 'fd00::/48' }],
      });
      const clientCa = { namespace: CONFIG_MANAGED_NAMESPACE, name: 'kube-apiserver-client-ca' };
      assert.equal((await kube.get(CONFIG_MAPS, clientCa)).data?.['ca-bundle.crt'], ca);
      const { items: before } = await kube.list(CONFIG_MAPS, {});
      assert.equal(await ensure(), true);
      assert.deepEqual((await kube.list(CONFIG_MAPS, {})).items, before);
    }));

  test('machines trust the cluster and the server of first configs, whose certificate names the API host', () =>
    withCluster(async (kube, ensure) => {
      await ensure({ reachedAt: 'https://10.0.0.1:6443' });
      const bundle =
        (await kube.get(CONFIG_MAPS, { namespace: 'kube-system', name: 'root-ca' })).data?.['ca.crt'] ?? '';
      const [cluster, server] = bundle.split(/(?=-----BEGIN)/).map(pem => new X509Certificate(pem));
      assert.deepEqual([cluster?.subject, server?.subject], ['CN=kubernetes', 'CN=machine-config-server-ca']);
      const { data = {} } = await kube.get(SECRETS, { namespace: MCO_NAMESPACE, name: 'machine-config-server-tls' });
      const leaf = new X509Certificate(Buffer.from(data['tls.crt'] ?? '', 'base64'));
      assert.ok(server?.publicKey && leaf.verify(server.publicKey));
      assert.equal(leaf.checkIP('10.0.0.1'), '10.0.0.1');
    }));

  test('what is there stays, and what we made follows our release', () =>
    withCluster(async (kube, ensure) => {
      const theirs = kubeSystem('root-ca', { 'ca.crt': 'theirs' });
      await kube.create(CONFIG_MAPS, theirs);
      await kube.create(NETWORKS, { metadata: { name: 'cluster' }, spec: {} });
      await kube.patch(
        NETWORKS,
        { name: 'cluster' },
        { type: 'merge', body: { status: { serviceNetwork: ['172.30.0.0/16'] } } },
        { subresource: 'status' },
      );
      await ensure({ apiServerUrl: 'https://api.example.com:6443' });
      await ensure({ apiServerUrl: 'https://other.example.com:6443', releaseVersion: '9.9.9' });
      assert.deepEqual((await kube.get(CONFIG_MAPS, { namespace: 'kube-system', name: 'root-ca' })).data, theirs.data);
      await assert.rejects(kube.get(SECRETS, { namespace: MCO_NAMESPACE, name: 'machine-config-server-tls' }));
      assert.deepEqual((await kube.get(NETWORKS, { name: 'cluster' })).spec?.serviceNetwork, ['172.30.0.0/16']);
      const { status } = await kube.get(INFRASTRUCTURES, { name: 'cluster' });
      assert.equal(status?.apiServerInternalURI, 'https://api.example.com:6443');
      const images = await kube.get(CONFIG_MAPS, { namespace: MCO_NAMESPACE, name: 'machine-config-osimageurl' });
      assert.equal(images.data?.['releaseVersion'], '9.9.9');
    }));

  test('an address of IPv6 is one too', () =>
    withCluster(async (kube, ensure) => {
      await ensure({ apiServerUrl: 'https://[fd00::1]:6443' });
      const { data = {} } = await kube.get(SECRETS, { namespace: MCO_NAMESPACE, name: 'machine-config-server-tls' });
      const leaf = new X509Certificate(Buffer.from(data['tls.crt'] ?? '', 'base64'));
      assert.equal(leaf.checkIP('fd00::1'), 'fd00::1');
    }));

  test('nobody knows where the API is: that is said', () =>
    withCluster(async (_kube, ensure) => assert.rejects(ensure(), /status\.apiServerInternalURI is empty/)));

  test('on OpenShift nothing is made', () =>
    withCluster(async (kube, ensure) => {
      await makeOpenShift(kube);
      assert.equal(await ensure({ reachedAt: 'https://10.0.0.1:6443' }), false);
      await assert.rejects(kube.get(SECRETS, { namespace: CONFIG_NAMESPACE, name: 'pull-secret' }));
    }));

  test('with them the operator and the controllers get to a rendered config, and nothing is degraded', async () => {
    const cluster = await TestCluster.create(clock => startEngine({ clock }), { bare: true });
    try {
      await cluster.kube.create(
        CONFIG_MAPS,
        kubeSystem('extension-apiserver-authentication', { 'client-ca-file': await certificate('kubernetes') }),
      );
      await ensureMachineConfigInputs({
        kube: cluster.kube,
        clock: cluster.clock,
        keys: seededKeys('inputs'),
        keyAlgorithm: 'P-256',
        releaseVersion: RELEASE,
        reachedAt: 'https://10.0.0.1:6443',
      });
      cluster.startOperator();
      cluster.startController();
      await cluster.until(
        'both pools are rendered',
        async () => (await cluster.rendered('worker')).length + (await cluster.rendered('master')).length === 2,
        minutes(2),
      );
      await cluster.pass(minutes(1));
      const { Degraded } = await cluster.clusterOperator();
      assert.equal(Degraded?.status, 'False', Degraded?.message);
    } finally {
      await cluster.stop();
    }
  });
});
