import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../controller/log.ts';
import type { LoginSession } from '../../host/port.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { watchLogins } from './login-watch.ts';

class Sessions {
  sessions: LoginSession[] = [];
  #changed: () => void = () => {};
  fails = 0;

  async list(): Promise<LoginSession[]> {
    if (this.fails-- > 0) throw new Error('logind does not answer');
    return this.sessions;
  }

  watch(changed: () => void, signal: AbortSignal): Promise<void> {
    this.#changed = changed;
    return new Promise(resolve => signal.addEventListener('abort', () => resolve(), { once: true }));
  }

  login(id: string): void {
    this.sessions = [...this.sessions, { id, user: 'core', isRemote: true, since: '' }];
    this.#changed();
  }

  logout(id: string): void {
    this.sessions = this.sessions.filter(session => session.id !== id);
    this.#changed();
  }
}

function scene(fails: { list?: number; announce?: number } = {}) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const sessions = new Sessions();
  sessions.fails = fails.list ?? 0;
  let left = fails.announce ?? 0;
  const counts = { logins: 0, announced: 0 };
  const stop = new AbortController();
  const running = watchLogins(
    {
      sessions,
      clock,
      log: silentLog,
      metrics: { login: () => counts.logins++ },
      async announce() {
        if (left-- > 0) throw new Error('the API is away');
        counts.announced++;
      },
    },
    stop.signal,
  );
  const end = async () => {
    stop.abort();
    await running;
  };
  return { clock, sessions, counts, end };
}

test('every login session is counted once and told of, one from before the start too', async () => {
  const { clock, sessions, counts, end } = scene();
  await clock.advance(0);
  assert.deepEqual(counts, { logins: 0, announced: 0 });
  sessions.login('1');
  await clock.advance(0);
  assert.deepEqual(counts, { logins: 1, announced: 1 });
  sessions.login('2');
  sessions.logout('1');
  await clock.advance(0);
  assert.deepEqual(counts, { logins: 2, announced: 2 });
  sessions.logout('2');
  await clock.advance(0);
  sessions.login('1');
  await clock.advance(0);
  assert.deepEqual(counts, { logins: 3, announced: 3 });
  await end();
});

test('what cannot be asked or told is tried again, and nothing is lost or counted twice', async () => {
  const { clock, sessions, counts, end } = scene({ list: 1, announce: 2 });
  sessions.login('7');
  await clock.advance(seconds(10));
  assert.deepEqual(counts, { logins: 1, announced: 1 });
  await end();
});
