import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { previousKey } from '../../hand-over/family.ts';
import { WAIVED } from '../../hand-over/names.ts';
import { days, seconds } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import { EVENTS, NODES, SECRETS } from '../../kube/resource.ts';
import { takeBack, type WayBack, wayBack } from './take-back.ts';
import { HandOverWorld, NEXT } from './testing.ts';
import { waiveNode, whatWaivingMeans } from './waive.ts';

async function waiting(t: TestContext): Promise<HandOverWorld> {
  const world = await HandOverWorld.create(t, 'a', 'b');
  world.missing.add('b');
  await world.force();
  return world;
}

describe('rotunda waive (spec 90, HO-7)', () => {
  test('says by name who will be cut off, and what ends it', async t => {
    const world = await waiting(t);
    const means = async (name: string) => whatWaivingMeans(await world.kube.get(NODES, { name }), [await world.item()]);
    assert.deepEqual(await means('b'), [
      'kubelet on b will refuse what kube-apiserver-to-kubelet-signer signs: has not loaded it',
      'it counts again when node b becomes ready the next time, or with --remove',
    ]);
    assert.match((await means('a'))[0] ?? '', /^no hand-over waits for node a now; those to come will not/);
  });

  test('leaves a note on the Node, and an event on it and beside its operator; a dry run leaves nothing', async t => {
    const world = await waiting(t);
    const now = world.rotation.clock.now();
    const noted = async () => (await world.kube.get(NODES, { name: 'b' })).metadata?.annotations?.[WAIVED];
    const events = async () =>
      (await world.kube.list(EVENTS)).items.map(
        ({ metadata, involvedObject, reason }) => `${metadata.namespace} ${involvedObject.kind} ${reason}`,
      );
    await waiveNode(world.kube, 'b', { isWanted: true, dryRun: true }, now);
    assert.deepEqual([await noted(), await events()], [undefined, []]);
    await waiveNode(world.kube, 'b', { isWanted: true, dryRun: false }, now);
    assert.equal(await noted(), '2026-01-01T00:00:00Z');
    assert.deepEqual((await events()).toSorted(), [
      'default Node HandOverWaived',
      'openshift-kube-apiserver-operator Namespace HandOverWaived',
    ]);
    await waiveNode(world.kube, 'b', { isWanted: false, dryRun: false }, now);
    assert.equal(await noted(), undefined);
    assert.equal((await events()).filter(text => text.endsWith('HandOverWaiverRemoved')).length, 2);
  });
});

describe('rotunda take-back (spec 90, HO-6)', () => {
  const wayOf = async (world: HandOverWorld, mayBeginAgain = false): Promise<WayBack> =>
    wayBack(world.kube, await world.item(), mayBeginAgain, world.rotation.clock.now());

  test('while it is only made known, it goes, and the request that began it', async t => {
    const world = await waiting(t);
    const way = await wayOf(world);
    assert.ok('key' in way && way.key.name === NEXT.name, JSON.stringify(way));
    await takeBack(world.kube, way, true, world.rotation.clock.now());
    await world.settle();
    assert.ok(await getIfPresent(world.kube, SECRETS, NEXT), 'a dry run');
    await takeBack(world.kube, way, false, world.rotation.clock.now());
    await world.settle();
    assert.equal(await getIfPresent(world.kube, SECRETS, NEXT), undefined);
    assert.equal((await world.item()).phase, 'Steady');
    assert.match(((await wayOf(world)) as { refusal: string }).refusal, /^nothing is being handed over/);
    await assert.rejects(
      takeBack(world.kube, way, false, new Date()),
      /it is over: secret .*-next is not there any more/,
    );
  });

  test('a signer that is due by its own dates would begin again: refused, unless that is wanted', async t => {
    const world = await HandOverWorld.create(t, 'a');
    world.missing.add('a');
    const { clock } = world.rotation;
    await clock.advanceTo(new Date(clock.now().getTime() + days(300)));
    await world.settle();
    const before = (await world.item()).next;
    assert.ok(before);
    assert.match(((await wayOf(world)) as { refusal: string }).refusal, /^it is due by its own dates \(past /);
    const way = await wayOf(world, true);
    assert.ok('key' in way && /Another one is made at once/.test(way.says), JSON.stringify(way));
    await clock.advanceTo(new Date(clock.now().getTime() + seconds(1)));
    await takeBack(world.kube, way, false, clock.now());
    await world.settle();
    const { next, phase } = await world.item();
    assert.equal(phase, 'Distributing');
    assert.notEqual(next, before);
  });

  test('once it signs there is a way back only while the pair before is kept', async t => {
    const world = await waiting(t);
    const { current: first } = await world.item();
    world.missing.clear();
    await world.settle();
    const { clock } = world.rotation;
    const way = await wayOf(world);
    assert.ok('key' in way && /signs already: .* is handed over to again/.test(way.says), JSON.stringify(way));
    await takeBack(world.kube, way, false, clock.now());
    await world.settle();
    assert.equal((await world.item()).current, first);
    const { metadata } = await world.item();
    await world.kube.delete(SECRETS, previousKey({ namespace: metadata.namespace ?? '', name: metadata.name ?? '' }));
    assert.match(
      ((await wayOf(world)) as { refusal: string }).refusal,
      /it signs already \(Retiring\), and the pair before/,
    );
  });
});
