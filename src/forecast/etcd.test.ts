import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startEngine } from '../api/api.ts';
import { NOW, TestEtcd } from '../etcd/testing.ts';
import { clusterSource } from '../inventory/source.ts';
import { VirtualClock } from '../kube/clock.ts';
import { days } from '../kube/duration.ts';
import { CONFIG_MAPS } from '../kube/resource.ts';
import { readPlanObjects } from './objects.ts';
import { rehearse } from './rehearse.ts';
import { simulate } from './simulate.ts';

test('a forced etcd signer: the plan names the two roll-outs and the hand-over, and that is what the operator does', async t => {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  t.after(() => engine.close());
  const etcd = await TestEtcd.create({ kube: engine.kube, clock });
  await etcd.settle();
  const objects = await readPlanObjects(clusterSource(engine.kube));
  const now = clock.now();
  assert.deepEqual((await simulate(objects, { now, until: new Date(now.getTime() + days(90)) })).events, []);

  const metrics = await etcd.configMap('etcd-metrics-ca-bundle');
  await engine.kube.create(CONFIG_MAPS, {
    metadata: {
      namespace: 'openshift-etcd-operator',
      name: 'etcd-metric-serving-ca',
    },
    data: metrics.data ?? {},
  });
  const forced = ['etcd-signer', 'etcd-metric-signer'].map(
    name => ({ kind: 'Secret', namespace: 'openshift-etcd', name }) as const,
  );
  const copied = await readPlanObjects(clusterSource(engine.kube));
  const { refusals, checked } = await rehearse(copied, {
    now,
    until: new Date(now.getTime() + days(1)),
    force: forced,
  });
  // Four connections between members, in both directions; the operator's; what Prometheus sees of three metrics proxies.
  assert.deepEqual([refusals, checked], [[], 4 * 2 * 3 + 4 + 3]);

  const force = [{ kind: 'Secret', namespace: 'openshift-etcd', name: 'etcd-signer' } as const];
  const { events, notes } = await simulate(objects, { now, until: now, force });
  assert.deepEqual(notes, []);
  const steps = events.map(({ change, object }) => `${change}${object === undefined ? '' : ` ${object.name}`}`);
  const order = [
    'signer etcd-signer',
    'bundle etcd-ca-bundle',
    'derived etcd-all-bundles',
    'rollout',
    'hand-over etcd-signer',
  ];
  const places = order.map(step => steps.indexOf(step));
  assert.ok(
    places.every((place, index) => place > (places[index - 1] ?? -1)),
    steps.join('\n'),
  );
  assert.equal(steps.filter(step => step === 'rollout').length, 2);
  assert.equal(steps.at(-1), 'rollout');
  assert.deepEqual(events.at(-1)?.effects, [
    { kind: 'restart', process: 'etcd', nodes: ['master-0', 'master-1', 'master-2'] },
  ]);

  etcd.events.length = 0;
  await etcd.forget('etcd-signer');
  await etcd.sync();
  await etcd.rollOut();
  await etcd.sync();
  await etcd.rollOut();
  await etcd.sync();
  const real = etcd.events.flatMap(({ reason, message }) => {
    const change = {
      SignerUpdateRequired: 'signer',
      CABundleUpdateRequired: 'bundle',
      TargetUpdateRequired: 'certificate',
      SignerInUseChanged: 'hand-over',
    }[reason];
    return change === undefined ? [] : [`${change} ${/^"([^"]+)"/.exec(message)?.[1]}`];
  });
  const announced = steps.filter(step => !step.startsWith('derived') && step !== 'rollout');
  assert.deepEqual(announced, real);
});
