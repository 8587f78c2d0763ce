import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { recordingEvents } from '../../kube/events.ts';
import { DEPLOYMENTS, NAMESPACES, POD_DISRUPTION_BUDGETS, REPLICA_SETS } from '../../kube/resource.ts';
import type { OlderPod } from './older-pods.ts';
import { restartOwners } from './restart-owners.ts';

const older = (set: string): OlderPod => ({
  namespace: 'shop',
  name: `${set}-1`,
  node: 'worker-0',
  owner: { kind: 'ReplicaSet', name: set },
});

async function world(t: TestContext, ...names: string[]) {
  const engine = await startEngine();
  t.after(() => engine.close());
  const { kube } = engine;
  await kube.create(NAMESPACES, { metadata: { name: 'shop' } });
  for (const name of names) {
    const labels = { app: name };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const selector = { matchLabels: labels };
    const made = await kube.create(DEPLOYMENTS, {
      metadata: { namespace: 'shop', name },
      spec: { replicas: 1, selector, template },
    });
    const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name, uid: made.metadata?.uid ?? '', controller: true };
    await kube.create(REPLICA_SETS, {
      metadata: { namespace: 'shop', name: `${name}-1`, ownerReferences: [owner] },
      spec: { replicas: 1, selector, template },
    });
  }
  const roll = async (name: string) => {
    const found = await kube.get(DEPLOYMENTS, { namespace: 'shop', name });
    const status = {
      observedGeneration: found.metadata?.generation ?? 1,
      replicas: 1,
      updatedReplicas: 1,
      availableReplicas: 1,
    };
    await kube.updateStatus(DEPLOYMENTS, { ...found, status });
  };
  for (const name of names) await roll(name);
  const restarted = async () => {
    const { items } = await kube.list(DEPLOYMENTS, { namespace: 'shop' });
    return items.flatMap(({ metadata, spec }) =>
      spec?.template.metadata?.annotations?.['kubectl.kubernetes.io/restartedAt'] === undefined ? [] : [metadata?.name],
    );
  };
  const deps = { kube, clock: new VirtualClock('2026-01-01T00:00:00Z'), events: recordingEvents() };
  return { kube, roll, restarted, deps };
}

test('one workload at a time, and the next one when the last has been rolled out', async t => {
  const { roll, restarted, deps } = await world(t, 'api', 'web');
  const pods = [older('web-1'), older('api-1')];
  await restartOwners(pods, deps);
  assert.deepEqual(await restarted(), ['api']);
  await restartOwners(pods, deps);
  assert.deepEqual(await restarted(), ['api']);
  await roll('api');
  await restartOwners([older('web-1')], deps);
  assert.deepEqual(await restarted(), ['api', 'web']);
});

test('a disruption budget that allows none is respected, and does not keep others', async t => {
  const { kube, restarted, deps } = await world(t, 'api', 'web');
  await kube.create(POD_DISRUPTION_BUDGETS, {
    metadata: { namespace: 'shop', name: 'api' },
    spec: { minAvailable: 1, selector: { matchLabels: { app: 'api' } } },
  });
  await restartOwners([older('api-1'), older('web-1')], deps);
  assert.deepEqual(await restarted(), ['web']);
});

test('pods that nobody would make again stay', async t => {
  const { deps, restarted } = await world(t, 'web');
  await restartOwners(
    [
      { ...older('web-1'), owner: undefined },
      { ...older('gone-1') },
      { ...older('x'), owner: { kind: 'Job', name: 'x' } },
    ],
    deps,
  );
  assert.deepEqual(await restarted(), []);
  assert.deepEqual(deps.events.events, []);
});
