import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../controller/log.ts';
import { VirtualClock } from '../kube/clock.ts';
import { StatusPublisher } from './status-publisher.ts';

test('the newest state is written in the end, whatever fails in between', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  let state = 0;
  const written: number[] = [];
  let failures = 3;
  const publisher = new StatusPublisher(
    async () => {
      if (failures-- > 0) throw new Error('no API');
      written.push(state);
    },
    clock,
    silentLog,
  );
  for (state = 1; state < 5; state++) publisher.publish();
  await clock.advance(60_000);
  await publisher.flushed();
  assert.deepEqual(written, [5]);
  state = 6;
  publisher.publish();
  await publisher.flushed();
  assert.deepEqual(written, [5, 6]);
  failures = Number.POSITIVE_INFINITY;
  publisher.publish();
  await clock.advance(1000);
  await publisher.stop();
  publisher.publish();
  await publisher.flushed();
  assert.deepEqual(written, [5, 6]);
});
