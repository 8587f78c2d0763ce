import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { seconds } from '../../kube/duration.ts';
import { CONFIG_MAPS, PODS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { CONFIG, configMap, NAMESPACE, NOW, storedNode, TestCluster } from '../testing.ts';
import { pruneReconcile } from './controller.ts';

const LIMITS = { failedRevisionLimit: 1, succeededRevisionLimit: 1 };

async function clusterWith(spec: object = LIMITS): Promise<TestCluster> {
  const cluster = new TestCluster();
  const nodeStatuses = [storedNode('m0', { currentRevision: 3 }), storedNode('m1', { currentRevision: 5 })];
  await cluster.setOperator({ latestAvailableRevision: 5, nodeStatuses }, spec);
  for (let revision = 1; revision <= 6; revision++) {
    await cluster.put(configMap(`revision-status-${revision}`, { revision: String(revision) }));
  }
  return cluster;
}

const run = (cluster: TestCluster) => cluster.run(pruneReconcile({ ...cluster.parts, config: CONFIG }));
const left = async (cluster: TestCluster) =>
  (await cluster.cached.list(CONFIG_MAPS, { namespace: NAMESPACE })).map(({ metadata }) =>
    metadata?.name?.split('-').at(-1),
  );
const pruner = (cluster: TestCluster, name = 'm0') =>
  cluster.kube.get(PODS, { namespace: NAMESPACE, name: `revision-pruner-5-${name}` });

async function end(cluster: TestCluster, phase: string): Promise<void> {
  const pod = await pruner(cluster);
  const metadata = { ...pod.metadata, creationTimestamp: formatRfc3339(NOW) };
  await cluster.kube.update(PODS, { ...pod, metadata, status: { phase } });
}

describe('pruning', () => {
  test('sends a pruner to every node and removes what is surplus, not what is newer', async () => {
    const cluster = await clusterWith();
    await run(cluster);
    assert.deepEqual(await left(cluster), ['3', '5', '6']);
    const { metadata, spec } = await pruner(cluster);
    assert.deepEqual(metadata?.labels, { app: 'pruner' });
    assert.equal(metadata?.ownerReferences?.[0]?.name, 'revision-status-5');
    assert.ok(spec?.containers[0]?.args?.includes('--protected-revisions=3,5'));
    assert.ok(await cluster.has(PODS, 'revision-pruner-5-m1'));
  });

  test('keeps its hands off while the operator is not managed (T25)', async () => {
    const cluster = await clusterWith({ ...LIMITS, managementState: 'Unmanaged' });
    await run(cluster);
    assert.equal((await left(cluster)).length, 6);
  });

  test('a finished pruner is sent again when there is something else to keep (T25)', async () => {
    const cluster = await clusterWith();
    await run(cluster);
    const { uid } = (await pruner(cluster)).metadata ?? {};
    await cluster.operator.update(status => ({
      ...status,
      nodeStatuses: [storedNode('m0', { currentRevision: 5 }), storedNode('m1', { currentRevision: 5 })],
    }));
    await run(cluster);
    assert.equal((await pruner(cluster)).metadata?.uid, uid, 'not while it runs');
    await end(cluster, 'Succeeded');
    await run(cluster);
    const { metadata, spec } = await pruner(cluster);
    assert.notEqual(metadata?.uid, uid);
    assert.ok(spec?.containers[0]?.args?.includes('--protected-revisions=5'));
  });

  test('a pruner that failed is tried again after a while', async () => {
    const cluster = await clusterWith();
    await run(cluster);
    const { uid } = (await pruner(cluster)).metadata ?? {};
    await end(cluster, 'Failed');
    const result = await run(cluster);
    assert.deepEqual(result?.againAt, new Date(NOW.getTime() + seconds(30)));
    assert.equal((await pruner(cluster)).metadata?.uid, uid);
    await cluster.clock.advance(seconds(30));
    await run(cluster);
    assert.notEqual((await pruner(cluster)).metadata?.uid, uid);
  });

  test('a status object without a number is reported, and holds up nothing else', async () => {
    const cluster = await clusterWith();
    await cluster.put(configMap('revision-status-x', { revision: 'x' }), configMap('revision-status-y', {}));
    await assert.rejects(run(cluster), /revision-status-x, found "x"\n.*revision-status-y, found nothing/);
    assert.ok(!(await cluster.has(CONFIG_MAPS, 'revision-status-1')));
    assert.ok(await cluster.has(PODS, 'revision-pruner-5-m0'));
  });
});
