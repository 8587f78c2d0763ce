import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { startEngine } from '../../../src/api/api.ts';
import { minutes } from '../../../src/kube/duration.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { NODES, PODS } from '../../../src/kube/resource.ts';
import { customPool, fileConfig, TestCluster } from '../../../src/machine-config/testing.ts';
import { MACHINE_CONFIG_POOLS, MACHINE_CONFIGS } from '../../../src/machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DAEMON_STATE, DESIRED_CONFIG } from '../../../src/machine-config-api/names.ts';
import { machine, Scene } from './scene.ts';

const NODE_COUNT = 10;
const MAX_UNAVAILABLE = 2;

test('ten nodes of a pool roll to a new config, two at a time, drained and rebooted once each', async () => {
  const cluster = await TestCluster.create(clock => startEngine({ clock }));
  cluster.startOperator();
  const scene = Scene.on(cluster);
  const nodes = new Informer<Node>(cluster.kube, NODES, { clock: cluster.clock }).start();
  try {
    await cluster.kube.create(MACHINE_CONFIG_POOLS, customPool('infra', MAX_UNAVAILABLE));
    const wanted = async () => (await cluster.pool('infra')).spec?.configuration?.name ?? '';
    await scene.until('the pool is rendered', async () => (await wanted()) !== '');
    const first = await wanted();
    const rendered = await cluster.kube.get(MACHINE_CONFIGS, { name: first });
    const names = Array.from({ length: NODE_COUNT }, (_, index) => `infra-${index}`);
    const hosts = await Promise.all(names.map(() => machine()));
    for (const [index, name] of names.entries()) {
      const labels = { 'node-role.kubernetes.io/worker': '', 'node-role.kubernetes.io/infra': '' };
      await scene.install(hosts[index] as (typeof hosts)[number], rendered);
      (hosts[index] as (typeof hosts)[number]).asked.length = 0;
      await cluster.addNode(name, labels, first);
      await cluster.kube.create(PODS, {
        metadata: { namespace: 'default', name: `load-${index}` },
        spec: { nodeName: name, terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] },
      });
      scene.run(name, hosts[index] as (typeof hosts)[number]);
    }
    for (const name of names) await scene.isDone(name, first);
    let most = 0;
    const unsubscribe = nodes.subscribe({
      update() {
        const away = nodes.list().filter(isAway).length;
        most = Math.max(most, away);
      },
    });
    await cluster.kube.create(MACHINE_CONFIGS, fileConfig('99-infra-change', 'infra', '/etc/change', 'changed'));
    await scene.until('there is another config', async () => (await wanted()) !== first);
    const second = await wanted();
    for (const name of names) await scene.isDone(name, second);
    await scene.until(
      'the pool says so',
      async () => {
        const { status } = await cluster.pool('infra');
        return status?.updatedMachineCount === NODE_COUNT && status.degradedMachineCount === 0;
      },
      minutes(5),
    );
    unsubscribe();
    assert.equal(most, MAX_UNAVAILABLE);
    for (const { asked, files } of hosts) {
      assert.deepEqual(asked, [`reboot: Node will reboot into config ${second}`]);
      assert.equal((await files.read('/etc/change'))?.toString(), 'changed');
    }
    assert.deepEqual((await cluster.kube.list(PODS, { namespace: 'default' })).items, []);
    assert.deepEqual(
      nodes.list().filter(({ spec }) => spec?.unschedulable === true),
      [],
    );
  } finally {
    await nodes.stop();
    await scene.close();
  }
});

function isAway({ metadata, spec }: Node): boolean {
  const { [CURRENT_CONFIG]: current, [DESIRED_CONFIG]: desired, [DAEMON_STATE]: state } = metadata?.annotations ?? {};
  return current !== desired || state !== 'Done' || spec?.unschedulable === true;
}
