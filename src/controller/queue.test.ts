import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { VirtualClock } from '../kube/clock.ts';
import { milliseconds, seconds } from '../kube/duration.ts';
import { WorkQueue } from './queue.ts';
import { RetryLimiter, retryPauseMs } from './rate-limit.ts';

const START = '2026-01-01T00:00:00Z';

/** Takes what can be taken now. */
async function drain(queue: WorkQueue): Promise<string[]> {
  const keys: string[] = [];
  while (queue.size > 0) keys.push((await queue.take()) as string);
  return keys;
}

describe('work queue', () => {
  it('a key waits once, in the order of arrival (3.1)', async () => {
    const queue = new WorkQueue(new VirtualClock(START));
    for (const key of ['a', 'b', 'a', 'c', 'b']) queue.add(key);
    assert.deepEqual(await drain(queue), ['a', 'b', 'c']);
  });

  it('a key added while in work comes once more afterwards, and never to two at a time (3.1)', async () => {
    const queue = new WorkQueue(new VirtualClock(START));
    queue.add('a');
    assert.equal(await queue.take(), 'a');
    queue.add('a');
    queue.add('a');
    assert.equal(queue.size, 0);
    queue.done('a');
    assert.deepEqual(await drain(queue), ['a']);
    queue.done('a');
    assert.equal(queue.size, 0);
  });

  it('who waits is given the next key', async () => {
    const queue = new WorkQueue(new VirtualClock(START));
    const [first, second] = [queue.take(), queue.take()];
    queue.add('a');
    queue.add('a');
    queue.add('b');
    assert.deepEqual(await Promise.all([first, second]), ['a', 'b']);
    queue.done('a');
    assert.deepEqual(await drain(queue), ['a']);
  });

  it('comes at the time asked for; the earliest of several counts (3.9)', async () => {
    const clock = new VirtualClock(START);
    const queue = new WorkQueue(clock);
    const at = (ms: number) => new Date(Date.parse(START) + ms);
    queue.addAt('a', at(seconds(10)));
    queue.addAt('a', at(seconds(5)));
    queue.addAt('a', at(seconds(20)));
    queue.addAt('past', at(-1));
    assert.deepEqual(await drain(queue), ['past']);
    await clock.advance(seconds(5) - 1);
    assert.deepEqual(await drain(queue), []);
    await clock.advance(1);
    assert.deepEqual(await drain(queue), ['a']);
    queue.done('a');
    await clock.advance(seconds(60));
    assert.deepEqual(await drain(queue), []);
  });

  it('retries come later each time, until the key is forgotten (3.9)', async () => {
    const clock = new VirtualClock(START);
    const queue = new WorkQueue(clock);
    const pauses: number[] = [];
    for (let round = 0; round < 4; round += 1) {
      const before = clock.now().getTime();
      queue.retry('a');
      await clock.advanceTo(clock.nextWait() ?? clock.now());
      pauses.push(clock.now().getTime() - before);
      assert.deepEqual(await drain(queue), ['a']);
      queue.done('a');
      if (round === 2) queue.forget('a');
    }
    assert.deepEqual(pauses, [5, 10, 20, 5]);
  });

  it('an event bypasses the pause of a retry', async () => {
    const queue = new WorkQueue(new VirtualClock(START));
    queue.retry('a');
    queue.add('a');
    assert.deepEqual(await drain(queue), ['a']);
    queue.close();
  });

  it('closing drops what waits, frees who waits, and leaves no timer', async () => {
    const clock = new VirtualClock(START);
    const queue = new WorkQueue(clock);
    queue.add('a');
    assert.equal(await queue.take(), 'a');
    const waiting = queue.take();
    queue.add('a');
    queue.retry('b');
    queue.addAt('c', new Date(Date.parse(START) + 1));
    queue.close();
    assert.equal(await waiting, undefined);
    assert.equal(await queue.take(), undefined);
    queue.done('a');
    queue.add('d');
    queue.retry('e');
    assert.equal(queue.size, 0);
    assert.equal(clock.nextWait(), undefined);
  });

  it('tells its observer', async () => {
    const seen: string[] = [];
    const clock = new VirtualClock(START);
    const observer = {
      added: () => seen.push('added'),
      retried: () => seen.push('retried'),
      depth: (n: number) => seen.push(`${n}`),
    };
    const queue = new WorkQueue(clock, observer);
    queue.add('a');
    queue.add('a');
    await queue.take();
    queue.retry('a');
    queue.close();
    assert.deepEqual(seen, ['added', '1', '0', 'retried', '0']);
  });

  it('whatever happens, a key is in work once at most and nothing added is lost', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.record({ act: fc.constantFrom('add', 'take', 'done'), key: fc.constantFrom('a', 'b', 'c') })),
        async steps => {
          const queue = new WorkQueue(new VirtualClock(START));
          const inWork = new Set<string>();
          const pending = new Set<string>();
          for (const { act, key } of steps) {
            if (act === 'add') {
              queue.add(key);
              pending.add(key);
            } else if (act === 'done' && inWork.delete(key)) queue.done(key);
            else if (act === 'take' && queue.size > 0) {
              const taken = (await queue.take()) as string;
              assert.equal(inWork.has(taken), false);
              assert.equal(pending.delete(taken), true);
              inWork.add(taken);
            }
          }
          for (const key of inWork) queue.done(key);
          assert.deepEqual(new Set(await drain(queue)), pending);
        },
      ),
    );
  });
});

describe('retry limits', () => {
  it('5 ms doubled up to 1000 s (3.9)', () => {
    assert.deepEqual([0, 1, 2, 10, 17, 18, 10_000].map(retryPauseMs), [5, 10, 20, 5120, 655_360, 1_000_000, 1_000_000]);
  });

  it('all keys together: a burst of 100, then 10 a second (3.9)', async () => {
    const clock = new VirtualClock(START);
    const limiter = new RetryLimiter(clock);
    const pause = (n: number) => limiter.next(`key ${n}`);
    for (let n = 0; n < 100; n += 1) assert.equal(pause(n), milliseconds(5));
    assert.equal(pause(100), 100);
    assert.equal(pause(101), 200);
    await clock.advance(seconds(1));
    assert.ok(Math.abs(pause(102) - 5) < 1e-6);
    await clock.advance(seconds(1000));
    for (let n = 200; n < 300; n += 1) assert.equal(pause(n), milliseconds(5));
    assert.equal(pause(300), 100);
  });
});
