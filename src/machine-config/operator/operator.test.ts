import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { CLUSTER_OPERATORS } from '../../controller/cluster-operator-status.ts';
import { days, minutes, seconds } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import { CONFIG_MAPS, type KubeObject, NODES, type Resource, SECRETS, SERVICE_ACCOUNTS } from '../../kube/resource.ts';
import { MACHINE_CONFIG_POOLS } from '../../machine-config-api/machine-config.ts';
import { MACHINE_CONFIGURATIONS } from '../../machine-config-api/machine-configuration.ts';
import {
  CONFIG_MANAGED_NAMESPACE,
  CONFIG_NAMESPACE,
  LAST_OBSERVED_SERVER_CA,
  MACHINE_API_NAMESPACE,
  MCO_NAMESPACE,
  SERVER_CA_DIGEST,
  SERVICE_CA_ROTATE,
} from '../../machine-config-api/names.ts';
import { issueSigner } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { certificate, NOW, TestCluster } from '../testing.ts';

const utf8 = (base64: string | null | undefined) => Buffer.from(base64 ?? '', 'base64').toString('utf8');

describe('the operator on the API', () => {
  let cluster: TestCluster;
  before(async () => {
    cluster = await TestCluster.create(clock => startEngine({ clock }));
    cluster.startOperator();
    cluster.startController();
    await cluster.until(
      'both pools are rendered',
      async () => (await cluster.rendered('worker')).length === 1,
      minutes(2),
    );
  });
  after(() => cluster.stop());

  test('publishes what it found, and says that all is well', async () => {
    const { spec = {}, status } = await cluster.controllerConfig();
    assert.equal(utf8(spec.kubeAPIServerServingCAData), await certificate('client-ca'));
    assert.equal(spec.clusterDNSIP, '172.30.0.10');
    assert.deepEqual(spec.pullSecret, { namespace: 'openshift-config', name: 'pull-secret' });
    assert.deepEqual(
      status?.controllerCertificates?.map(({ bundleFile, subject }) => [bundleFile, subject]),
      [
        ['KubeAPIServerServingCAData', 'CN=client-ca'],
        ['RootCAData', 'CN=root-ca'],
      ],
    );
    const { Degraded, Available } = await cluster.clusterOperator();
    assert.equal(Degraded?.status, 'False', Degraded?.message);
    assert.equal(Available?.status, 'True');
    const userData = await cluster.kube.get(SECRETS, {
      namespace: MACHINE_API_NAMESPACE,
      name: 'worker-user-data-managed',
    });
    assert.match(utf8(userData.data?.['userData']), /api-int\.c1\.example\.com:22623\/config\/worker/);
  });

  test('a new client CA reaches ControllerConfig without time going on, and renders nothing', async () => {
    const [rendered, bundle] = [await cluster.rendered('worker'), await certificate('new-client-ca')];
    const { metadata } = await cluster.controllerConfig();
    await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', { 'ca-bundle.crt': bundle });
    await cluster.quiet();
    const changed = await cluster.controllerConfig();
    assert.equal(utf8(changed.spec?.kubeAPIServerServingCAData), bundle);
    assert.equal(changed.metadata?.generation, (metadata?.generation ?? 0) + 1);
    await cluster.pass(minutes(1));
    assert.deepEqual(await cluster.rendered('worker'), rendered);
    const { status } = await cluster.controllerConfig();
    assert.equal(status?.controllerCertificates?.[0]?.subject, 'CN=new-client-ca');
  });

  test('a bundle of many CAs reaches ControllerConfig like one of few', async () => {
    const options = { keys: systemKeys, now: NOW, lifetimeMs: days(365), algorithm: 'RSA-2048' } as const;
    const signers = Array.from({ length: 15 }, (_, index) => issueSigner({ ...options, commonName: `ca-${index}` }));
    const bundle = encodeCertificates((await Promise.all(signers)).flatMap(({ chain }) => chain));
    await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', { 'ca-bundle.crt': bundle });
    await cluster.quiet();
    assert.equal(utf8((await cluster.controllerConfig()).spec?.kubeAPIServerServingCAData), bundle);
    const { Degraded } = await cluster.clusterOperator();
    assert.equal(Degraded?.status, 'False', Degraded?.message);
  });

  test('at rest nothing is written', async () => {
    await cluster.pass(minutes(15));
    const { metadata } = await cluster.controllerConfig();
    const pool = await cluster.pool('worker');
    await cluster.pass(minutes(30));
    assert.equal((await cluster.controllerConfig()).metadata?.resourceVersion, metadata?.resourceVersion);
    assert.equal((await cluster.pool('worker')).metadata?.resourceVersion, pool.metadata?.resourceVersion);
  });

  test('one bad source degrades the operator, names its object and field, and stops nothing else', async () => {
    await cluster.setConfigMap(CONFIG_NAMESPACE, 'user-ca-bundle', { 'ca-bundle.crt': 'bm90IGEgY2VydGlmaWNhdGU' });
    const bundle = await certificate('third-client-ca');
    await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', { 'ca-bundle.crt': bundle });
    await cluster.pass(seconds(1));
    const { Degraded } = await cluster.clusterOperator();
    assert.equal(Degraded?.status, 'True');
    assert.equal(Degraded?.reason, 'RenderConfigFailed');
    assert.match(Degraded?.message ?? '', /configmap openshift-config\/user-ca-bundle: ca-bundle\.crt/);
    assert.equal(utf8((await cluster.controllerConfig()).spec?.kubeAPIServerServingCAData), bundle);
    assert.ok(cluster.events.some(({ reason }) => reason === 'OperatorDegraded: RenderConfigFailed'));
    await cluster.kube.delete(CONFIG_MAPS, { namespace: CONFIG_NAMESPACE, name: 'user-ca-bundle' });
    await cluster.pass(seconds(1));
    assert.equal((await cluster.clusterOperator())['Degraded']?.status, 'False');
  });

  test('a bundle without a certificate never replaces a good one', async () => {
    const { spec } = await cluster.controllerConfig();
    await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', { 'ca-bundle.crt': '' });
    await cluster.pass(seconds(1));
    const { spec: after } = await cluster.controllerConfig();
    assert.equal(after?.kubeAPIServerServingCAData, spec?.kubeAPIServerServingCAData);
    assert.match((await cluster.clusterOperator())['Degraded']?.message ?? '', /holds no certificate/);
    await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', {
      'ca-bundle.crt': utf8(spec?.kubeAPIServerServingCAData),
    });
    await cluster.pass(seconds(1));
  });

  test('a pull secret that is not JSON is told by name, without its content, and stops nothing else', async () => {
    const pullWith = (names: string[]) =>
      cluster.kube.patch(
        SERVICE_ACCOUNTS,
        { namespace: MCO_NAMESPACE, name: 'machine-os-puller' },
        { type: 'merge', body: { imagePullSecrets: names.map(name => ({ name })) } },
      );
    await cluster.kube.create(CLUSTER_OPERATORS, { metadata: { name: 'image-registry' }, spec: {} });
    await cluster.setSecret(MCO_NAMESPACE, 'puller-dockercfg', 'Opaque', { '.dockercfg': '{"x":{"auth":"geheim"}' });
    await pullWith(['puller-dockercfg']);
    const bundle = await certificate('fourth-client-ca');
    await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', { 'ca-bundle.crt': bundle });
    await cluster.pass(minutes(1));
    const { Degraded } = await cluster.clusterOperator();
    assert.equal(Degraded?.status, 'True');
    assert.match(Degraded?.message ?? '', /secret openshift-machine-config-operator\/puller-dockercfg.*\.dockercfg/s);
    assert.ok(!JSON.stringify([Degraded, cluster.events]).includes('geheim'));
    assert.equal(utf8((await cluster.controllerConfig()).spec?.kubeAPIServerServingCAData), bundle);
    await cluster.setSecret(MCO_NAMESPACE, 'puller-dockercfg', 'Opaque', {
      '.dockercfg': '{"r:5000":{"auth":"eA=="}}',
    });
    await cluster.pass(seconds(1));
    assert.equal((await cluster.clusterOperator())['Degraded']?.status, 'False');
    const { spec } = await cluster.controllerConfig();
    assert.deepEqual(Object.keys(JSON.parse(utf8(spec?.internalRegistryPullSecret)).auths), ['quay.io', 'r:5000']);
    await pullWith([]);
    await cluster.kube.delete(CLUSTER_OPERATORS, { name: 'image-registry' });
    await cluster.pass(seconds(1));
  });

  test("the cluster's pull secret is none, or gone: told by name, the last good one stays, everything else goes on", async () => {
    const key = { namespace: CONFIG_NAMESPACE, name: 'pull-secret' };
    const good = utf8((await cluster.kube.get(SECRETS, key)).data?.['.dockerconfigjson']);
    const setGlobal = (text: string) =>
      cluster.setSecret(key.namespace, key.name, 'kubernetes.io/dockerconfigjson', { '.dockerconfigjson': text });
    const rendered = async () => (await cluster.pool('worker')).spec?.configuration?.name;
    const before = await rendered();
    // Of the right type it is JSON: the API sees to that.
    const asOpaque = () => cluster.setSecret(key.namespace, key.name, 'Opaque', { '.dockerconfigjson': '{ geheim' });
    await cluster.kube.delete(SECRETS, key);
    for (const spoil of [async () => {}, asOpaque]) {
      await spoil();
      await cluster.pass(minutes(1));
      const { Degraded } = await cluster.clusterOperator();
      assert.equal(Degraded?.status, 'True');
      assert.match(
        Degraded?.message ?? '',
        /secret openshift-config\/pull-secret(?:: expected secret type| not found)/,
      );
      assert.ok(!JSON.stringify([Degraded, cluster.events]).includes('geheim'));
      assert.equal(await rendered(), before, 'the last good one stays');
      const { status } = await cluster.controllerConfig();
      assert.equal(status?.conditions?.find(({ type }) => type === 'TemplateControllerCompleted')?.status, 'True');
    }
    await cluster.setConfigMap(CONFIG_NAMESPACE, 'user-ca-bundle', { 'ca-bundle.crt': await certificate('more') });
    await cluster.pass(minutes(1));
    assert.notEqual(await rendered(), before, 'other changes are rendered');
    await cluster.kube.delete(CONFIG_MAPS, { namespace: CONFIG_NAMESPACE, name: 'user-ca-bundle' });
    await cluster.kube.delete(SECRETS, key);
    await setGlobal(good);
    await cluster.pass(minutes(1));
    assert.equal(await rendered(), before);
    assert.equal((await cluster.clusterOperator())['Degraded']?.status, 'False');
  });

  test('nodes hear of a new server CA at once, and its flag stays up until the last one has it', async () => {
    const name = 'kubeconfig-data';
    const stored = async () =>
      utf8((await cluster.kube.get(CONFIG_MAPS, { namespace: MCO_NAMESPACE, name })).binaryData?.['ca-bundle.crt']);
    const rotate = async () => (await cluster.controllerConfig()).metadata?.annotations?.[SERVICE_CA_ROTATE];
    assert.equal(await stored(), await certificate('server-ca'));
    await cluster.addNode('away', { 'node-role.kubernetes.io/worker': '' }, 'rendered-worker-x');
    await cluster.addNode('awake', { 'node-role.kubernetes.io/worker': '' }, 'rendered-worker-x');
    await cluster.pass(seconds(10));
    assert.equal(await rotate(), 'false');
    const bundle = await certificate('new-server-ca');
    await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-server-ca', { 'ca-bundle.crt': bundle });
    await cluster.pass(seconds(5));
    assert.equal(await stored(), bundle);
    assert.equal(await rotate(), 'true');
    const digest = (await cluster.controllerConfig()).metadata?.annotations?.[SERVER_CA_DIGEST] ?? '';
    const acknowledge = (node: string, key: string, value: string) =>
      cluster.kube.patch(
        NODES,
        { name: node },
        { type: 'merge', body: { metadata: { annotations: { [key]: value } } } },
      );
    await acknowledge('awake', LAST_OBSERVED_SERVER_CA, 'true');
    await cluster.pass(minutes(30));
    assert.equal(await rotate(), 'true', 'a node is still away');
    await acknowledge('away', SERVER_CA_DIGEST, digest);
    await cluster.pass(seconds(1));
    assert.equal(await rotate(), 'false');
    for (const node of ['away', 'awake']) await cluster.kube.delete(NODES, { name: node });
  });
});

