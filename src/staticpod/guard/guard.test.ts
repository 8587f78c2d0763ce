import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { KubeError } from '../../kube/error.ts';
import { MemoryKube } from '../../kube/memory.ts';
import type { Kube } from '../../kube/port.ts';
import { POD_DISRUPTION_BUDGETS, PODS } from '../../kube/resource.ts';
import { CONFIG, intercepted, NAMESPACE, operandPod, TestCluster } from '../testing.ts';
import { guardReconcile } from './controller.ts';

async function world(wanted: () => boolean | undefined = () => true, kube: Kube = new MemoryKube()) {
  const cluster = new TestCluster({ kube });
  for (const name of ['m0', 'm1']) {
    const labels = { 'node-role.kubernetes.io/master': '' };
    const status = { conditions: [{ type: 'Ready', status: 'True' }] };
    await cluster.put({ kind: 'Node', metadata: { name, labels }, status });
    const pod = operandPod(name, 1, true);
    await cluster.put({ ...pod, status: { ...pod.status, podIP: `10.0.0.${name[1]}` } });
  }
  const guard = { port: 6443, path: 'readyz', wanted };
  const run = (image = 'image:1') =>
    cluster.run(guardReconcile({ ...cluster.parts, config: { ...CONFIG, guard, installer: { image } } }));
  const guards = () => cluster.cached.list(PODS, { namespace: NAMESPACE, labels: { app: 'guard' } });
  return { cluster, run, guards };
}

describe('guards (spec 30, section 18)', () => {
  test('stand beside every operand, under a budget that spares all but one', async () => {
    const { cluster, run, guards } = await world();
    await run();
    assert.deepEqual(
      (await guards()).map(({ metadata }) => metadata?.name),
      ['test-guard-m0', 'test-guard-m1'],
    );
    const budget = await cluster.kube.get(POD_DISRUPTION_BUDGETS, { namespace: NAMESPACE, name: 'test-guard-pdb' });
    assert.equal(budget.spec?.minAvailable, 1);
    const told = cluster.events.length;
    await run();
    assert.equal(cluster.events.length, told);
  });

  test('are made anew when they guard the wrong thing or have ended', async () => {
    const { cluster, run, guards } = await world();
    await run();
    const [first] = await guards();
    await run('image:2');
    const [second] = await guards();
    assert.notEqual(second?.metadata?.uid, first?.metadata?.uid);
    await cluster.kube.update(PODS, { ...(second as object), status: { phase: 'Failed' } });
    await run('image:2');
    const [third] = await guards();
    assert.notEqual(third?.metadata?.uid, second?.metadata?.uid);
    assert.equal(third?.spec?.containers[0]?.image, 'image:2');
  });

  test('go when they are not wanted, and are left alone when nobody knows', async () => {
    let wanted: boolean | undefined = true;
    const { cluster, run, guards } = await world(() => wanted);
    await run();
    wanted = undefined;
    await run();
    assert.equal((await guards()).length, 2);
    wanted = false;
    await run();
    assert.equal((await guards()).length, 0);
    assert.ok(!(await cluster.has(POD_DISRUPTION_BUDGETS, 'test-guard-pdb')));
    const told = cluster.events.length;
    await run();
    assert.equal(cluster.events.length, told);
  });

  test('a policy that is not asked for any more goes from the budget (18.3)', async () => {
    const { cluster, run } = await world();
    const key = { namespace: NAMESPACE, name: 'test-guard-pdb' };
    const selector = { matchLabels: { app: 'guard' } };
    await cluster.kube.create(POD_DISRUPTION_BUDGETS, {
      metadata: key,
      spec: { minAvailable: 1, unhealthyPodEvictionPolicy: 'AlwaysAllow', selector },
    });
    await run();
    assert.deepEqual((await cluster.kube.get(POD_DISRUPTION_BUDGETS, key)).spec, { minAvailable: 1, selector });
  });

  test('all are tried to be removed, and what fails is told in order (18.2, 18.6)', async () => {
    let wanted = true;
    const memory = new MemoryKube();
    const kube = intercepted(memory, (verb, resource, name) => {
      if (verb !== 'delete' || name === 'test-guard-m1') return;
      throw new KubeError(500, 'InternalError', `${resource.plural} cannot go`);
    });
    const { run, guards } = await world(() => wanted, kube);
    await run();
    wanted = false;
    await assert.rejects(run(), { message: '[poddisruptionbudgets cannot go, pods cannot go]' });
    assert.deepEqual(
      (await guards()).map(({ metadata }) => metadata?.name),
      ['test-guard-m0'],
    );
  });

  test('one that cannot be made does not stop the others', async () => {
    const { cluster, run, guards } = await world();
    await cluster.kube.update(PODS, operandPod('m0', 1, true));
    await assert.rejects(run(), { message: 'Missing PodIP in operand test-m0 on node m0' });
    assert.deepEqual(
      (await guards()).map(({ metadata }) => metadata?.name),
      ['test-guard-m1'],
    );
  });
});
