/** Rollouts on a simulated three-node control plane: the embedded API, all controllers of an operator, virtual time. */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { startEngine } from '../api/engine.ts';
import { minutes, seconds } from '../kube/duration.ts';
import { NODES, PODS, SECRETS } from '../kube/resource.ts';
import type { StaticPodOperatorConfig } from './config.ts';
import { Simulation } from './simulation.ts';
import { CONFIG, NAMESPACE, secret } from './testing.ts';

async function start(
  t: TestContext,
  config: Partial<StaticPodOperatorConfig> = {},
  spec: object = {},
): Promise<Simulation> {
  const world = await Simulation.start(clock => startEngine({ clock }), config, spec);
  t.after(() => world.stop());
  return world;
}

describe('a rollout over three nodes', () => {
  test('one node at a time moves, and never are two down', async t => {
    const world = await start(t);
    await world.settled(1);
    await world.change('first');
    await world.settled(2);
    assert.equal(world.kubelets.mostDown, 1);
    assert.deepEqual(world.kubelets.order, ['m0@1', 'm1@1', 'm2@1', 'm0@2', 'm1@2', 'm2@2']);
    assert.equal((await world.condition('NodeInstallerProgressing'))?.status, 'False');
    assert.equal(
      (await world.condition('StaticPodsAvailable'))?.message,
      '3 nodes are active; 3 nodes are at revision 2',
    );
  });

  test('nothing is written while there is nothing to do', async t => {
    const world = await start(t);
    await world.settled(1);
    await world.clock.advance(minutes(15));
    const [writes, told] = [world.writes, world.events.length];
    await world.clock.advance(minutes(60));
    assert.equal(world.writes, writes);
    assert.deepEqual(world.events.slice(told), []);
  });

  test('the next node waits until the one before has been ready for long enough', async t => {
    const world = await start(t, { installer: { ...CONFIG.installer, minReadyMs: seconds(30) } });
    await world.settled(1);
    await world.change('first');
    await world.settled(2);
    const starts = world.kubelets.installed.filter(({ revision }) => revision === 2).map(({ at }) => at);
    const ready = world.kubelets.becameReady.filter(({ revision }) => revision === 2).map(({ at }) => at);
    assert.ok((starts[1] as number) - (ready[0] as number) >= seconds(30));
    assert.ok((starts[2] as number) - (ready[1] as number) >= seconds(30));
  });

  test('a revision that does not come up stops at the first node, is reported, and gives way to a newer one', async t => {
    const world = await start(t);
    await world.settled(1);
    await world.change('broken');
    await world.until(
      async () => (await world.nodes()).some(({ targetRevision }) => targetRevision === 2),
      'revision 2 starts',
    );
    await world.clock.advance(minutes(10));
    assert.deepEqual(await world.running(), { m0: '2', m1: '1', m2: '1' });
    assert.equal(world.kubelets.mostDown, 1);
    const degraded = await world.condition('StaticPodsDegraded');
    assert.equal(degraded?.status, 'True');
    assert.match(degraded?.message ?? '', /test-m0 container "operand" is waiting: CrashLoopBackOff: back-off/);
    await world.change('fixed');
    await world.settled(3);
    assert.deepEqual(await world.running(), { m0: '3', m1: '3', m2: '3' });
    assert.equal(world.kubelets.mostDown, 1);
    assert.equal((await world.condition('StaticPodsDegraded'))?.status, 'False');
  });

  test('an operand that ends for good is tried again with growing pauses, on its node alone', async t => {
    const world = await start(t);
    await world.settled(1);
    await world.change('dead');
    await world.until(async () => (await world.nodes())[0]?.lastFailedCount === 3, 'three failures are counted');
    const attempts = world.kubelets.installed.filter(({ revision }) => revision === 2);
    assert.deepEqual(new Set(attempts.map(({ node }) => node)), new Set(['m0']));
    const gaps = attempts.slice(1).map(({ at }, index) => at - (attempts[index]?.at ?? 0));
    assert.ok((gaps[0] as number) > seconds(15) && (gaps[1] as number) > (gaps[0] as number));
    const [first] = await world.nodes();
    assert.equal(first?.lastFailedReason, 'OperandFailed');
    assert.deepEqual(first?.lastFailedRevisionErrors, ['exec format error']);
    await world.change('fixed');
    await world.settled(3);
  });

  test('an installer that fails is tried again, and the failure is shown while it lasts', async t => {
    const world = await start(t);
    await world.settled(1);
    world.kubelets.failInstallers = 2;
    await world.change('first');
    await world.until(
      async () => (await world.condition('NodeInstallerDegraded'))?.status === 'True',
      'the failure is shown',
    );
    const { reason, message } = (await world.condition('NodeInstallerDegraded')) ?? {};
    assert.equal(reason, 'InstallerPodFailed');
    assert.equal(message, '1 nodes are failing on revision 2:\ninstaller: no space left on device');
    await world.settled(2);
    assert.equal((await world.condition('NodeInstallerDegraded'))?.status, 'False');
    assert.equal(world.kubelets.mostDown, 1);
  });

  test('no healthy node is touched while another one is down', async t => {
    const world = await start(t);
    await world.settled(1);
    await world.kubelets.setReady('m2', false);
    await world.change('first');
    await world.until(async () => (await world.nodes())[2]?.currentRevision === 2, 'the node that is down comes first');
    await world.settled(2);
    assert.deepEqual(world.kubelets.order.slice(3), ['m2@2', 'm0@2', 'm1@2']);
    assert.equal(world.kubelets.mostDown, 1);
  });

  test('a node that went down after its turn holds up the others until it is back', async t => {
    const world = await start(t);
    await world.settled(1);
    await world.change('first');
    await world.until(async () => (await world.nodes())[0]?.currentRevision === 2, 'the first node is done');
    await world.kubelets.setReady('m0', false);
    await world.clock.advance(minutes(5));
    const moved = (await world.nodes()).filter(({ currentRevision }) => currentRevision === 2).length;
    assert.ok(moved <= 2, 'a node that was under way may finish');
    assert.ok(
      (await world.nodes()).some(({ currentRevision }) => currentRevision === 1),
      'the last one waits',
    );
    await world.kubelets.setReady('m0', true);
    await world.settled(2);
  });

  test('a gate that says no holds the next node, and says why', async t => {
    let isSafe = false;
    const world = await start(t, {
      mayDisrupt: async ({ nodeName, isOperandReady }) =>
        isSafe || nodeName !== 'm1' || !isOperandReady
          ? { allowed: true }
          : { allowed: false, reason: 'quorum would be lost' },
    });
    await world.settled(1);
    await world.change('first');
    await world.until(async () => (await world.nodes())[0]?.currentRevision === 2, 'the first node is done');
    await world.clock.advance(minutes(10));
    assert.deepEqual(await world.running(), { m0: '2', m1: '1', m2: '1' });
    const paused = world.events.filter(({ reason }) => reason === 'NodeRolloutPaused').map(({ message }) => message);
    assert.deepEqual(paused, ['Not replacing the operand on node "m1" because quorum would be lost']);
    isSafe = true;
    await world.settled(2);
  });

  test('a node that joins is given the revision, and one that leaves is forgotten', async t => {
    const world = await start(t);
    await world.settled(1);
    await world.addNode('m3');
    await world.until(async () => (await world.nodes())[3]?.currentRevision === 1, 'the new node runs the revision');
    await world.kube.delete(NODES, { name: 'm1' });
    await world.until(async () => (await world.nodes()).length === 3, 'its entry is gone');
    assert.deepEqual(
      (await world.nodes()).map(({ nodeName }) => nodeName),
      ['m0', 'm2', 'm3'],
    );
  });

  test('a node that was replaced under its name starts from nothing', async t => {
    const world = await start(t);
    await world.settled(1);
    await world.kube.delete(NODES, { name: 'm1' });
    await world.kube.delete(PODS, { namespace: NAMESPACE, name: 'test-m1' }, { gracePeriodSeconds: 0 });
    await world.addNode('m1');
    await world.until(async () => world.kubelets.order.length > 3, 'it is installed anew');
    await world.settled(1);
    assert.deepEqual(world.kubelets.order.slice(3), ['m1@1']);
  });

  test('old revisions go, with everything that belongs to them', async t => {
    const world = await start(t, {}, { succeededRevisionLimit: 2, failedRevisionLimit: 2 });
    for (let revision = 1; revision <= 5; revision++) {
      await world.settled(revision);
      if (revision < 5) await world.change(`change ${revision}`);
    }
    await world.until(async () => (await world.revisions()).length === 2, 'only two revisions are left');
    await world.api.idle();
    assert.deepEqual(await world.revisions(), [4, 5]);
    const { items } = await world.kube.list(SECRETS, { namespace: NAMESPACE });
    const names = items.map(({ metadata }) => metadata?.name).filter(name => name?.startsWith('test-secret'));
    assert.deepEqual(new Set(names), new Set(['test-secret', 'test-secret-4', 'test-secret-5']));
  });

  test('a missing Secret is named, and its arrival is enough', async t => {
    const world = await start(t);
    await world.settled(1);
    const stored = await world.kube.get(SECRETS, { namespace: NAMESPACE, name: 'test-secret' });
    await world.kube.delete(SECRETS, { namespace: NAMESPACE, name: 'test-secret' });
    await world.until(
      async () => (await world.condition('RevisionControllerDegraded'))?.status === 'True',
      'it is reported',
    );
    const { reason, message } = (await world.condition('RevisionControllerDegraded')) ?? {};
    assert.deepEqual([reason, message], ['ContentCreationError', 'secrets "test-secret" not found']);
    await world.kube.create(SECRETS, { ...secret('test-secret', { key: 'again' }), type: stored.type as string });
    await world.settled(2);
    assert.equal((await world.condition('RevisionControllerDegraded'))?.status, 'False');
  });
});

