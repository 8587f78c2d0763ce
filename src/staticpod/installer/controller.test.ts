import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RetryRequest } from '../../controller/reconcile.ts';
import { KubeError } from '../../kube/error.ts';
import { MemoryKube } from '../../kube/memory.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES, PODS, SECRETS } from '../../kube/resource.ts';
import type { StoredNodeStatus } from '../node-status.ts';
import {
  at,
  CONFIG,
  configMap,
  intercepted,
  NAMESPACE,
  operandPod,
  secret,
  storedNode,
  TestCluster,
} from '../testing.ts';
import { installerReconcile } from './controller.ts';

const THREE = ['m0', 'm1', 'm2'];
const at3 = (name: string, entry: Omit<StoredNodeStatus, 'nodeName'> = {}) =>
  storedNode(name, { currentRevision: 3, ...entry });

async function clusterWith(nodeStatuses: StoredNodeStatus[], kube: Kube = new MemoryKube()): Promise<TestCluster> {
  const cluster = new TestCluster({ kube });
  await cluster.setOperator({ latestAvailableRevision: 4, nodeStatuses });
  await cluster.put(configMap('revision-status-4'), configMap('test-pod-4'), secret('test-secret-4'));
  for (const { nodeName } of nodeStatuses) await cluster.put(operandPod(nodeName, 3, true));
  return cluster;
}

async function setOperand(cluster: TestCluster, name: string, revision: number, ready: boolean): Promise<void> {
  await cluster.kube.update(PODS, operandPod(name, revision, ready));
}

const run = (cluster: TestCluster, config = CONFIG) => cluster.run(installerReconcile({ ...cluster.parts, config }));
const nodesOf = async (cluster: TestCluster) => (await cluster.status()).nodeStatuses ?? [];
const conditionOf = async (cluster: TestCluster, type = 'InstallerControllerDegraded') =>
  (await cluster.status()).conditions?.find(condition => condition.type === type);

