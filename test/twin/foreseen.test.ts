import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { readPlanObjects } from '../../src/forecast/objects.ts';
import { simulate } from '../../src/forecast/simulate.ts';
import { addOccasion, agreement, type Occasions, occasionsOf } from '../../src/forecast/testing.ts';
import { clusterSource } from '../../src/inventory/source.ts';
import { days } from '../../src/kube/duration.ts';
import { objectText } from '../../src/trust/object.ts';
import { Cluster } from '../../src/twin/cluster.ts';
import { type Fault, faultsOf } from '../../src/twin/fault.ts';
import { Faults } from '../../src/twin/faults.ts';

const START = new Date('2026-01-01T00:00:00Z');
const NOW = new Date('2026-01-03T00:00:00Z');
const DAYS = 90;

/** The plan that is made of a cluster, and what that cluster then lives through. */
async function lived(faults: readonly Fault[]): Promise<{ planned: Occasions; came: Occasions }> {
  const cluster = new Cluster({ seed: 'foreseen', start: START });
  await cluster.begin();
  await cluster.goOn(NOW);
  const objects = await readPlanObjects(clusterSource(cluster.api.connect('reader')));
  const until = new Date(NOW.getTime() + days(DAYS));
  const { events, notes } = await simulate(objects, { now: NOW, until });
  assert.deepEqual(notes, []);
  const planned = new Map<string, number[]>();
  for (const { at, object } of events)
    if (object !== undefined) addOccasion(planned, objectText(object), Date.parse(at));
  const came = occasionsOf(cluster, () => true);
  new Faults(cluster, faults).begin(NOW.getTime());
  await cluster.goOn(until);
  cluster.end();
  return { planned, came };
}

function tell(t: TestContext, what: string, { share, missed }: ReturnType<typeof agreement>): void {
  t.diagnostic(`${(share * 100).toFixed(1)} % of what ${what}; not: ${missed.join(', ') || 'nothing'}`);
}

describe(`${DAYS} days of the real operators, with etcd, installers and agents, against the plan that was made before`, () => {
  test('without faults all that comes was planned, and all that was planned comes', async t => {
    const { planned, came } = await lived([]);
    assert.ok([...came.values()].flat().length > DAYS / 2);
    const [foreseen, kept] = [agreement(planned, came), agreement(came, planned)];
    tell(t, 'came was planned', foreseen);
    tell(t, 'was planned came', kept);
    assert.deepEqual(
      [foreseen, kept],
      Array.from({ length: 2 }, () => ({ share: 1, missed: [] })),
    );
  });

  test('with faults some of it comes at another time, and says how much', async t => {
    const { planned, came } = await lived(faultsOf('1', DAYS));
    const foreseen = agreement(planned, came);
    tell(t, 'came was planned', foreseen);
    // No plan knows of faults: how much of it holds is told, and nothing is asked of it but that something was compared.
    assert.ok(foreseen.share > 0 && foreseen.share <= 1 && [...came.values()].flat().length > DAYS / 2);
  });
});
