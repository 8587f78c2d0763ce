import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { test } from 'node:test';
import { closeAtOnce, listenOn } from '../../kube/listen.ts';
import type { FeedMessage } from './feed.ts';
import type { Session } from './sessions.ts';
import { streamModel } from './stream.ts';

/** More than the buffers of a connection take, less than what makes a reader too slow. */
const SNAPSHOT_LENGTH = 6 * 1024 * 1024;

test('what is told after a session ended, to somebody who has not read all of it, is lost and harms nobody', async () => {
  const listeners = new Set<(message: FeedMessage) => void>();
  const message = (id: string, data: string): FeedMessage => ({ id, event: 'patch', data });
  const feed = {
    start: async () => {},
    snapshot: () => message('0', JSON.stringify('x'.repeat(SNAPSHOT_LENGTH))),
    since: () => undefined,
    subscribe(listener: (message: FeedMessage) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const session = { streams: new Set<() => void>(), principal: { feed } } as unknown as Session;
  const server = createServer();
  const port = await listenOn(server, 0, '127.0.0.1');
  const asked = once(server, 'request');
  const client = connect(port, '127.0.0.1').on('error', () => {});
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
  const [request, response] = (await asked) as [Parameters<typeof streamModel>[0], ServerResponse];
  await streamModel(request, response, session);
  for (const end of session.streams) end();
  assert.equal(response.closed, false, 'something is still to be read');
  for (const listener of listeners) listener(message('1', '{}'));
  // Where a failed write comes up.
  await new Promise(resolve => setImmediate(resolve));
  client.destroy();
  await once(response, 'close');
  await closeAtOnce(server);
});
