/** Pools of many nodes on the embedded API with a virtual clock: never more of them unavailable than they may be. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { hours, minutes } from '../../src/kube/duration.ts';
import { Fleet } from './fleet.ts';

describe('a rollout within maxUnavailable', () => {
  test('1,000 nodes in 5 pools, 10 % at a time, while nodes turn not ready at random', async () => {
    const fleet = await Fleet.create({
      pools: ['worker', 'a', 'b', 'c', 'd'],
      nodesPerPool: 200,
      maxUnavailable: '10%',
      seed: 1,
    });
    try {
      fleet.cluster.startController(fleet.controllerApi());
      await fleet.populate();
      const trouble = new AbortController();
      const disturbing = fleet.disturb(trouble.signal);
      await fleet.change('one');
      await fleet.cluster.until('every pool has a new target', () => fleet.targeted > 0, minutes(5));
      await fleet.cluster.until('the rollout is half way', () => fleet.targeted >= 500, hours(2));
      trouble.abort();
      await disturbing;
      await fleet.cluster.until('all pools are updated', () => fleet.isUpdated(), hours(4));
      assert.equal(fleet.targeted, 1000);
      fleet.assertSafe();
      for (const [pool, peak] of fleet.peak) assert.ok(peak > 10 && peak <= 20, `${pool}: ${peak} nodes at once`);
    } finally {
      await fleet.cluster.stop();
    }
  });

  for (const seed of [2, 3, 4]) {
    test(`three controllers that stall, one of which is lost on the way and replaced (seed ${seed})`, async () => {
      const fleet = await Fleet.create({
        pools: ['worker', 'a'],
        nodesPerPool: 30,
        maxUnavailable: '10%',
        seed,
        stalls: true,
        troubleEverySeconds: 30,
      });
      const start = () => fleet.cluster.startController(fleet.controllerApi());
      try {
        const stopFirst = start();
        start();
        start();
        await fleet.populate();
        const trouble = new AbortController();
        const disturbing = fleet.disturb(trouble.signal);
        await fleet.change('one');
        await fleet.cluster.until('the rollout is under way', () => fleet.targeted >= 20, hours(2));
        const stopping = stopFirst();
        start();
        await fleet.change('two');
        await fleet.cluster.until('the second change is under way', () => fleet.targeted >= 50, hours(4));
        await stopping;
        trouble.abort();
        await disturbing;
        await fleet.cluster.until('all pools are updated', () => fleet.isUpdated(), hours(8));
        fleet.assertSafe();
      } finally {
        await fleet.cluster.stop();
      }
    });
  }
});
