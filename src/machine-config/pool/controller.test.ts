import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { minutes } from '../../kube/duration.ts';
import { NODES } from '../../kube/resource.ts';
import { SCHEDULERS } from '../../machine-config-api/cluster-config.ts';
import { MACHINE_CONFIG_POOLS, MACHINE_CONFIGS } from '../../machine-config-api/machine-config.ts';
import {
  CONTROL_PLANE_TOPOLOGY,
  CURRENT_CONFIG,
  DAEMON_REASON,
  DAEMON_STATE,
  DESIRED_CONFIG,
} from '../../machine-config-api/names.ts';
import { customPool, fileConfig, TestCluster } from '../testing.ts';

const WORKER = { 'node-role.kubernetes.io/worker': '' };

describe('pools on the API', () => {
  let cluster: TestCluster;
  const settle = () => cluster.pass(minutes(1));
  const node = (name: string) => cluster.kube.get(NODES, { name });
  const annotations = async (name: string) => (await node(name)).metadata?.annotations ?? {};
  const condition = async (pool: string, type: string) =>
    (await cluster.pool(pool)).status?.conditions?.find(found => found.type === type);
  const target = async (pool: string) => (await cluster.pool(pool)).spec?.configuration?.name ?? '';
  const annotate = (name: string, values: Record<string, string>) =>
    cluster.kube.patch(NODES, { name }, { type: 'merge', body: { metadata: { annotations: values } } });
  const setPool = (name: string, spec: object) =>
    cluster.kube.patch(MACHINE_CONFIG_POOLS, { name }, { type: 'merge', body: { spec } });
  /** What its agent does when all goes well. */
  const finish = async (name: string) => {
    const desired = (await annotations(name))[DESIRED_CONFIG] ?? '';
    await annotate(name, { [CURRENT_CONFIG]: desired, [DAEMON_STATE]: 'Done' });
  };

  before(async () => {
    cluster = await TestCluster.create(clock => startEngine({ clock }));
    cluster.startOperator();
    cluster.startController();
    await settle();
    for (const name of ['w0', 'w1', 'w2']) await cluster.addNode(name, WORKER, await target('worker'));
    await settle();
  });
  after(() => cluster.stop());

  test('a pool whose nodes all run its config says so', async () => {
    const { status, spec } = await cluster.pool('worker');
    assert.equal(status?.machineCount, 3);
    assert.equal(status?.updatedMachineCount, 3);
    assert.equal(status?.configuration?.name, spec?.configuration?.name);
    assert.deepEqual(
      status?.certExpirys?.map(({ bundle, subject }) => [bundle, subject]),
      [['KubeAPIServerServingCAData', 'CN=client-ca']],
    );
    assert.equal((await condition('worker', 'Updated'))?.status, 'True');
    assert.equal((await annotations('w0'))[CONTROL_PLANE_TOPOLOGY], 'HighlyAvailable');
  });

  test('nodes get a new config one after the other, and wait with a taint', async () => {
    await cluster.kube.create(MACHINE_CONFIGS, fileConfig('99-worker-a', 'worker', '/etc/a', 'a'));
    await settle();
    const config = await target('worker');
    const taints = async (name: string) => (await node(name)).spec?.taints?.map(({ key }) => key) ?? [];
    assert.equal((await annotations('w0'))[DESIRED_CONFIG], config);
    assert.notEqual((await annotations('w1'))[DESIRED_CONFIG], config);
    assert.deepEqual(await taints('w0'), []);
    assert.deepEqual(await taints('w1'), ['UpdateInProgress']);
    assert.match((await condition('worker', 'Updating'))?.message ?? '', new RegExp(config));
    await annotate('w0', { [DAEMON_STATE]: 'Working' });
    await settle();
    assert.notEqual((await annotations('w1'))[DESIRED_CONFIG], config, 'one at a time');
    for (const name of ['w0', 'w1', 'w2']) {
      await finish(name);
      await settle();
    }
    assert.equal((await condition('worker', 'Updated'))?.status, 'True');
    assert.deepEqual(await taints('w2'), []);
    assert.ok(
      cluster.events.some(
        ({ reason, message }) => reason === 'SetDesiredConfig' && message.startsWith('Targeted node w1'),
      ),
    );
  });

  test('a paused pool targets nobody', async () => {
    await setPool('worker', { paused: true });
    const before = (await annotations('w0'))[DESIRED_CONFIG];
    await cluster.kube.create(MACHINE_CONFIGS, fileConfig('99-worker-b', 'worker', '/etc/b', 'b'));
    await settle();
    assert.notEqual(await target('worker'), before);
    assert.equal((await annotations('w0'))[DESIRED_CONFIG], before);
    assert.match((await condition('worker', 'Updating'))?.message ?? '', /^Pool is paused/);
    await setPool('worker', { paused: false });
    await settle();
    assert.equal((await annotations('w0'))[DESIRED_CONFIG], await target('worker'));
    await finish('w0');
  });

  test('a node that fails degrades the pool and takes up room; another config gets it out again', async () => {
    await settle();
    assert.equal((await annotations('w1'))[DESIRED_CONFIG], await target('worker'));
    await annotate('w1', { [DAEMON_STATE]: 'Degraded', [DAEMON_REASON]: 'disk "x" is full' });
    await settle();
    const degraded = await condition('worker', 'NodeDegraded');
    assert.equal(degraded?.message, 'Node w1 is reporting: "disk \\"x\\" is full"');
    assert.equal((await condition('worker', 'Degraded'))?.status, 'True');
    assert.notEqual((await annotations('w2'))[DESIRED_CONFIG], await target('worker'), 'the failing one counts');
    await cluster.kube.delete(MACHINE_CONFIGS, { name: '99-worker-b' });
    await settle();
    const repaired = await Promise.all(
      ['w0', 'w1', 'w2'].map(async name => (await annotations(name))[DESIRED_CONFIG] === (await target('worker'))),
    );
    assert.ok(repaired.includes(true));
    for (const name of ['w0', 'w1', 'w2', 'w0', 'w1']) {
      await finish(name);
      await settle();
    }
    assert.equal((await condition('worker', 'Updated'))?.status, 'True');
  });

  test('a limit that means nothing is told by field and stops the rollout only', async () => {
    await setPool('worker', { maxUnavailable: '40 %' });
    await settle();
    assert.match((await condition('worker', 'NodeDegraded'))?.message ?? '', /pool worker: spec\.maxUnavailable/);
    await setPool('worker', { maxUnavailable: 1 });
    await settle();
    assert.equal((await condition('worker', 'NodeDegraded'))?.status, 'False');
  });

  test('a node of two custom pools is in neither, and both say so', async () => {
    for (const name of ['x', 'y']) await cluster.kube.create(MACHINE_CONFIG_POOLS, customPool(name));
    await cluster.addNode('both', { ...WORKER, 'node-role.kubernetes.io/x': '', 'node-role.kubernetes.io/y': '' });
    await settle();
    for (const name of ['x', 'y']) {
      assert.equal((await cluster.pool(name)).status?.machineCount, 0);
      assert.match(
        (await condition(name, 'NodeDegraded'))?.message ?? '',
        /node both is selected by spec\.nodeSelector of several custom pools: worker, x, y|x, y/,
      );
    }
    assert.equal((await cluster.pool('worker')).status?.machineCount, 3);
    await cluster.kube.patch(
      NODES,
      { name: 'both' },
      { type: 'merge', body: { metadata: { labels: { 'node-role.kubernetes.io/y': null } } } },
    );
    await settle();
    assert.equal((await cluster.pool('x')).status?.machineCount, 1);
    assert.equal((await condition('y', 'NodeDegraded'))?.status, 'False');
    await cluster.kube.delete(NODES, { name: 'both' });
  });

  test('control-plane nodes are labelled and tainted by what the scheduler says', async () => {
    await cluster.addNode('m0', { 'node-role.kubernetes.io/master': '', ...WORKER }, await target('master'));
    await cluster.kube.create(SCHEDULERS, { metadata: { name: 'cluster' }, spec: { mastersSchedulable: false } });
    await settle();
    const closed = await node('m0');
    assert.deepEqual(Object.keys(closed.metadata?.labels ?? {}).sort(), [
      'node-role.kubernetes.io/control-plane',
      'node-role.kubernetes.io/master',
    ]);
    assert.deepEqual(
      closed.spec?.taints?.map(({ key, effect }) => `${key}:${effect}`),
      ['node-role.kubernetes.io/master:NoSchedule'],
    );
    await cluster.kube.patch(
      SCHEDULERS,
      { name: 'cluster' },
      { type: 'merge', body: { spec: { mastersSchedulable: true } } },
    );
    await settle();
    const open = await node('m0');
    assert.deepEqual(open.spec?.taints ?? [], []);
    assert.equal(open.metadata?.labels?.['node-role.kubernetes.io/worker'], '');
  });

  test('control-plane nodes follow the scheduler also while their pool is paused (ND-7)', async () => {
    await setPool('master', { paused: true });
    await cluster.kube.patch(
      SCHEDULERS,
      { name: 'cluster' },
      { type: 'merge', body: { spec: { mastersSchedulable: false } } },
    );
    await settle();
    const { metadata, spec } = await node('m0');
    assert.equal(metadata?.labels?.['node-role.kubernetes.io/worker'], undefined);
    assert.deepEqual(
      spec?.taints?.map(({ key }) => key),
      ['node-role.kubernetes.io/master'],
    );
    await setPool('master', { paused: false });
  });
});
