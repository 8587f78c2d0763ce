import assert from 'node:assert/strict';
import { test } from 'node:test';
import { againWhileTransient } from './again.ts';
import { VirtualClock } from './clock.ts';
import { minutes, seconds } from './duration.ts';
import { ConnectionError, KubeError } from './error.ts';

const away = () => new ConnectionError('ECONNREFUSED', 'nobody listens');

/** What comes of an attempt, with a clock that moves as long as somebody waits for it. */
async function outcomeOf<T>(clock: VirtualClock, work: Promise<T>): Promise<T | Error> {
  let isOver = false;
  const outcome = work.catch((error: Error) => error).finally(() => (isOver = true));
  while (!isOver) await clock.advance(seconds(1));
  return outcome;
}

test('what fails because the API is away is tried again until it works', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const failures = [away(), new KubeError(503, 'ServiceUnavailable', 'later'), new KubeError(429, 'TooMany', 'busy')];
  const told: unknown[] = [];
  const attempt = async () => {
    const failure = failures.shift();
    if (failure !== undefined) throw failure;
    return 'worked';
  };
  const work = againWhileTransient(attempt, { clock, onError: error => told.push(error) });
  assert.equal(await outcomeOf(clock, work), 'worked');
  assert.equal(told.length, 3);
});

test('an answer is final, and so is the end of the time', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  let attempts = 0;
  const refused = new KubeError(403, 'Forbidden', 'not for you');
  const final = againWhileTransient(
    async () => {
      attempts++;
      throw refused;
    },
    { clock },
  );
  assert.equal(await outcomeOf(clock, final), refused);
  assert.equal(attempts, 1);
  const late = againWhileTransient(() => Promise.reject(away()), { clock, limitMs: minutes(1) });
  const begun = clock.now().getTime();
  assert.match(String(await outcomeOf(clock, late)), /nobody listens/);
  const tookMs = clock.now().getTime() - begun;
  assert.ok(tookMs > seconds(50) && tookMs < seconds(65), `${tookMs} ms`);
});

test('an abort ends the wait with its reason', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const stop = new AbortController();
  const work = againWhileTransient(() => Promise.reject(away()), { clock, signal: stop.signal });
  stop.abort(new Error('stopped'));
  assert.match(String(await outcomeOf(clock, work)), /stopped/);
});
