import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { byConnection } from '../../forecast/by-connection.ts';
import { endsMeanwhile } from '../../forecast/ends-meanwhile.ts';
import { type Hibernation, hibernate } from '../../forecast/hibernation.ts';
import { kubeletsAfter } from '../../forecast/kubelets.ts';
import { type PlanObjects, readPlanObjects } from '../../forecast/objects.ts';
import { rehearse } from '../../forecast/rehearse.ts';
import { firstToFail } from '../../forecast/standstill.ts';
import type { CertificateItem } from '../../inventory/model.ts';
import { clusterSource } from '../../inventory/source.ts';
import { NOW } from '../../inventory/testing.ts';
import { days, hours, minutes } from '../../kube/duration.ts';
import { Cluster } from '../../twin/cluster.ts';
import { UsageError } from '../usage-error.ts';
import { offFrom } from './off-flag.ts';
import { verdictOnHibernation, verdictOnRotation, verdictOnStandstill } from './verdict.ts';

const after = (count: number) => new Date(NOW.getTime() + days(count));
const HORIZON = after(3660);

describe('questions about a cluster', () => {
  let objects: PlanObjects;
  let now: Date;

  before(async () => {
    const twin = new Cluster({ seed: 'questions', start: NOW });
    await twin.begin();
    now = new Date(NOW.getTime() + minutes(10));
    await twin.goOn(now);
    objects = await readPlanObjects(clusterSource(twin.api.connect('test')));
    twin.end();
  });

  const off = (from: Date, until: Date): Promise<Hibernation> =>
    hibernate(objects, {
      now,
      until: new Date(until.getTime() + days(1)),
      off: { from, until },
      settlesMs: hours(1),
      horizon: HORIZON,
      stepMs: days(1),
    });
  const told = (hibernation: Hibernation, from: Date, until: Date) =>
    verdictOnHibernation(hibernation, { off: { from, until }, ends: [] });

  test('operators may stand still until the first certificate ends, to the millisecond', async () => {
    const first = await firstToFail(objects, { now, from: now, until: HORIZON });
    const since = new Date(first?.since ?? '');
    const stopped = (until: Date) => rehearse(objects, { now, until, stopped: { from: now, until } });
    assert.deepEqual((await stopped(new Date(since.getTime() - 1))).refusals, []);
    assert.ok((await stopped(new Date(since.getTime() + 1))).refusals.length > 0);
    const span = { from: now, to: HORIZON };
    const verdict = (standsForMs: number) =>
      verdictOnStandstill(first, {
        checked: 1,
        span,
        stopped: { from: now, until: new Date(now.getTime() + standsForMs) },
        fails: false,
      });
    const { answer, isSafe, standstillSeconds } = verdict(days(1));
    assert.match(
      answer,
      /^safe: operators may stand still for 29d 2\dh from 2026-01-01T00:10:00Z on, until 2026-01-3\dT[0-9:]{8}Z; first to fail: .+ refuses .+ ended at /,
    );
    assert.deepEqual([isSafe, standstillSeconds], [true, Math.floor((since.getTime() - now.getTime()) / 1000)]);
    assert.match(verdict(days(40)).answer, /^not safe: operators may stand still for 29d/);
  });

  test('off for two weeks: safe, and how long it could be', async () => {
    const [from, until] = [after(20), after(34)];
    const hibernation = await off(from, until);
    assert.deepEqual([hibernation.isSafe, hibernation.atWakeUp], [true, []]);
    assert.match(
      told(hibernation, from, until).answer,
      /^safe: off from 2026-01-21T00:00:00Z to 2026-02-04T00:00:00Z: nobody refuses anybody at the wake-up; the last safe wake-up day is 2026-02-1\d/,
    );
  });

  test('the last safe wake-up is safe with its hour for those who renew, and a moment later is not', async () => {
    const from = after(20);
    const { isSafe, lastSafeWakeUp = '', firstToFail: first } = await off(from, after(90));
    assert.equal(isSafe, false);
    assert.equal(Date.parse(first?.since ?? '') - Date.parse(lastSafeWakeUp), hours(1));
    const last = new Date(lastSafeWakeUp);
    assert.equal((await off(from, last)).isSafe, true);
    assert.equal((await off(from, new Date(last.getTime() + 1))).isSafe, false);
  });

  test('off for months: what has ended is renewed at the wake-up by those who can', async () => {
    const [from, until] = [after(20), after(90)];
    const hibernation = await off(from, until);
    assert.ok(hibernation.atWakeUp.length > 10);
    assert.ok(hibernation.atWakeUp.every(refusal => refusal.until === until.toISOString()));
    const { answer, needsHand } = told(hibernation, from, until);
    assert.match(answer, /^not safe: off from .+: the last safe wake-up day is 2026-02-1\d .+; after it .+ refuses .+/);
    assert.deepEqual(needsHand, []);
  });

  test('off for longer than the members of etcd accept each other: nobody can renew anything by himself', async () => {
    const [from, until] = [after(1), after(3800)];
    const { answer, needsHand = [] } = told(await off(from, until), from, until);
    assert.match(answer, /^not safe: /);
    assert.match(needsHand[0] ?? '', /^everything, since nobody can renew anything by himself: etcd refuses etcd /);
  });

  test('what kubelets show ends at the latest with the CA that signed it', async () => {
    const from = after(1);
    assert.match(kubeletsAfter(objects.configMaps, { from, until: after(2) }).note ?? '', /is in no object/);
    const late = kubeletsAfter(objects.configMaps, { from, until: after(366 * 201) });
    assert.match(late.hand ?? '', /^approve the certificate signing requests of every kubelet/);
    assert.deepEqual(kubeletsAfter([], { from, until: after(2) }), {});
  });

  test('each kind of connection is told once, with how many nodes it is for', async () => {
    const until = after(60);
    const { refusals } = await rehearse(objects, { now, until, stopped: { from: now, until: after(50) } });
    const lines = byConnection(refusals);
    assert.equal(new Set(refusals.map(({ connection, by }) => `${connection} ${by}`)).size, lines.length);
    const scheduler = lines.find(({ connection }) => connection === 'kube-scheduler to kube-apiserver');
    assert.deepEqual([scheduler?.places, scheduler?.until], ['x3 nodes', after(50).toISOString()]);
    const verdict = verdictOnRotation(lines, { checked: 1, span: { from: now, to: until }, forced: [] });
    assert.match(verdict.answer, /^not safe: from .+ until 2026-02-20T00:00:00Z, .+ refuses .+; \d+ more below$/);
  });
});

