/** A pool of machines with systemd rolls to a new config: the real controllers, the real command, real reboots. */

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { Informer } from '../../../src/kube/informer.ts';
import { NODES, PODS } from '../../../src/kube/resource.ts';
import { fileConfig } from '../../../src/machine-config/testing.ts';
import { MACHINE_CONFIG_POOLS } from '../../../src/machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DAEMON_STATE, DESIRED_CONFIG } from '../../../src/machine-config-api/names.ts';
import { eventually } from '../../tools/eventually.ts';
import { nodeRoot, SystemdCluster } from './cluster.ts';

const NODE_COUNT = 10;
const MAX_UNAVAILABLE = 2;
const { root, missing } = await nodeRoot();

describe('a pool of ten machines', { skip: missing ?? false }, () => {
  let cluster: SystemdCluster;
  let nodes: Informer<Node>;

  before(async () => {
    cluster = await SystemdCluster.start(root);
    await cluster.setMaxUnavailable(MAX_UNAVAILABLE);
    nodes = new Informer<Node>(cluster.kube, NODES).start();
  });
  after(async () => {
    await nodes?.stop();
    await cluster?.close();
  });

  test('all boot and are Done', async t => {
    const began = performance.now();
    for (let index = 0; index < NODE_COUNT; index++) await cluster.addNode(`worker-${index}`);
    const first = await cluster.config(await cluster.wanted());
    await Promise.all(cluster.nodes.map(node => node.isDone(first)));
    t.diagnostic(`${NODE_COUNT} machines booted and Done after ${seconds(began)} s`);
  });

  test('they roll two at a time at every moment, each drained and rebooted once, and lose nothing', async t => {
    for (const { name } of cluster.nodes) {
      await cluster.kube.create(PODS, {
        metadata: { namespace: 'default', name: `load-${name}` },
        spec: { nodeName: name, terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] },
      });
    }
    const boots = await Promise.all(cluster.nodes.map(node => node.bootId()));
    const away: number[] = [];
    const stop = nodes.subscribe({ update: () => void away.push(nodes.list().filter(isAway).length) });
    const began = performance.now();
    const second = await cluster.change(fileConfig('99-change', 'worker', '/etc/change', 'changed'));
    await eventually('the pool is updated', async () => {
      const { status } = await cluster.kube.get(MACHINE_CONFIG_POOLS, { name: 'worker' });
      assert.equal(status?.degradedMachineCount ?? 0, 0);
      for (const { machine } of cluster.nodes) assert.equal(machine.ended, undefined);
      return status?.updatedMachineCount === NODE_COUNT && status.configuration?.name === second.metadata?.name;
    });
    t.diagnostic(
      `${NODE_COUNT} machines drained, rebooted and Done after ${seconds(began)} s, ${away.length} changes seen`,
    );
    stop();
    assert.equal(Math.max(...away), MAX_UNAVAILABLE);
    for (const [index, node] of cluster.nodes.entries()) {
      await node.isDone(second);
      assert.equal(await node.drift(second), undefined, node.name);
      assert.equal(node.read('/etc/change'), 'changed');
      assert.notEqual(await node.bootId(), boots[index]);
      assert.equal(node.machine.boots, 2, node.name);
      assert.equal(await node.property('kubelet.service', 'ActiveState'), 'active');
    }
    assert.deepEqual((await cluster.kube.list(PODS, { namespace: 'default' })).items, []);
    assert.deepEqual(
      nodes.list().filter(({ spec }) => spec?.unschedulable === true),
      [],
    );
  });
});

/** Whether a node is unavailable, or told to be. */
function isAway({ metadata, spec }: Node): boolean {
  const { [CURRENT_CONFIG]: current, [DESIRED_CONFIG]: desired, [DAEMON_STATE]: state } = metadata?.annotations ?? {};
  return current !== desired || state !== 'Done' || spec?.unschedulable === true;
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(1);
}