describe('an operator in trouble', () => {
  test('that dies at any one of its writes comes back and ends in the same state, no number used twice', async t => {
    const undisturbed = await start(t);
    await twoRevisions(undisturbed);
    const expected = await undisturbed.finalState();
    const { writes } = undisturbed;
    await undisturbed.stop();
    assert.ok(writes > 20, `${writes} writes`);
    for (let at = 1; at <= writes; at++) {
      const world = await start(t);
      world.trouble = { at, kind: 'death' };
      await twoRevisions(world);
      assert.deepEqual(await world.finalState(), expected, `death at write ${at}`);
      assert.equal(world.kubelets.mostDown, 1, `death at write ${at}`);
      world.kubelets.checkNumbers();
      await world.stop();
    }
  });

  test('that never hears the answer to a write which was made does nothing twice', async t => {
    const world = await start(t);
    await world.settled(1);
    for (let [at, revision] = [1, 2]; ; at++, revision++) {
      const before = world.writes;
      world.trouble = { at: before + at, kind: 'lost answer' };
      await world.change(`change ${at}`);
      await world.settled(revision);
      assert.deepEqual(new Set(Object.values(await world.running())), new Set([String(revision)]));
      assert.equal(world.kubelets.mostDown, 1, `answer to write ${at} lost`);
      world.kubelets.checkNumbers();
      if (world.trouble !== undefined) break;
    }
    assert.ok(world.kubelets.order.length > 30, 'every write of a rollout had its turn');
  });
});

/** The second revision comes while the first one is still on its way. */
async function twoRevisions(world: Simulation): Promise<void> {
  await world.until(async () => (await world.nodes())[0]?.currentRevision === 1, 'the first node runs revision 1');
  await world.change('first');
  await world.settled(2);
}
