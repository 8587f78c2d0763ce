import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type Condition } from '../controller/condition.ts';
import { VirtualClock } from '../kube/clock.ts';
import { days, hours, seconds } from '../kube/duration.ts';
import { KubeError } from '../kube/error.ts';
import { MemoryKube } from '../kube/memory.ts';
import { CONFIG_MAPS, type KubeObject, resource, SECRETS } from '../kube/resource.ts';
import { readCertificates } from '../pki/pem.ts';
import { ISSUER, NOT_AFTER } from './annotations.ts';
import { BUNDLE_KEY } from './bundle.ts';
import { ObjectLocks } from './locks.ts';
import { reconcileOnce, reconcileUnit } from './reconcile.ts';
import { operatorStatusReporter } from './reporter.ts';
import { parseScale, readRotationScale, rotationDay, SCALE_CONFIG_MAP } from './scale.ts';
import { NOW, testRotation, UNIT } from './testing.ts';
import { syncUnit } from './unit.ts';

interface Operator extends KubeObject {
  status?: { conditions?: readonly Condition[] };
}
const OPERATORS = resource<Operator>('operator.openshift.io/v1', 'KubeAPIServer', 'kubeapiservers', false);
const DAY = days(1);

describe('a unit over time (spec 10, 4.7)', () => {
  test('the worked example: signer, bundle and target day by day, woken only when something is due', async () => {
    const rotation = testRotation();
    const story: string[] = [];
    let next = NOW;
    while (next.getTime() - NOW.getTime() <= 32 * DAY) {
      rotation.clock.jumpTo(next);
      const result = await syncUnit(UNIT, rotation);
      assert.ok(result.outcome === 'done');
      if (result.regenerated.length > 0) {
        const day = Math.floor(((next.getTime() - NOW.getTime()) / DAY) * 100) / 100;
        const bundle = readCertificates(
          (await rotation.kube.get(CONFIG_MAPS, UNIT.bundle)).data![BUNDLE_KEY] as string,
        );
        story.push(`day ${day}: ${result.regenerated.join('+')}, ${bundle.certificates.length} trusted`);
      }
      assert.ok(result.until > next, 'the next pass lies ahead');
      next = result.until;
    }
    assert.deepEqual(story, [
      'day 0: signer+bundle+target, 1 trusted',
      // Signers and targets start one second before they are made, so day 15 comes a second early.
      'day 14.99: signer+bundle, 2 trusted',
      'day 16.49: target, 2 trusted',
      'day 29.99: signer+bundle, 3 trusted',
      'day 30: bundle, 2 trusted',
      'day 31.49: target, 2 trusted',
    ]);
  });

  test('4.5: a deleted signer is replaced and joins the bundle, the target stays', async () => {
    const { kube, rotation } = await settled();
    const target = await kube.get(SECRETS, UNIT.target);
    await kube.delete(SECRETS, UNIT.signer);
    rotation.clock.jumpTo(new Date(NOW.getTime() + hours(1)));
    assert.deepEqual(await regenerated(rotation), ['signer', 'bundle']);
    assert.deepEqual(await kube.get(SECRETS, UNIT.target), target);
  });

  test('4.5: a deleted bundle is rebuilt; a target of an older signer is then re-issued at once', async () => {
    const { kube, rotation } = await settled();
    await kube.delete(SECRETS, UNIT.signer);
    rotation.clock.jumpTo(new Date(NOW.getTime() + hours(1)));
    await syncUnit(UNIT, rotation);
    await kube.delete(CONFIG_MAPS, UNIT.bundle);
    assert.deepEqual(await regenerated(rotation), ['bundle', 'target']);
    const signer = await kube.get(SECRETS, UNIT.signer);
    const target = await kube.get(SECRETS, UNIT.target);
    assert.equal(target.metadata?.annotations?.[ISSUER], signer.metadata?.annotations?.[ISSUER]);
  });

  test('4.5: a deleted target is re-issued; removing not-after forces a rotation (D-1)', async () => {
    const { kube, rotation } = await settled();
    await kube.delete(SECRETS, UNIT.target);
    assert.deepEqual(await regenerated(rotation), ['target']);
    const target = await kube.get(SECRETS, UNIT.target);
    delete target.metadata!.annotations![NOT_AFTER];
    await kube.update(SECRETS, target);
    assert.deepEqual(await regenerated(rotation), ['target']);
  });

  test('4.5: a clock that jumps back regenerates nothing', async () => {
    const { rotation } = await settled();
    rotation.clock.jumpTo(new Date(NOW.getTime() - days(100)));
    assert.deepEqual(await regenerated(rotation), []);
  });

  test('8.3: recovery after a long shutdown replaces all three', async () => {
    const { rotation } = await settled();
    rotation.clock.jumpTo(new Date(NOW.getTime() + days(100)));
    const mode = { refreshOnlyWhenExpired: true };
    const unit = {
      ...UNIT,
      signer: { ...UNIT.signer, ...mode },
      bundle: { ...UNIT.bundle, ...mode },
      target: { ...UNIT.target, ...mode },
    };
    const result = await syncUnit(unit, rotation);
    assert.ok(result.outcome === 'done');
    assert.deepEqual(result.regenerated, ['signer', 'bundle', 'target']);
  });

  test('W-5: units that share a signer in one process make one signer', async () => {
    const rotation = testRotation();
    const units = ['a', 'b', 'c', 'd'].map(name => ({ ...UNIT, name, target: { ...UNIT.target, name } }));
    await reconcileOnce(units, rotation);
    const made = rotation.events.events.filter(({ reason }) => reason === 'SignerUpdateRequired');
    assert.equal(made.length, 1);
    assert.equal((await rotation.kube.list(SECRETS)).items.length, 5);
  });
});

