import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { NOW } from '../../inventory/testing.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { Feed } from './feed.ts';
import { MOST_SESSIONS, MOST_SESSIONS_OF_USER, type Principal, SESSION_MS, Sessions } from './sessions.ts';

const clock = new VirtualClock(NOW);

function principalOf(user: string, isOwner = false): Principal {
  const kube = new MemoryKube();
  const feed = new Feed({ kube, server: '', clock });
  return { identity: { user, groups: [] }, isOwner, kube, feed, close: async () => {} };
}

function fill(sessions: Sessions): void {
  for (let place = 0; place < MOST_SESSIONS; place++) sessions.open(principalOf(`user-${place}`));
}

describe('sessions of the console', () => {
  test('a link is good once and for an hour', async () => {
    const clock = new VirtualClock(NOW);
    const sessions = new Sessions(clock);
    const [first, second] = [sessions.makeLink(), sessions.makeLink()];
    assert.notEqual(first, second);
    assert.equal(sessions.useLink(first), true);
    assert.equal(sessions.useLink(first), false);
    await clock.advanceTo(new Date(NOW.getTime() + minutes(61)));
    assert.equal(sessions.useLink(second), false);
    assert.equal(sessions.useLink('guess'), false);
  });

  test('only so many links and sessions at a time; they end by themselves and take their streams along', async () => {
    const clock = new VirtualClock(NOW);
    const unused: Principal[] = [];
    const sessions = new Sessions(clock, left => unused.push(left));
    const oldest = sessions.makeLink();
    for (let count = 0; count < 16; count++) sessions.makeLink();
    assert.equal(sessions.useLink(oldest), false);
    const users = Array.from({ length: MOST_SESSIONS }, (_, index) => principalOf(`user-${index}`));
    const opened = users.map(user => sessions.open(user));
    assert.ok(opened.every(session => session !== undefined));
    const late = principalOf('late');
    assert.equal(sessions.open(late), undefined);
    assert.deepEqual(unused.splice(0), [late], 'credentials of somebody who was refused are not kept');
    let isClosed = false;
    opened[0]?.session.streams.add(() => {
      isClosed = true;
    });
    assert.equal(sessions.find(opened[0]?.cookie), opened[0]?.session);
    await clock.advanceTo(new Date(NOW.getTime() + SESSION_MS + seconds(1)));
    assert.equal(sessions.find(opened[0]?.cookie), undefined);
    assert.equal(isClosed, true);
    assert.deepEqual(unused, users);
    assert.ok(sessions.open(late));
  });

  test('the owner has a place when others have taken all of theirs, and takes none of them', () => {
    const sessions = new Sessions(clock);
    const owner = principalOf('owner', true);
    for (let login = 0; login <= MOST_SESSIONS; login++) assert.notEqual(sessions.open(owner), undefined);
    assert.equal(sessions.all().length, MOST_SESSIONS, 'the oldest made room');
    fill(sessions);
    assert.equal(sessions.all().length, 2 * MOST_SESSIONS);
    assert.equal(sessions.open(principalOf('late')), undefined);
    assert.notEqual(sessions.open(owner), undefined);
  });

  test('a user is one user with however many tokens', () => {
    const sessions = new Sessions(clock);
    const first = sessions.open(principalOf('busy'));
    for (let login = 0; login < MOST_SESSIONS_OF_USER; login++) sessions.open(principalOf('busy'));
    assert.equal(sessions.all().length, MOST_SESSIONS_OF_USER);
    assert.equal(sessions.find(first?.cookie), undefined);
  });

  test('a user of the same name as the owner cannot end the sessions of the owner', () => {
    const sessions = new Sessions(clock);
    const owner = sessions.open(principalOf('admin', true));
    for (let login = 0; login <= MOST_SESSIONS_OF_USER; login++) sessions.open(principalOf('admin'));
    assert.notEqual(sessions.find(owner?.cookie), undefined);
  });

  test('credentials are kept when their last session is over and a new one comes', async () => {
    const clock = new VirtualClock(NOW);
    const unused: Principal[] = [];
    const sessions = new Sessions(clock, principal => unused.push(principal));
    const again = principalOf('again');
    sessions.open(again);
    await clock.advance(SESSION_MS);
    assert.notEqual(sessions.open(again), undefined);
    assert.equal(sessions.all().length, 1);
    assert.deepEqual(unused, []);
  });

  test('credentials are kept when their oldest session makes room for a new one, and dropped when it is refused', () => {
    const unused: Principal[] = [];
    const sessions = new Sessions(clock, principal => unused.push(principal));
    const again = principalOf('busy');
    sessions.open(again);
    for (let login = 1; login < MOST_SESSIONS_OF_USER; login++) sessions.open(principalOf('busy'));
    sessions.open(again);
    assert.equal(unused.length, 0);
    fill(sessions);
    const late = principalOf('late');
    assert.equal(sessions.open(late), undefined);
    assert.ok(unused.includes(late));
  });
});
