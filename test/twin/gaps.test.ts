import assert from 'node:assert/strict';
import { test } from 'node:test';
import { days, hours, minutes } from '../../src/kube/duration.ts';
import type { Fault } from '../../src/twin/fault.ts';
import { type LifeOptions, live } from '../../src/twin/life.ts';
import { shrink } from '../../src/twin/shrink.ts';
import { storyOf } from '../../src/twin/story.ts';
import { dropsOldCaEarly, takesStartedForReady } from './known-gaps.ts';

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

test('a bundle that drops the old CA while it still signs: one forced signer, and kubelets refuse at the next reload', async () => {
  const faults: readonly Fault[] = [
    { kind: 'compaction', atMs: minutes(30) },
    { kind: 'forced', atMs: hours(2), who: SIGNER },
  ];
  const life: LifeOptions = { seed: 'gap', days: 1, controlPlane: 1, workers: 1, faults };
  assert.deepEqual((await live(life)).violations, [], 'the old CA stays as long as it is valid');
  const story = await shortestStory({ ...life, broken: dropsOldCaEarly('kube-apiserver-client-ca') }, [
    { kind: 'forced', atMs: hours(2), who: SIGNER },
  ]);
  assert.match(story, /somebody forces \S+\/kube-apiserver-to-kubelet-signer/);
  assert.match(story, /kubelet on master-0 refuses kube-apiserver on master-0 \(kube-apiserver to kubelets\)/);
});

test('two nodes at once: a kube-apiserver that was started is taken to be ready, and the next one stops', async () => {
  const toBlame: readonly Fault[] = [
    { kind: 'slow node', atMs: hours(1), forMs: hours(4), who: 'master-0', times: 10 },
    { kind: 'forced', atMs: hours(2), who: 'openshift-etcd/etcd-signer' },
  ];
  const faults: readonly Fault[] = [{ kind: 'compaction', atMs: minutes(30) }, ...toBlame];
  const life: LifeOptions = { seed: 'gap', days: 0.2, controlPlane: 3, workers: 0, faults };
  assert.deepEqual((await live(life)).violations, [], 'the next node waits for a slow one');
  // So many find out that one of the faults was not to blame.
  const story = await shortestStory({ ...life, broken: takesStartedForReady }, toBlame, 4);
  assert.match(
    story,
    /kube-apiserver on master-0 starts, revision 2\n.*kube-apiserver on master-1 stops, revision 1\n/,
  );
  assert.match(story, /BROKEN: one control-plane node at a time: kube-apiserver is down on master-0 and master-1$/);
});

/** What is left of a life in which something breaks: these faults, and a story that somebody will read. */
async function shortestStory(broken: LifeOptions, faults: readonly Fault[], lives = 20): Promise<string> {
  const { options } = await shrink(broken, await live(broken), { lives });
  assert.deepEqual(options.faults, faults);
  const story = await storyOf(options);
  assert.ok(story.length > 0 && story.length < 15, story.join('\n'));
  return story.join('\n');
}
