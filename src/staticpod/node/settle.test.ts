import assert from 'node:assert/strict';
import { test } from 'node:test';
import { VirtualClock } from '../../kube/clock.ts';
import { PODS } from '../../kube/resource.ts';
import { settle } from './installer.ts';
import { CountingKube, deps, installerPod, NAMESPACE, options } from './installer-testing.ts';
import { temporaryFiles } from './testing.ts';

test('an installer waits for older ones, pauses, and gives way to a newer one', async t => {
  const { files } = await temporaryFiles(t);
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const kube = new CountingKube();
  await installerPod(kube, 'installer-7-master-0.example', false);
  await installerPod(kube, 'installer-6-master-0.example', false);
  await installerPod(kube, 'installer-9-master-1', false, 'master-1');
  let outcome = 'waiting';
  const settled = settle(options(), deps(kube, files, { clock })).then(
    () => {
      outcome = 'proceed';
    },
    (error: Error) => {
      outcome = error.message;
    },
  );
  await clock.advance(20_000);
  assert.equal(outcome, 'waiting');
  await kube.delete(PODS, { namespace: NAMESPACE, name: 'installer-6-master-0.example' });
  await clock.advance(10_000);
  assert.equal(outcome, 'waiting', 'the pause');
  await clock.advance(30_000);
  await settled;
  assert.equal(outcome, 'proceed');

  const late = settle(options(), deps(kube, files, { clock }));
  await installerPod(kube, 'installer-8-master-0.example', false);
  const rejected = assert.rejects(late, /more recent revision present on node: thisRevision=7, moreRecentRevision=8/);
  await clock.advance(60_000);
  await rejected;
});

test('waiting for an installer that never ends is an error after a minute, and can be cancelled (T29)', async t => {
  const { files } = await temporaryFiles(t);
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const kube = new CountingKube();
  await installerPod(kube, 'installer-7-master-0.example', false);
  await installerPod(kube, 'installer-6-master-0.example', false);
  const rejected = assert.rejects(
    settle(options(), deps(kube, files, { clock })),
    /timed out waiting for other installers/,
  );
  await clock.advance(61_000);
  await rejected;
  const stop = new AbortController();
  const cancelled = assert.rejects(settle(options(), deps(kube, files, { clock, signal: stop.signal })), /stop now/);
  await clock.advance(1000);
  stop.abort(new Error('stop now'));
  await cancelled;
});
