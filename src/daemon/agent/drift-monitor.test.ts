import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../controller/log.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { DriftMonitor } from './drift-monitor.ts';

function scene() {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const disk = { problem: undefined as string | undefined, looks: 0, watched: [] as readonly string[], watches: 0 };
  let changed: (path: string) => void = () => {};
  const heard: (string | undefined)[] = [];
  const monitor = new DriftMonitor({
    files: {
      watch(paths, tell, signal) {
        disk.watched = paths;
        disk.watches++;
        changed = tell;
        return new Promise(resolve =>
          signal.addEventListener(
            'abort',
            () => {
              disk.watches--;
              resolve();
            },
            { once: true },
          ),
        );
      },
    },
    clock,
    log: silentLog,
    onChange: problem => heard.push(problem),
  });
  const subject = {
    config: 'rendered-1',
    paths: ['/etc/a', '/etc/missing'],
    async validate() {
      disk.looks++;
      return disk.problem;
    },
  };
  return { clock, disk, heard, monitor, subject, change: (path: string) => changed(path) };
}

test('a swarm of changes is one look, and only differences are told', async () => {
  const { clock, disk, heard, monitor, subject, change } = scene();
  await monitor.start(subject);
  await clock.advance(0);
  assert.deepEqual([disk.looks, disk.watched, monitor.watching], [1, ['/etc/a', '/etc/missing'], 'rendered-1']);
  disk.problem = 'content mismatch for file "/etc/a"';
  for (let touch = 0; touch < 50; touch++) change('/etc/a');
  await clock.advance(seconds(1));
  assert.deepEqual([disk.looks, heard], [2, ['content mismatch for file "/etc/a"']]);
  change('/etc/a');
  await clock.advance(seconds(1));
  assert.equal(heard.length, 1);
  disk.problem = undefined;
  change('/etc/a');
  await clock.advance(seconds(1));
  assert.deepEqual(heard.slice(1), [undefined]);
  await monitor.stop();
});

test('a change that no watch told of is found all the same', async () => {
  const { clock, disk, heard, monitor, subject } = scene();
  await monitor.start(subject);
  await clock.advance(0);
  disk.problem = 'gone';
  await clock.advance(minutes(11));
  assert.deepEqual(heard, ['gone']);
  await monitor.stop();
});

test('at most one runs, and nothing is left of a stopped one', async () => {
  const { clock, disk, heard, monitor, subject, change } = scene();
  await monitor.start(subject);
  await monitor.start({ ...subject, config: 'rendered-2' });
  await clock.advance(0);
  assert.deepEqual([disk.watches, monitor.watching], [1, 'rendered-2']);
  assert.equal(await monitor.stop(), true);
  assert.equal(await monitor.stop(), false);
  disk.problem = 'late';
  change('/etc/a');
  await clock.advance(minutes(20));
  assert.deepEqual([disk.watches, heard, clock.nextWait()], [0, [], undefined]);
});