test('a server CA settles for a minute where time decides and nobody is asked (CC-7)', async () => {
  const cluster = await TestCluster.create(clock => startEngine({ clock }));
  try {
    cluster.startOperator(undefined, { handOver: 'clock' });
    const key = { namespace: MCO_NAMESPACE, name: 'kubeconfig-data' };
    const stored = async () =>
      utf8((await getIfPresent(cluster.kube, CONFIG_MAPS, key))?.binaryData?.['ca-bundle.crt']);
    const first = await certificate('server-ca');
    await cluster.until('the first one is there', async () => (await stored()) === first, minutes(1));
    for (const [name, settling] of [
      ['second', 30],
      ['third', 59],
    ] as const) {
      const bundle = await certificate(name);
      await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-server-ca', { 'ca-bundle.crt': bundle });
      await cluster.pass(seconds(settling));
      assert.equal(await stored(), first);
    }
    await cluster.pass(seconds(2));
    assert.equal(await stored(), await certificate('third'));
  } finally {
    await cluster.stop();
  }
});

test('a server CA that changes all the time does not keep nodes waiting', async () => {
  const cluster = await TestCluster.create(clock => startEngine({ clock }));
  try {
    cluster.startOperator();
    const key = { namespace: MCO_NAMESPACE, name: 'kubeconfig-data' };
    const stored = async () =>
      utf8((await getIfPresent(cluster.kube, CONFIG_MAPS, key))?.binaryData?.['ca-bundle.crt']);
    const publish = async (name: string) => {
      const bundle = await certificate(name);
      await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-server-ca', { 'ca-bundle.crt': bundle });
      await cluster.pass(seconds(2));
      return bundle;
    };
    const first = await certificate('server-ca');
    await cluster.until('the first one is there', async () => (await stored()) === first, minutes(1));
    const published = [await publish('second'), await publish('third'), await publish('fourth')];
    assert.equal(published.includes((await stored()) ?? ''), true, 'within five seconds of the first change');
  } finally {
    await cluster.stop();
  }
});

