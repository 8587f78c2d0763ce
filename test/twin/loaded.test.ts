import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type PlanObjects, readPlanObjects } from '../../src/forecast/objects.ts';
import { seenFrom } from '../../src/forecast/seen.ts';
import { agreement, occasionsOf } from '../../src/forecast/testing.ts';
import { clusterSource } from '../../src/inventory/source.ts';
import { days, hours, minutes } from '../../src/kube/duration.ts';
import { Cluster } from '../../src/twin/cluster.ts';
import { loadCluster } from '../../src/twin/load.ts';

const START = new Date('2026-01-01T00:00:00Z');
const everything = () => true;

async function livedUntil(now: Date): Promise<{ cluster: Cluster; objects: PlanObjects }> {
  const cluster = new Cluster({ seed: 'original', start: START });
  await cluster.begin();
  await cluster.goOn(now);
  return { cluster, objects: await readPlanObjects(clusterSource(cluster.api.connect('reader'))) };
}

async function loaded(objects: PlanObjects, now: Date) {
  return loadCluster(await seenFrom(objects, { now, seed: 'copy' }), { now, seed: 'copy', handOver: 'receipts' });
}

describe('a twin that begins with the objects of a cluster', () => {
  // At rest, and in the middle of a hand-over.
  for (const [now, dayCount] of [
    ['2026-01-03T00:00:00Z', 45],
    ['2026-01-16T00:00:05Z', 20],
  ] as const) {
    test(`goes on as that one does, from ${now} for ${dayCount} days`, async () => {
      const at = new Date(now);
      const original = await livedUntil(at);
      const copy = await loaded(original.objects, at);
      assert.deepEqual(copy.notes, []);
      const [came, foreseen] = [original.cluster, copy.cluster].map(cluster => occasionsOf(cluster, everything));
      const until = new Date(at.getTime() + days(dayCount));
      for (const { cluster } of [original, copy]) {
        await cluster.goOn(until);
        cluster.end();
      }
      assert.ok(came !== undefined && foreseen !== undefined && [...came.values()].flat().length > 3);
      assert.deepEqual(agreement(foreseen, came), { share: 1, missed: [] });
      // Nor anything that does not come.
      assert.deepEqual(agreement(came, foreseen), { share: 1, missed: [] });
      assert.deepEqual(copy.cluster.look.refusals, []);
    });
  }

  test('that came up from objects has nothing to do where nothing is due', async () => {
    const now = new Date(START.getTime() + hours(1));
    const { objects, cluster: original } = await livedUntil(now);
    original.end();
    const told: string[] = [];
    const seen = await seenFrom(objects, { now, seed: 'copy' });
    const { cluster } = await loadCluster(seen, { now, seed: 'copy', tell: (_at, what) => told.push(what) });
    told.length = 0;
    const came = occasionsOf(cluster, everything);
    await cluster.goOn(new Date(now.getTime() + hours(2)));
    cluster.end();
    assert.deepEqual([...came], []);
    assert.deepEqual(
      told.filter(what => / (starts|stops), /.test(what)),
      [],
    );
  });

  test('says which machines do not come up from what is there, and does not make up what rotates', async () => {
    const now = new Date(START.getTime() + minutes(20));
    const { objects, cluster: original } = await livedUntil(now);
    original.end();
    const gone = 'localhost-recovery-serving-certkey';
    const secrets = objects.secrets.filter(({ metadata }) => metadata?.name !== gone);
    const { notes, cluster } = await loaded({ ...objects, secrets }, now);
    cluster.end();
    assert.match(notes[0] ?? '', /^kube-apiserver does not come up on master-0, master-1, master-2 from what is here/);
  });
});