describe('a pass of the installer controller (spec 30, 9.1 and 9.3)', () => {
  test('says where a node is to go, and only then, in another pass, sends an installer', async () => {
    const cluster = await clusterWith(THREE.map(name => at3(name)));
    await run(cluster);
    assert.deepEqual(
      (await nodesOf(cluster)).map(({ targetRevision }) => targetRevision),
      [4, undefined, undefined],
    );
    assert.deepEqual(
      cluster.events.map(({ message }) => message),
      ['Updating node "m0" from revision 3 to 4 because node m0 with revision 3 is the oldest'],
    );
    assert.ok(!(await cluster.has(PODS, 'installer-4-m0')));
    await run(cluster);
    assert.ok(await cluster.has(PODS, 'installer-4-m0'));
  });

  test('changes nothing, and tells nothing, when it has nothing to do', async () => {
    const cluster = await clusterWith(THREE.map(name => storedNode(name, { currentRevision: 4 })));
    for (const name of THREE) await setOperand(cluster, name, 4, true);
    await run(cluster);
    const { metadata } = await cluster.operator.readLive();
    await run(cluster);
    assert.equal((await cluster.operator.readLive()).metadata?.resourceVersion, metadata?.resourceVersion);
    assert.deepEqual(cluster.events, []);
  });

  test('takes back a target that leads nowhere (T26)', async () => {
    const cluster = await clusterWith([at3('m0', { currentRevision: 5, targetRevision: 4 }), at3('m1')]);
    await run(cluster);
    assert.deepEqual((await nodesOf(cluster))[0], { nodeName: 'm0', currentRevision: 5 });
    await setOperand(cluster, 'm0', 5, true);
    await run(cluster);
    assert.equal((await nodesOf(cluster))[1]?.targetRevision, 4);
  });

  test('waits before another attempt, and clears its own failure while it does (T27)', async () => {
    const failure = { lastFailedRevision: 4, lastFailedCount: 1, lastFailedReason: 'InstallerFailed' } as const;
    const cluster = await clusterWith([
      at3('m0', { targetRevision: 4, ...failure, lastFailedTime: '2026-01-01T00:00:00Z' }),
    ]);
    await cluster.operator.setConditions([{ type: 'InstallerControllerDegraded', status: 'True', reason: 'Error' }]);
    const result = await run(cluster);
    assert.equal(result?.againAt?.getTime(), at(15).getTime() + 1);
    assert.equal((await conditionOf(cluster))?.status, 'False');
    assert.ok(!(await cluster.has(PODS, 'installer-4-retry-1-m0')));
    await cluster.clock.advanceTo(new Date(at(15).getTime() + 1));
    await run(cluster);
    assert.ok(await cluster.has(PODS, 'installer-4-retry-1-m0'));
  });

  test('a target that nothing was done about is called off for a node that went down', async () => {
    const cluster = await clusterWith([at3('m0', { targetRevision: 4 }), at3('m1')]);
    await setOperand(cluster, 'm1', 3, false);
    await run(cluster);
    assert.equal((await nodesOf(cluster))[0]?.targetRevision, undefined);
    await run(cluster);
    assert.deepEqual(
      (await nodesOf(cluster)).map(({ targetRevision }) => targetRevision),
      [undefined, 4],
    );
  });

  test('a node that failed at a newer revision lets one that is down go first', async () => {
    const cluster = await clusterWith([at3('m0', { lastFailedRevision: 4 }), at3('m1'), at3('m2')]);
    await setOperand(cluster, 'm2', 3, false);
    await run(cluster);
    assert.equal((await nodesOf(cluster))[2]?.targetRevision, 4);
  });

  test('says once why it does not go on', async () => {
    const cluster = await clusterWith([storedNode('m0', { currentRevision: 4 }), at3('m1')]);
    await setOperand(cluster, 'm0', 4, false);
    const reconcile = installerReconcile(cluster.parts);
    await cluster.run(reconcile);
    await cluster.run(reconcile);
    assert.deepEqual(
      cluster.events.map(({ reason, message }) => `${reason}: ${message}`),
      ['NodeRolloutPaused: Not replacing the operand on node "m1" because the one on node "m0" is not ready'],
    );
    assert.equal((await nodesOf(cluster))[1]?.targetRevision, undefined);
  });

  test('names what is missing before anything else', async () => {
    const cluster = await clusterWith([at3('m0')]);
    await cluster.kube.delete(SECRETS, { namespace: NAMESPACE, name: 'test-secret-4' });
    await assert.rejects(run(cluster), /^MissingResources: missing required resources: secrets: test-secret-4$/);
    const { status, reason } = (await conditionOf(cluster)) ?? {};
    assert.deepEqual([status, reason], ['True', 'Error']);
    assert.equal(cluster.events[0]?.reason, 'RequiredInstallerResourcesMissing');
    assert.equal((await nodesOf(cluster))[0]?.targetRevision, undefined);
    // What follows from the entries is told all the same.
    assert.equal((await conditionOf(cluster, 'NodeInstallerProgressing'))?.status, 'True');
  });

  test('a cache that is behind is no reason to complain', async () => {
    const cluster = await clusterWith([at3('m0')]);
    const cached = { ...cluster.cached, get: async () => undefined };
    await cluster.run(installerReconcile({ ...cluster.parts, cached }));
    assert.equal((await nodesOf(cluster))[0]?.targetRevision, 4);
  });

  test('a read that fails ends the pass before a target is set (T04)', async () => {
    const memory = new MemoryKube();
    let isDown = false;
    const kube = intercepted(memory, (verb, resource, name) => {
      if (isDown && verb === 'get' && resource === PODS && name === 'test-m1')
        throw new KubeError(500, 'InternalError', 'no quorum');
    });
    const cluster = await clusterWith([at3('m0'), at3('m1')], kube);
    isDown = true;
    await assert.rejects(run(cluster), /no quorum/);
    assert.equal((await nodesOf(cluster))[0]?.targetRevision, undefined);
    assert.equal((await conditionOf(cluster))?.message, 'no quorum');
  });

  test('an entry that somebody else moved meanwhile is left to them', async () => {
    const memory = new MemoryKube();
    let other: TestCluster | undefined;
    const kube = intercepted(memory, async (verb, resource) => {
      if (verb !== 'get' || resource !== PODS || other === undefined) return;
      const monitor = other;
      other = undefined;
      await monitor.operator.update(status => ({
        ...status,
        nodeStatuses: [storedNode('m0', { currentRevision: 4 })],
      }));
    });
    const cluster = await clusterWith([at3('m0')], kube);
    other = new TestCluster({ kube: memory });
    const stale = await cluster.operator.readLive();
    const reconcile = installerReconcile({
      ...cluster.parts,
      operator: Object.assign(cluster.operator, { read: async () => stale }),
    });
    await assert.rejects(cluster.run(reconcile), RetryRequest);
    assert.deepEqual(await nodesOf(cluster), [{ nodeName: 'm0', currentRevision: 4 }]);
  });

  test('an entry of a node that was replaced stops everything until it is put right', async () => {
    const cluster = await clusterWith([at3('m0', { nodeUID: 'old' }), at3('m1')]);
    await cluster.kube.create(NODES, { metadata: { name: 'm0' } });
    await run(cluster);
    assert.deepEqual(
      (await nodesOf(cluster)).map(({ targetRevision }) => targetRevision),
      [undefined, undefined],
    );
  });

  test('a revision without its status object cannot be installed, and says so', async () => {
    const cluster = await clusterWith([at3('m0', { targetRevision: 5 })]);
    await assert.rejects(
      run(cluster),
      /unable to set installer pod ownerrefs: configmaps "revision-status-5" not found/,
    );
    assert.match(
      cluster.events[0]?.message ?? '',
      /^Failed to create installer pod for revision 5 count 0 on node "m0": unable/,
    );
  });

  test('an installer that somebody removes at once is told of and made again', async () => {
    const memory = new MemoryKube();
    let isHostile = true;
    const kube = intercepted(memory, async (verb, resource, name) => {
      if (verb !== 'get' || resource !== PODS || name !== 'installer-4-m0' || !isHostile) return;
      await memory.delete(PODS, { namespace: NAMESPACE, name }).catch(() => {});
    });
    const cluster = await clusterWith([at3('m0', { targetRevision: 4 })], kube);
    await run(cluster);
    const told = cluster.events.filter(({ reason }) => reason === 'InstallerPodDisappeared');
    assert.deepEqual(
      told.map(({ message }) => message),
      ['pods "installer-4-m0" not found'],
    );
    assert.equal((await conditionOf(cluster))?.status, 'False');
    isHostile = false;
    await run(cluster);
    assert.ok(await cluster.has(PODS, 'installer-4-m0'));
  });

  test('an operator may change the finished pod', async () => {
    const cluster = await clusterWith([at3('m0', { targetRevision: 4 })]);
    const mutatePod = (pod: object, nodeName: string, _spec: object, revision: number) => ({
      ...pod,
      metadata: { ...(pod as { metadata: object }).metadata, annotations: { changed: `${nodeName} ${revision}` } },
    });
    await run(cluster, { ...CONFIG, installer: { ...CONFIG.installer, mutatePod } });
    const { metadata } = await cluster.kube.get(PODS, { namespace: NAMESPACE, name: 'installer-4-m0' });
    assert.deepEqual(metadata?.annotations, { changed: 'm0 4' });
  });
});
