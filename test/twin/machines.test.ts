import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { hours, minutes } from '../../src/kube/duration.ts';
import {
  MACHINE_CONFIG_POOLS,
  MACHINE_CONFIGS,
  type MachineConfigPool,
} from '../../src/machine-config-api/machine-config.ts';
import { Cluster, START } from '../../src/twin/cluster.ts';
import { brokenInPools } from '../../src/twin/machine-invariants.ts';

/** A cluster whose nodes have the configs of their pools, and what has been told since. */
async function up(t: TestContext) {
  const told: string[] = [];
  const broken = new Set<string>();
  const cluster = new Cluster({ seed: 'machines', updatesNodes: true, tell: (_at, what) => void told.push(what) });
  t.after(() => cluster.end());
  const goOn = (milliseconds: number) =>
    cluster.goOn(new Date(cluster.time.nowMs + milliseconds), ({ refusals }) => {
      for (const what of brokenInPools(cluster, () => false)) broken.add(what);
      for (const { refuser, refused, reason } of refusals) broken.add(`${refuser} refuses ${refused}: ${reason}`);
    });
  await cluster.begin();
  await cluster.goOn(new Date(START.getTime() + minutes(10)));
  told.length = 0;
  const pool = (name: string) => cluster.api.stored<MachineConfigPool>(MACHINE_CONFIG_POOLS, { name })?.status ?? {};
  const write = (role: string, path: string) =>
    cluster.api.create('somebody', MACHINE_CONFIGS, {
      metadata: { name: `99-${role}-file`, labels: { 'machineconfiguration.openshift.io/role': role } },
      spec: {
        config: {
          ignition: { version: '3.4.0' },
          storage: { files: [{ path, mode: 0o644, overwrite: true, contents: { source: 'data:,hello' } }] },
        },
      },
    });
  return { cluster, told, broken, goOn, pool, write };
}

test('nodes become what their pools say a machine is', async t => {
  const { pool } = await up(t);
  assert.deepEqual([pool('master').updatedMachineCount, pool('master').degradedMachineCount], [3, 0]);
  assert.deepEqual([pool('worker').updatedMachineCount, pool('worker').degradedMachineCount], [2, 0]);
});

test('a file comes to all nodes, one of each pool at a time, by drain and reboot; etcd keeps its majority', async t => {
  const { cluster, told, broken, goOn, pool, write } = await up(t);
  for (const role of ['master', 'worker']) write(role, '/etc/hello');
  await goOn(hours(2));
  for (const node of cluster.nodes) assert.equal(node.disk.text('/etc/hello'), 'hello', node.name);
  assert.equal(pool('master').updatedMachineCount, 3);
  assert.equal(pool('worker').updatedMachineCount, 2);
  assert.deepEqual([...broken], []);
  const reboots = told.filter(what => / reboots: /.test(what)).map(what => what.split(' ')[0]);
  assert.deepEqual(
    reboots.toSorted((a = '', b = '') => (a < b ? -1 : 1)),
    ['master-0', 'master-1', 'master-2', 'worker-0', 'worker-1'],
  );
  assert.equal(cluster.etcd.isLost, false);
  for (const { name, isControlPlane, pods } of cluster.nodes)
    if (isControlPlane) assert.equal(pods.get('etcd')?.isReady, true, name);
});
