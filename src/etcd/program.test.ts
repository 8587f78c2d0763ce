import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startEngine } from '../api/api.ts';
import type { Check } from '../controller/health.ts';
import { silentLog } from '../controller/log.ts';
import { createRegistry } from '../controller/metrics.ts';
import { VirtualClock } from '../kube/clock.ts';
import { days, hours, minutes } from '../kube/duration.ts';
import { recordingEvents } from '../kube/events.ts';
import { intercepted } from '../staticpod/testing.ts';
import { chosenProfile } from './chosen-profile.ts';
import { raftTermMetrics } from './metrics.ts';
import { staticPodConfig } from './operator.ts';
import { profileLater } from './profile.ts';
import { etcdProgram } from './program.ts';
import { QuorumReader } from './quorum/reader.ts';
import { FakeMembers } from './quorum/testing.ts';
import { CLUSTER, FEATURE_GATES } from './resources.ts';
import { defineResource, NOW, TestEtcd } from './testing.ts';

const OPERAND = {
  image: 'etcd',
  operatorImage: 'rotunda',
  command: ['rotunda'],
  listenOn: 'all',
  withMetricsProxy: true,
  version: '1',
} as const;

test('the process it runs in asks whether a controller hangs, by the name controller-aliveness (A-5)', async t => {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  t.after(() => engine.close());
  await TestEtcd.create({ kube: engine.kube, clock });
  const hanging = Promise.withResolvers<void>();
  const kube = intercepted(engine.kube, (verb, { kind }) =>
    verb === 'list' && kind === 'Secret' ? hanging.promise : undefined,
  );
  const live: Record<string, Check> = {};
  const events = recordingEvents();
  const program = etcdProgram({
    kube,
    clock,
    events,
    log: silentLog,
    operand: OPERAND,
    live,
    members: new FakeMembers(),
  });
  assert.deepEqual(live, {});
  const stop = new AbortController();
  const running = program.run(stop.signal);
  const check = async () => live['controller-aliveness']?.(stop.signal);
  await check();
  await clock.advance(minutes(4));
  await check();
  await clock.advance(minutes(1));
  await assert.rejects(check(), /no pass has ended in time: .*EtcdCertSignerController \(5m0s\)/);
  hanging.resolve();
  stop.abort();
  await clock.advance(minutes(1));
  await running.catch(() => {});
});

test('guards are wanted where there is more than one node, once that is known (section 8)', async t => {
  const engine = await startEngine({ clock: new VirtualClock(NOW) });
  t.after(() => engine.close());
  const etcd = await TestEtcd.create({ kube: engine.kube, nodes: {} });
  const quorum = new QuorumReader({ kube: engine.kube, members: etcd.members });
  const guard = (operand: object) =>
    staticPodConfig({ profile: profileLater(), operand: { ...OPERAND, ...operand }, log: silentLog }, quorum).guard;
  const { wanted, port, path } = guard({ guards: true }) ?? assert.fail('no guard');
  assert.deepEqual([port, path], [9980, 'readyz']);
  assert.equal(await wanted(), undefined);
  await etcd.addNode('master-0', ['10.0.0.1']);
  assert.equal(await wanted(), false);
  await etcd.addNode('master-1', ['10.0.0.2']);
  assert.equal(await wanted(), true);
  assert.equal(guard({}), undefined);
});

test('the layout is chosen, and lifetimes are short where the feature gate ShortCertRotation is on (12.1)', async t => {
  const engine = await startEngine({ clock: new VirtualClock(NOW) });
  t.after(() => engine.close());
  const { kube } = engine;
  const chosen = (choice: Parameters<typeof chosenProfile>[1]) => chosenProfile(kube, choice);
  assert.equal((await chosen({ layout: '4.16' })).handOver, 'manual');
  const old = (await chosen({ layout: '4.16' })).lifetimes;
  assert.deepEqual(
    [old.leaf, old.signer],
    [
      { validityMs: days(1095), refreshMs: days(803) },
      { validityMs: days(1825), refreshMs: days(1533) },
    ],
    'leaves of 4.16 live three years, its signers five (spec 40, 1.2)',
  );
  assert.equal((await chosen({ layout: 'later' })).lifetimes.leaf.validityMs, days(1825), 'no such kind');
  await defineResource(kube, FEATURE_GATES);
  const gate = await kube.create(FEATURE_GATES, { metadata: CLUSTER });
  assert.equal((await chosen({ layout: 'later' })).lifetimes.leaf.validityMs, days(1825));
  const enabled = [{ name: 'ShortCertRotation' }];
  await kube.updateStatus(FEATURE_GATES, {
    ...gate,
    status: { featureGates: [{ version: '4.17', enabled }] },
  } as never);
  const { lifetimes } = await chosen({ layout: 'later' });
  assert.deepEqual([lifetimes.leaf.validityMs, lifetimes.signer.validityMs], [hours(2), hours(4)]);
  assert.equal((await chosen({ layout: 'later', dayMs: 1000 })).lifetimes.leaf.validityMs, 1825 * 1000);
});

test('raft terms are counted by member, and forgotten with it (Q-7)', async () => {
  const registry = createRegistry();
  const told = raftTermMetrics(registry);
  const members = new FakeMembers();
  members.add('a', '10.0.0.1');
  members.add('b', '10.0.0.2');
  const [a, b] = await members.health();
  assert.ok(a && b);
  told([
    { ...a, raftTerm: 7 },
    { ...b, raftTerm: 8 },
  ]);
  told([a]);
  const text = await registry.metrics();
  assert.match(
    text,
    /# TYPE etcd_debugging_raft_terms_total counter\netcd_debugging_raft_terms_total\{member="a"\} 7\n/,
  );
  assert.doesNotMatch(text, /member="b"/);
});