describe('reporting (spec 10, 9)', () => {
  test('W-5: an object has one writer at a time, however many come while others leave', async () => {
    const locks = new ObjectLocks();
    let [writers, most] = [0, 0];
    const write = async () => {
      most = Math.max(most, ++writers);
      await new Promise(setImmediate);
      writers--;
    };
    const first = [locks.run('a', write), locks.run('a', write)];
    await first[0];
    await Promise.all([...first, locks.run('a', write)]);
    assert.equal(most, 1);
  });

  test('R-1 and R-2: Degraded once with one event, then clear; the transition time moves with the status', async () => {
    const { kube, rotation, report } = await reported();
    kube.get = failingGet(kube, '100%s bad %d');
    await assert.rejects(reconcileUnit(UNIT, rotation, report), /100%s bad/);
    rotation.clock.jumpTo(new Date(NOW.getTime() + seconds(10)));
    await assert.rejects(reconcileUnit(UNIT, rotation, report));
    const events = rotation.events.events.filter(({ reason }) => reason === 'RotationError');
    assert.deepEqual(
      events.map(({ type, message }) => [type, message]),
      [['Warning', '100%s bad %d']],
    );
    assert.deepEqual(await conditions(kube), [
      {
        type: 'CertRotation_Unit_Degraded',
        status: 'True',
        reason: 'RotationError',
        message: '100%s bad %d',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ]);
    kube.get = MemoryKube.prototype.get.bind(kube);
    await reconcileUnit(UNIT, rotation, report);
    assert.deepEqual(await conditions(kube), [
      {
        type: 'CertRotation_Unit_Degraded',
        status: 'False',
        reason: '',
        message: '',
        lastTransitionTime: '2026-01-01T00:00:10Z',
      },
    ]);
  });

  test('W-2 and trap 14.17: a lost write leaves the condition alone and asks again in seconds', async () => {
    const { kube, rotation, report } = await reported();
    kube.create = () => Promise.reject(new KubeError(409, 'AlreadyExists', 'exists'));
    const next = await reconcileUnit(UNIT, rotation, report);
    assert.ok(next.getTime() - NOW.getTime() <= seconds(5));
    assert.deepEqual(await conditions(kube), []);
  });

  test('R-3 and trap 14.13: a failing report does not hide the error of the pass', async () => {
    const { kube, rotation } = await reported();
    kube.get = failingGet(kube, 'first');
    const report = () => Promise.reject(new Error('second'));
    await assert.rejects(
      reconcileUnit(UNIT, rotation, report),
      (error: AggregateError) => error.message === '[first, second]',
    );
  });

  test('R-3: a report that fails after a pass that did not is the error as it came', async () => {
    const failure = new Error('the status cannot be written');
    await assert.rejects(
      reconcileUnit(UNIT, testRotation(), () => Promise.reject(failure)),
      failure,
    );
  });

  test('R-4: run once goes on after failures and returns all of them', async () => {
    const rotation = testRotation();
    const broken = { ...UNIT, name: 'Broken', signer: { ...UNIT.signer, refreshMs: 0 } };
    await assert.rejects(
      reconcileOnce([broken, UNIT, { ...broken, name: 'Too' }], rotation),
      (error: AggregateError) => error.errors.length === 2,
    );
    assert.equal((await rotation.kube.list(SECRETS)).items.length, 2);
  });

  test('R-1: a condition as Go stores it, without its empty texts, is not written again', async () => {
    const { kube, report } = await reported();
    const operator = await kube.get(OPERATORS, { name: 'cluster' });
    const stored = {
      type: 'CertRotation_Unit_Degraded',
      status: 'False' as const,
      lastTransitionTime: '2025-01-01T00:00:00Z',
    };
    await kube.updateStatus(OPERATORS, { ...operator, status: { conditions: [stored] } });
    assert.equal(await report('Unit', undefined), false);
    assert.deepEqual(await conditions(kube), [stored]);
  });

  for (const object of ['signer', 'bundle'] as const) {
    test(`R-4 and W-2: run once tries a lost ${object} again, and says so when it stays lost`, async () => {
      const { kube, rotation } = await settled();
      await kube.delete(SECRETS, UNIT.target);
      await kube.delete(object === 'signer' ? SECRETS : CONFIG_MAPS, UNIT[object]);
      const race = refusedCreates(kube, UNIT[object].name);
      const lost = reconcileOnce([UNIT], rotation);
      const failure = assert.rejects(lost, new RegExp(`Unit: ${object} ns/${object} was written by somebody else`));
      await passingTime(rotation, lost);
      await failure;
      assert.ok(race.refused > 1);

      race.refused = 0;
      race.atMost = 1;
      const won = reconcileOnce([UNIT], rotation);
      await passingTime(rotation, won);
      await won;
      assert.equal(race.refused, 1);
      assert.ok(await kube.get(SECRETS, UNIT.target));
    });
  }

  test('R-4 and W-2: a target that somebody else wrote is no error of a run once', async () => {
    const { kube, rotation } = await settled();
    await kube.delete(SECRETS, UNIT.target);
    const race = refusedCreates(kube, UNIT.target.name);
    await reconcileOnce([UNIT], rotation);
    assert.equal(race.refused, 1);
  });
});

describe('rotation scale (spec 10, 11)', () => {
  const rows: [string | undefined, number | RegExp][] = [
    [undefined, 0],
    ['2h', hours(2)],
    ['24h', hours(24)],
    ['0', 0],
    ['24h0m1s', /^CertRotationError: scale longer than 24h is not allowed: 24h0m1s$/],
    ['24h1us', /^CertRotationError: scale longer than 24h is not allowed: 24h0m0\.000001s$/],
    ['500us', 0.5],
    ['-1h', /negative/],
    ['-500us', /negative, found -500µs$/],
    ['-1ns', /negative, found -1ns$/],
    ['soon', /must be a duration such as 2h, found "soon"/],
  ];
  for (const [base, expected] of rows) {
    test(`base ${base}`, () => {
      const parse = () => parseScale(base === undefined ? undefined : { data: { base } });
      if (expected instanceof RegExp) assert.throws(parse, expected);
      else assert.equal(parse(), expected);
    });
  }
  const NAMESPACE = 'openshift-config';
  const scaled = async (base?: string) => {
    const kube = new MemoryKube();
    const metadata = { namespace: NAMESPACE, name: SCALE_CONFIG_MAP };
    if (base !== undefined) await kube.create(CONFIG_MAPS, { metadata, data: { base } });
    const warnings: string[] = [];
    const clock = new VirtualClock(NOW);
    return {
      kube,
      clock,
      warnings,
      read: () => readRotationScale(kube, NAMESPACE, clock, text => warnings.push(text)),
    };
  };

  test('it is read with a warning, and nothing is said where nobody asks for one', async () => {
    const short = await scaled('2h');
    assert.equal(await short.read(), hours(2));
    assert.match(short.warnings.join(), /^!!! UNSUPPORTED VALUE SET !!! .* 2h/);
    for (const base of ['0', undefined]) {
      const usual = await scaled(base);
      assert.deepEqual([await usual.read(), usual.warnings], [0, []]);
    }
  });

  test('a value that makes no sense is an error at once, an API that does not answer is asked again for a while', async () => {
    await assert.rejects((await scaled('soon')).read(), /must be a duration/);
    const { kube, clock, read } = await scaled('2h');
    const get = kube.get;
    let asked = 0;
    kube.get = () => (asked++, Promise.reject(new KubeError(500, 'InternalError', 'etcd is away')));
    const failed = assert.rejects(read(), /etcd is away/);
    for (let round = 0; round < 100; round++) await clock.advance(seconds(10));
    await failed;
    assert.ok(asked > 1);
    const patient = read();
    kube.get = get;
    for (let round = 0; round < 10; round++) await clock.advance(seconds(10));
    assert.equal(await patient, hours(2));
  });

  test('0 means 24 h', () => assert.deepEqual([rotationDay(0), rotationDay(seconds(10))], [DAY, seconds(10)]));
});

async function settled() {
  const kube = new MemoryKube();
  const rotation = testRotation(kube, new VirtualClock(NOW));
  await syncUnit(UNIT, rotation);
  return { kube, rotation };
}

async function regenerated(rotation: ReturnType<typeof testRotation>) {
  const result = await syncUnit(UNIT, rotation);
  assert.ok(result.outcome === 'done');
  return result.regenerated;
}

async function reported() {
  const kube = new MemoryKube();
  const rotation = testRotation(kube);
  await kube.create(OPERATORS, { metadata: { name: 'cluster' } });
  return { kube, rotation, report: operatorStatusReporter(kube, OPERATORS, { name: 'cluster' }, rotation.clock) };
}

async function conditions(kube: MemoryKube) {
  return (await kube.get(OPERATORS, { name: 'cluster' })).status?.conditions ?? [];
}

/** From now on another writer is first with this object, so many times. */
function refusedCreates(kube: MemoryKube, name: string) {
  const race = { refused: 0, atMost: Number.POSITIVE_INFINITY };
  const create = kube.create.bind(kube);
  kube.create = (resource, object) => {
    if (object.metadata?.name !== name || race.refused >= race.atMost) return create(resource, object);
    race.refused++;
    return Promise.reject(new KubeError(409, 'AlreadyExists', 'exists'));
  };
  return race;
}

/** Moves the clock on until `work` has ended. */
async function passingTime(rotation: ReturnType<typeof testRotation>, work: Promise<unknown>): Promise<void> {
  let ended = false;
  const end = () => void (ended = true);
  void work.then(end, end);
  while (!ended) await rotation.clock.advance(seconds(1));
}

/** Reads of Secrets fail; the operator resource stays readable. */
function failingGet(kube: MemoryKube, message: string): MemoryKube['get'] {
  return (kind, key) =>
    kind.kind === 'Secret'
      ? Promise.reject(new KubeError(500, 'InternalError', message))
      : (MemoryKube.prototype.get.call(kube, kind, key) as never);
}
