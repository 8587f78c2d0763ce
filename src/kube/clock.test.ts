import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { atLeastSince, atMostSince, mark, sleep, systemClock, VirtualClock } from './clock.ts';
import { hours, minutes, seconds } from './duration.ts';

describe('VirtualClock', () => {
  const start = () => new VirtualClock('2024-01-01T00:00:00Z');

  it('stands still, and refuses to start at no time', () => {
    const clock = start();
    assert.equal(clock.now().getTime(), clock.now().getTime());
    assert.throws(() => new VirtualClock('yesterday'), RangeError);
  });

  it('wakes in order of time and lets each go on before the next', async () => {
    const clock = start();
    const log: string[] = [];
    const after = async (name: string, ms: number) => {
      await sleep(clock, ms);
      log.push(`${name} ${clock.now().toISOString().slice(14, 19)}`);
    };
    const all = [after('b', minutes(2)), after('a', minutes(1)), after('c', minutes(3))];
    void (async () => {
      await sleep(clock, minutes(1));
      await after('chained', seconds(30));
    })();
    await clock.advance(minutes(2));
    assert.deepEqual(log, ['a 01:00', 'chained 01:30', 'b 02:00']);
    assert.equal(clock.nextWait()?.toISOString(), '2024-01-01T00:03:00.000Z');
    await clock.advanceTo(new Date('2024-01-01T01:00:00Z'));
    await Promise.all(all);
    assert.equal(clock.nextWait(), undefined);
    assert.equal(clock.now().toISOString(), '2024-01-01T01:00:00.000Z');
  });

  it('an abort rejects with its reason and leaves no wait', async () => {
    const clock = start();
    for (const wait of [
      (signal: AbortSignal) => clock.until(new Date('2025-01-01'), signal),
      (signal: AbortSignal) => clock.pause(1000, signal),
    ]) {
      const stop = new AbortController();
      const waiting = wait(stop.signal);
      stop.abort(new Error('enough'));
      await assert.rejects(waiting, { message: 'enough' });
      await assert.rejects(wait(stop.signal), { message: 'enough' });
      assert.equal(clock.nextWait(), undefined);
    }
  });

  it('wakes after a fraction of a millisecond, too', async () => {
    const clock = start();
    const waiting = sleep(clock, 0.25);
    await clock.advance(1);
    await waiting;
  });

  it('a time that has come is no wait', async () => {
    const clock = start();
    await clock.until(clock.now());
    await sleep(clock, 0);
  });

  it('a jump moves appointments closer, but not pauses', async () => {
    const clock = start();
    const done: string[] = [];
    const appointment = clock.until(new Date('2024-01-01T01:00:00Z')).then(() => done.push('appointment'));
    const pause = sleep(clock, minutes(10)).then(() => done.push('pause'));
    clock.jumpTo(new Date('2024-01-01T00:59:00Z'));
    await clock.advance(minutes(1));
    assert.deepEqual(done, ['appointment']);
    await clock.advance(minutes(9));
    await Promise.all([appointment, pause]);
    assert.deepEqual(done, ['appointment', 'pause']);
  });

  it('measures with the careful one of two clocks', async () => {
    const clock = start();
    const since = mark(clock);
    await clock.advance(minutes(1));
    clock.jumpTo(new Date(clock.now().getTime() + hours(1)));
    assert.equal(atMostSince(clock, since), hours(1) + minutes(1));
    assert.equal(atLeastSince(clock, since), minutes(1));
    clock.jumpTo(new Date(clock.now().getTime() - hours(2)));
    assert.equal(atMostSince(clock, since), minutes(1));
  });
});

describe('systemClock', () => {
  it('waits, and stops waiting on demand', async () => {
    const begun = performance.now();
    await sleep(systemClock, 5);
    assert.ok(performance.now() - begun >= 4);
    await systemClock.until(new Date(Date.now() - 1000));
    for (const wait of [
      (signal: AbortSignal) => sleep(systemClock, hours(10_000), signal),
      (signal: AbortSignal) => systemClock.until(new Date(Date.now() + hours(10_000)), signal),
    ]) {
      const stop = new AbortController();
      const waiting = wait(stop.signal);
      stop.abort(new Error('enough'));
      await assert.rejects(waiting, { message: 'enough' });
    }
  });

  it('a clock that knows only the time of day can be measured with, too', async () => {
    let now = 1000;
    const clock = { now: () => new Date(now), until: () => Promise.resolve() };
    const since = mark(clock);
    now = 3000;
    assert.equal(atMostSince(clock, since), 2000);
    assert.equal(atLeastSince(clock, since), 2000);
    await sleep(clock, 5);
  });
});