describe('the operator and others that write at the same time', () => {
  test('a conflict on ControllerConfig or a pool is tried again with what is there now (OP-8)', async () => {
    const cluster = await TestCluster.create(clock => startEngine({ clock }));
    try {
      const meddle = async (verb: string, [resource, object]: readonly unknown[]) => {
        if (verb !== 'update') return;
        const { kind, metadata } = object as KubeObject;
        const name = metadata?.name ?? '';
        if (wrote.has(name) || (kind !== 'ControllerConfig' && kind !== 'MachineConfigPool')) return;
        wrote.add(name);
        await cluster.kube.patch(
          resource as Resource,
          { name },
          { type: 'merge', body: { metadata: { labels: { theirs: '' } } } },
        );
      };
      const wrote = new Set<string>(['master', 'worker', 'machine-config-controller']);
      cluster.startOperator(cluster.watched(meddle));
      await cluster.pass(minutes(1));
      wrote.clear();
      await cluster.kube.patch(
        MACHINE_CONFIG_POOLS,
        { name: 'worker' },
        { type: 'merge', body: { spec: { nodeSelector: { matchLabels: { other: '' } } } } },
      );
      const bundle = await certificate('another-client-ca');
      await cluster.setConfigMap(CONFIG_MANAGED_NAMESPACE, 'kube-apiserver-client-ca', { 'ca-bundle.crt': bundle });
      await cluster.pass(seconds(1));
      assert.deepEqual(wrote, new Set(['machine-config-controller', 'worker']));
      const { metadata, spec } = await cluster.controllerConfig();
      assert.equal(utf8(spec?.kubeAPIServerServingCAData), bundle);
      assert.equal(metadata?.labels?.['theirs'], '');
      const pool = await cluster.pool('worker');
      assert.equal(pool.metadata?.labels?.['theirs'], '');
      assert.equal(pool.spec?.nodeSelector?.matchLabels?.['node-role.kubernetes.io/worker'], '');
      const reasons = cluster.events.map(({ reason }) => reason);
      assert.ok(!reasons.some(reason => reason.includes('MachineConfigPoolsFailed')), reasons.join());
    } finally {
      await cluster.stop();
    }
  });

  test('disruption policies that cannot be written are no failure of the pass (MP-4)', async () => {
    const cluster = await TestCluster.create(clock => startEngine({ clock }));
    try {
      const refuse = (verb: string, [resource]: readonly unknown[]) => {
        if (verb === 'updateStatus' && resource === MACHINE_CONFIGURATIONS)
          throw new KubeError(500, 'InternalError', 'not today');
      };
      cluster.startOperator(cluster.watched(refuse), { disruptionPolicies: true });
      cluster.startController();
      await cluster.pass(minutes(2));
      const { Degraded } = await cluster.clusterOperator();
      assert.equal(Degraded?.status, 'False', Degraded?.message);
    } finally {
      await cluster.stop();
    }
  });
});