test('--off: days from their first moment to their last, or moments', () => {
  const text = (value: string) => Object.values(offFrom(value, NOW)).map(date => (date as Date).toISOString());
  assert.deepEqual(text('2026-12-20..2027-02-01'), ['2026-12-20T00:00:00.000Z', '2027-02-02T00:00:00.000Z']);
  assert.deepEqual(text('2025-12-20..2026-02-01T12:00:00+02:00'), [NOW.toISOString(), '2026-02-01T10:00:00.000Z']);
  for (const wrong of ['', '2026-12-20', '2026-12-20..', '..2026-12-20', '2026-12-20..2026-12-19', 'a..b'])
    assert.throws(() => offFrom(wrong, NOW), UsageError, wrong);
  assert.throws(() => offFrom('2025-01-01..2025-02-01', NOW), /must end in the future/);
  assert.throws(() => offFrom('2026-02-30..2026-03-01', NOW), UsageError);
});

describe('certificates outside of the objects', () => {
  const item = (name: string, seen: Partial<CertificateItem['seen'] & object>): CertificateItem => ({
    metadata: { name },
    role: 'unmanaged',
    state: 'Good',
    certificate: { notBefore: NOW.toISOString(), notAfter: after(100).toISOString() } as never,
    chainLength: 0,
    trustedBy: [],
    notes: [],
    seen: { places: [], renewal: 'by-hand', isExternal: false, isMissing: false, ...seen },
  });
  const endOf = (seen: Partial<CertificateItem['seen'] & object>, fromDay: number) =>
    endsMeanwhile([item('x', seen)], { from: after(fromDay), until: after(900) }, NOW)[0]?.at;

  test('each ends as its renewals go on until the cluster is switched off', () => {
    assert.equal(endOf({ renewal: 'by-hand' }, 80), after(100).toISOString());
    // A kubelet may not have renewed before nine tenths of the life.
    assert.equal(endOf({ renewal: 'kubelet' }, 80), after(100).toISOString());
    assert.equal(endOf({ renewal: 'kubelet' }, 200), after(210).toISOString());
    const renewsAt = after(60).toISOString();
    assert.equal(endOf({ renewal: 'rotunda', renewsAt }, 59), after(100).toISOString());
    assert.equal(endOf({ renewal: 'rotunda', renewsAt }, 130), after(220).toISOString());
  });

  test('they decide where nothing else can be seen', () => {
    const off = { from: after(80), until: after(99) };
    const nothing = { isSafe: true, atWakeUp: [], stuck: [], rehearsal: { checked: 0 } as never };
    const verdict = (until: Date) => {
      const span = { ...off, until };
      const renewWith = 'kubeadm certs renew apiserver';
      const ends = endsMeanwhile([item('apiserver', { renewWith })], span, NOW);
      return verdictOnHibernation(nothing, { off: span, ends });
    };
    assert.match(verdict(after(99)).answer, /^safe: .+ the last safe wake-up day is 2026-04-10 /);
    const { answer, needsHand } = verdict(after(101));
    assert.match(
      answer,
      /^not safe: .+; after it apiserver ends at 2026-04-11T00:00:00Z: kubeadm certs renew apiserver$/,
    );
    assert.deepEqual(needsHand, ['apiserver ends at 2026-04-11T00:00:00Z: kubeadm certs renew apiserver']);
    assert.equal(verdictOnHibernation(nothing, { off, ends: [] }).isSafe, undefined);
  });
});
