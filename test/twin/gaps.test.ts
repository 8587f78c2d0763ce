import assert from 'node:assert/strict';
import { test } from 'node:test';
import { days, hours, minutes } from '../../src/kube/duration.ts';
import type { Fault } from '../../src/twin/fault.ts';
import { type LifeOptions, live } from '../../src/twin/life.ts';
import { shrink } from '../../src/twin/shrink.ts';
import { storyOf } from '../../src/twin/story.ts';

const SIGNER = 'openshift-kube-apiserver-operator/kube-apiserver-to-kubelet-signer';

/** Three of these are to blame, and two are not. */
const FAULTS: readonly Fault[] = [
  { kind: 'compaction', atMs: minutes(30) },
  { kind: 'stopped', atMs: hours(1), forMs: days(6), who: 'agent on worker-0' },
  { kind: 'forced', atMs: hours(2), who: SIGNER },
  { kind: 'forced', atMs: hours(4), who: 'openshift-kube-apiserver/kubelet-client' },
  { kind: 'storm', atMs: hours(3), forMs: hours(1), who: 'kube-controller-manager' },
];
const LIFE: LifeOptions = { seed: 'gap', days: 1, controlPlane: 1, workers: 1, faults: FAULTS };

test('a clock instead of receipts: who has not loaded the new CA refuses, and the story has three faults', async () => {
  assert.deepEqual((await live(LIFE)).violations, [], 'by receipts the signer waits');
  const broken: LifeOptions = { ...LIFE, handOver: 'clock' };
  const shrunk = await shrink(broken, await live(broken), { lives: 20 });
  const { faults = [] } = shrunk.options;
  assert.deepEqual(
    faults.map(({ kind }) => kind),
    ['stopped', 'forced', 'forced'],
  );
  const story = await storyOf(shrunk.options);
  assert.ok(story.length < 15, story.join('\n'));
  const told = story.join('\n');
  assert.match(told, /agent on worker-0 does not run/);
  assert.match(told, new RegExp(`somebody forces ${SIGNER}`));
  assert.match(story.at(-1) ?? '', /^allowed by: T-8: .*\(TargetUpdateRequired\)$/);
  assert.match(told, /kubelet on worker-0 refuses kube-apiserver on master-0/);
});
