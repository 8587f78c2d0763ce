import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { nspawnProblem } from '../../tools/nspawn.ts';
import { SystemdCluster } from './cluster.ts';
import type { SystemdNode } from './node.ts';

const problem = nspawnProblem();

describe('a node with systemd', { skip: problem ?? false }, () => {
  let cluster: SystemdCluster;
  let node: SystemdNode;

  before(async () => {
    const t0 = performance.now();
    cluster = await SystemdCluster.start();
    console.log('cluster', performance.now() - t0);
    node = await cluster.addNode('worker-0');
    console.log('machine', performance.now() - t0);
  });
  after(() => cluster?.close());

  test('a new machine comes up', async () => {
    const t0 = performance.now();
    await node.isDone(await cluster.config(await cluster.wanted()));
    console.log('done', performance.now() - t0, await node.annotations());
    console.log(await node.machine.output('systemctl', '--failed', '--no-legend'));
    console.log(await node.machine.output('systemd-analyze', 'time'));
    console.log(await node.log());
    console.log(node.read('/var/log/kubelet-life'), node.read('/var/log/crio-life'));
    assert.equal(await node.drift(await cluster.config(await cluster.wanted())), undefined);
  });
});
