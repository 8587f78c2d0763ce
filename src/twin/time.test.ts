import assert from 'node:assert/strict';
import { test } from 'node:test';
import { lull, sleep } from '../kube/clock.ts';
import { days, hours, minutes, seconds } from '../kube/duration.ts';
import { Time } from './time.ts';

const START = new Date('2026-01-01T00:00:00Z');
const at = (ms: number) => new Date(START.getTime() + ms);

function time(leavesLullsOut = true): Time {
  return new Time({ start: START, seed: 'test', leavesLullsOut });
}

test('time jumps to what is due, in its order, one waiter at a time', async () => {
  const { clock, told } = listening();
  void clock.until(at(hours(2))).then(() => told('two hours'));
  void sleep(clock, hours(1)).then(() => told('one hour'));
  void sleep(clock, hours(1)).then(() => told('one hour, later'));
  const { time, heard } = current;
  await time.goOn(at(days(1)), () => heard.push('look'));
  assert.deepEqual(heard, ['look', 'one hour', 'look', 'one hour, later', 'look', 'two hours', 'look', 'look']);
  assert.equal(time.wakes, 3);
});

test('what was given up is not waited for', async () => {
  const one = time();
  const clock = one.clock('a');
  const stop = new AbortController();
  const waiting = sleep(clock, hours(1), stop.signal);
  stop.abort(new Error('given up'));
  await assert.rejects(waiting, /given up/);
  await one.goOn(at(days(1)), () => {});
  assert.equal(one.wakes, 0);
});

test('a wrong clock is wrong by as much all the time, and appointments on it are kept by it', async () => {
  const one = time();
  const clock = one.clock('a', minutes(5));
  let kept = 0;
  void clock.until(at(hours(1))).then(() => {
    kept = one.nowMs;
  });
  await one.goOn(at(hours(2)), () => {});
  assert.equal(kept, START.getTime() + minutes(55));
  assert.equal(clock.now().getTime(), START.getTime() + hours(2) + minutes(5));
});

test('safety nets are left out when nothing changes, and cast again when something does', async () => {
  for (const [leavesLullsOut, most] of [
    [true, 10],
    [false, 1500],
  ] as const) {
    const one = time(leavesLullsOut);
    const clock = one.clock('a');
    let casts = 0;
    let sinceChange = 0;
    void (async () => {
      for (;;) {
        await lull(clock, minutes(1));
        casts++;
        sinceChange++;
      }
    })();
    void one.after(hours(20)).then(() => {
      one.changed();
      sinceChange = 0;
    });
    await one.goOn(at(days(1)), () => {});
    assert.ok(casts <= most, `${casts} casts`);
    assert.ok(leavesLullsOut || casts > 1400);
    assert.ok(sinceChange >= 1, 'nobody looked after the change');
  }
});

test('who polls is heard less and less while nothing changes, and at once when something does', async () => {
  const one = time();
  const clock = one.clock('a');
  const polls: number[] = [];
  void (async () => {
    for (;;) {
      await sleep(clock, seconds(30));
      polls.push(one.nowMs);
    }
  })();
  const changeMs = START.getTime() + days(10) + minutes(1);
  void one.after(days(10) + minutes(1)).then(() => one.changed());
  await one.goOn(at(days(20)), () => {});
  assert.ok(polls.length < 200, `${polls.length} polls`);
  const first = polls.find(poll => poll > changeMs) ?? 0;
  assert.ok(first - changeMs <= seconds(1), 'nobody polled after the change');
  assert.ok(polls.every((poll, index) => index === 0 || poll - (polls[index - 1] ?? 0) <= hours(6) + minutes(1)));
});

let current: { time: Time; heard: string[] };

function listening() {
  current = { time: time(), heard: [] };
  return { clock: current.time.clock('a'), told: (what: string) => current.heard.push(what) };
}
