/**
 * Ninety days in half a minute: a cluster with real controllers, whose day lasts a third of a second, does what the plan said
 * beforehand: the same changes of the same objects in the same order, object by object.
 */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { LiveSource } from '../../src/cli/inventory/live-source.ts';
import { clusterSource } from '../../src/cli/inventory/source.ts';
import type { PlanEvent } from '../../src/cli/plan/model.ts';
import { readPlanObjects } from '../../src/cli/plan/objects.ts';
import { simulate } from '../../src/cli/plan/simulate.ts';
import { rotationDayFrom } from '../../src/cli/plan/units.ts';
import { sleep, systemClock } from '../../src/kube/clock.ts';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resource.ts';
import { KUBE_APISERVER_CHAINS } from '../../src/kube-apiserver/chains.ts';
import { eventually, startTestCluster } from '../kube-apiserver/cluster.ts';

const DAY_MS = 400;
const DAYS = 90;
/** Making a certificate takes its time: a change may come later than foreseen, and then its successors do too. */
const PATIENCE_MS = 240_000;
/**
 * And a signer that comes after its leaf instead of before it does not make that leaf wait for a day and a half (spec 10, T-5): each
 * change may also be so much sooner than foreseen. To the millisecond the plan is compared on a clock of its own, in its unit tests.
 */
const SOONER_MS = 1.5 * DAY_MS;

let cluster: Awaited<ReturnType<typeof startTestCluster>>;
before(async () => {
  cluster = await startTestCluster({ controlPlane: 1, dayMs: DAY_MS });
  await cluster.ready();
});
after(() => cluster.stop());

test('what the plan says is what then happens', { timeout: 400_000 }, async t => {
  const chains = KUBE_APISERVER_CHAINS;
  const names = new Set(chains.flatMap(({ signer, target }) => [signer.name, target.name]));
  const source = new LiveSource(cluster.kube);
  t.after(() => source.stop());
  const changes = new Map<string, { at: number; certificate: string | undefined }[]>();
  source.subscribe(({ before: old, after: current, resource }) => {
    const name = current?.metadata?.name ?? '';
    if (resource.kind !== 'Secret' || !names.has(name) || old === undefined) return;
    const [was, is] = [(old as Secret).data?.['tls.crt'], (current as Secret | undefined)?.data?.['tls.crt']];
    if (was !== is) changes.set(name, [...(changes.get(name) ?? []), { at: Date.now(), certificate: is }]);
  });
  await Promise.all([source.list(SECRETS), source.list<ConfigMap>(CONFIG_MAPS)]);

  const now = new Date();
  const objects = await readPlanObjects(clusterSource(cluster.kube));
  const known = new Map(objects.secrets.map(({ metadata, data }) => [metadata?.name ?? '', data?.['tls.crt']]));
  /** When an object has changed since the plan looked at it. */
  const happened = (name: string) => {
    const all = changes.get(name) ?? [];
    return all.slice(all.findIndex(({ certificate }) => certificate === known.get(name)) + 1).map(({ at }) => at);
  };
  assert.equal(rotationDayFrom(objects), DAY_MS, 'the length of the day is read from the objects');
  const until = new Date(now.getTime() + DAYS * DAY_MS);
  const plan = await simulate(objects, { now, until });
  const planned = Map.groupBy(
    plan.events.filter(({ change }) => change === 'signer' || change === 'certificate'),
    ({ object }) => object?.name ?? '',
  );
  assert.deepEqual(
    plan.events.filter(({ change }) => change === 'fail' || change === 'rollout'),
    [],
  );
  assert.ok(plan.events.length > 60, `${plan.events.length} events`);
  await sleep(systemClock, until.getTime() - Date.now());
  await eventually(
    'everything that was planned',
    async () => [...planned].every(([name, events]) => happened(name).length >= events.length),
    PATIENCE_MS,
  );

  for (const { signer, target } of chains) {
    for (const { name } of [signer, target]) compare(name, planned.get(name) ?? [], happened(name), until);
  }
  t.diagnostic(`${[...planned.values()].flat().length} changes planned, all of them seen`);
});

/** One after the other each planned change has come, and in the time itself hardly one more. */
function compare(name: string, planned: readonly PlanEvent[], happened: readonly number[], until: Date): void {
  const text = `${name}: planned ${planned.map(({ at }) => at).join(' ')}; seen ${happened.map(at => new Date(at).toISOString()).join(' ')}`;
  const soonerMs = planned.length * SOONER_MS;
  assert.ok(happened.filter(at => at <= until.getTime() - soonerMs).length <= planned.length, text);
  planned.forEach(({ at }, index) =>
    assert.ok((happened[index] as number) >= Date.parse(at) - (index + 1) * SOONER_MS, text),
  );
}
