import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { NODES } from '../kube/resource.ts';
import { decideNodes, nodeReconcile, nodesReady } from './nodes.ts';
import { storedNode, TestCluster } from './testing.ts';

function machine(name: string, uid = '', ready?: { status: string; reason?: string; message?: string }): Node {
  const labels = { 'node-role.kubernetes.io/master': '' };
  const conditions = ready && [{ type: 'Ready', lastTransitionTime: '2018-01-12T22:51:48Z', ...ready }];
  return {
    kind: 'Node',
    metadata: { name, labels, ...(uid === '' ? {} : { uid }) },
    ...(conditions === undefined ? {} : { status: { conditions } }),
  };
}

describe('one entry for each control-plane node (spec 30, section 12)', () => {
  test('those that stay keep everything, and their places', () => {
    const entries = [
      storedNode('b', { currentRevision: 4, targetRevision: 5 }),
      storedNode('a', { currentRevision: 4 }),
    ];
    const { nodeStatuses, added, removed } = decideNodes(entries, [machine('a'), machine('b')]);
    assert.deepEqual([nodeStatuses, added, removed], [entries, [], []]);
  });

  test('new ones are appended with their uid, vanished ones go', () => {
    const { nodeStatuses, added, removed } = decideNodes(
      [storedNode('gone'), storedNode('a')],
      [machine('a'), machine('z', 'u1'), machine('b')],
    );
    assert.deepEqual(nodeStatuses, [
      { nodeName: 'a', currentRevision: 0 },
      { nodeName: 'z', nodeUID: 'u1', currentRevision: 0 },
      { nodeName: 'b', currentRevision: 0 },
    ]);
    assert.deepEqual([added, removed], [['z', 'b'], ['gone']]);
  });

  test('a node that was made anew starts from nothing', () => {
    const entries = [storedNode('a', { nodeUID: 'u1', currentRevision: 7 }), storedNode('b')];
    const { nodeStatuses, added, removed } = decideNodes(entries, [machine('a', 'u2'), machine('b')]);
    assert.deepEqual(nodeStatuses, [storedNode('b'), { nodeName: 'a', nodeUID: 'u2', currentRevision: 0 }]);
    assert.deepEqual([added, removed], [['a'], ['a']]);
  });

  test('an entry of upstream, which has no uid, is taken as it is', () => {
    const entries = [storedNode('a', { currentRevision: 7 })];
    assert.deepEqual(decideNodes(entries, [machine('a', 'u2')]).nodeStatuses, entries);
  });
});

describe('whether the nodes are ready', () => {
  test('all are', () => {
    const { status, reason, message } = nodesReady([machine('a', '', { status: 'True' })]);
    assert.deepEqual([status, reason, message], ['False', 'MasterNodesReady', 'All master nodes are ready']);
  });

  test('two are not', () => {
    const nodes = [
      machine('a', '', { status: 'Unknown', reason: 'NodeStatusUnknown', message: 'silent' }),
      machine('b'),
    ];
    const { status, message } = nodesReady(nodes);
    assert.equal(status, 'True');
    assert.equal(
      message,
      'The master nodes not ready: node "a" not ready since 2018-01-12 22:51:48 +0000 UTC because NodeStatusUnknown (silent), node "b" not ready, no Ready condition found in status block',
    );
  });
});

describe('a pass of the node controller', () => {
  test('tells who came and went and, once, that the readiness changed (T06)', async () => {
    const cluster = new TestCluster();
    await cluster.setOperator({ nodeStatuses: [storedNode('gone', { currentRevision: 3 })] });
    await cluster.put(machine('a', '', { status: 'True' }));
    const reconcile = nodeReconcile(cluster.parts);
    await cluster.run(reconcile);
    await cluster.run(reconcile);
    assert.deepEqual(
      cluster.events.map(({ type, reason, message }) => `${type} ${reason}: ${message}`),
      [
        'Warning MasterNodeRemoved: Observed removal of master node gone',
        'Normal MasterNodeObserved: Observed new master node a',
        'Normal MasterNodesReadyChanged: All master nodes are ready',
      ],
    );
  });

  test('the last node can go too (T07)', async () => {
    const cluster = new TestCluster();
    await cluster.setOperator({ nodeStatuses: [storedNode('gone')] });
    await cluster.run(nodeReconcile(cluster.parts));
    assert.deepEqual((await cluster.status()).nodeStatuses, []);
  });

  test('workers are not its business', async () => {
    const cluster = new TestCluster();
    await cluster.setOperator({});
    await cluster.kube.create(NODES, { metadata: { name: 'w', labels: { 'node-role.kubernetes.io/master': 'true' } } });
    await cluster.run(nodeReconcile(cluster.parts));
    assert.deepEqual((await cluster.status()).nodeStatuses, []);
  });
});
