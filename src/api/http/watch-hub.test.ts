import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientRequest, createServer, type IncomingMessage, request, type Server } from 'node:http';
import { connect, createServer as createHttp2Server, type Http2Server } from 'node:http2';
import type { AddressInfo } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { VirtualClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { type Engine, startEngine } from '../engine.ts';
import type { Kind } from '../kinds/kind.ts';
import type { View } from './encode.ts';
import { Exchange, type Response, type ServerRequest } from './exchange.ts';
import { MAX_UNREAD_TOGETHER, WatchHub } from './watch-hub.ts';
import type { LineWriter } from './watch-stream.ts';

const MIB = 1024 * 1024;
const WATCHES = 40;
/** Objects of 10 KiB: 5 MiB for each watch that begins with the state, 200 MiB for all of them. */
const OBJECTS = 500;

describe('watches that nobody reads', () => {
  let engine: Engine;
  let hub: WatchHub;
  let http1: Server;
  let http2: Http2Server;
  /** All objects that a watch begins with: ours, and what every namespace has. */
  let objects: number;
  const writers: LineWriter[] = [];
  const clients: ClientRequest[] = [];
  /** Bytes that connections hold and no client has taken. */
  const buffered = () => writers.reduce((sum, { writableLength }) => sum + writableLength, 0);

  before(async () => {
    engine = await startEngine({ clock: new VirtualClock('2026-01-01T00:00:00Z') });
    for (let index = 0; index < OBJECTS; index++) await write(index, 'first');
    hub = new WatchHub(() => engine.core.store.revision);
    const kind = engine.core.registry.find('', 'v1', 'configmaps') as Kind;
    objects = engine.core.store.count(kind.bucket);
    const view: View = { kind, format: 'json', as: undefined, includeObject: 'Object', now: () => new Date() };
    const serve = (incoming: ServerRequest, response: Response) => {
      const exchange = new Exchange(incoming, response);
      const writer = exchange.stream('application/json');
      writers.push(writer);
      const { store } = engine.core;
      const stream = hub.open(view, writer, { allowBookmarks: false, timeoutSeconds: undefined }, sink => {
        for (const entry of store.list(kind.bucket)) sink.event('ADDED', entry);
        return store.watch(kind.bucket, store.revision, ({ entry }) => sink.event('MODIFIED', entry));
      });
      exchange.closed.addEventListener('abort', () => stream.gone());
    };
    http1 = createServer(serve).listen(0, '127.0.0.1');
    http2 = createHttp2Server(serve).listen(0, '127.0.0.1');
    await Promise.all([once(http1, 'listening'), once(http2, 'listening')]);
  });
  after(async () => {
    for (const client of clients) client.destroy();
    hub.close();
    http1.closeAllConnections();
    http1.close();
    http2.close();
    await engine.close();
  });

  const portOf = (server: Server | Http2Server) => (server.address() as AddressInfo).port;
  const write = (index: number, text: string) =>
    engine.kube.patch(
      CONFIG_MAPS,
      { name: `c${index}`, namespace: 'default' },
      {
        type: 'apply',
        body: {
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: { name: `c${index}`, namespace: 'default' },
          data: { text: text.repeat((10 * 1024) / text.length) },
        },
      },
      { fieldManager: 'test', force: true },
    );

  /** A client that has asked and takes nothing. */
  async function silent(): Promise<IncomingMessage> {
    const asked = request({ port: portOf(http1), host: '127.0.0.1', agent: false }).end();
    clients.push(asked);
    asked.on('error', () => {});
    const [answer] = (await once(asked, 'response')) as [IncomingMessage];
    return answer.on('error', () => {});
  }

  it('hold references to the state, not copies of it', async () => {
    const session = connect(`http://127.0.0.1:${portOf(http2)}`);
    const answers: IncomingMessage[] = [];
    for (let index = 0; index < WATCHES; index++) answers.push(await silent());
    for (let index = 0; index < WATCHES; index++) {
      const stream = session.request({ ':path': '/' });
      stream.on('error', () => {}).pause();
      await once(stream, 'response');
    }
    assert.equal(hub.size, 2 * WATCHES);
    assert.ok(buffered() < 20 * MIB, `${buffered() / MIB} MiB`);
    assert.ok(hub.unread < 32 * MIB, `${hub.unread / MIB} MiB`);
    const gone = once(session, 'close');
    session.destroy();
    await gone;
    // Who begins to read gets everything.
    let text = '';
    for await (const chunk of answers[0] as IncomingMessage) {
      text += String(chunk);
      if (text.split('\n').length > objects) break;
    }
    assert.equal(text.split('\n').filter(line => line.startsWith('{"type":"ADDED"')).length, objects);
  });

  it('are cut off when they leave too much unread together, and their memory is given back', async () => {
    const reader = await silent();
    let [read, rest] = [0, ''];
    reader.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (rest + chunk).split('\n');
      rest = lines.pop() ?? '';
      read += lines.length;
    });
    const before = hub.size;
    let [changes, most] = [0, 0];
    for (let round = 0; hub.size > 1; round++) {
      assert.ok(round < 20, `${hub.size} of ${before} are still there`);
      for (let index = 0; index < OBJECTS; index++) {
        await write(index, `round-${round}-`);
        changes++;
        most = Math.max(most, hub.unread);
        // One that reads is never behind.
        while (read < objects + changes) await once(reader, 'data');
      }
    }
    assert.equal(hub.size, 1);
    assert.ok(most <= MAX_UNREAD_TOGETHER, `${most / MIB} MiB`);
    assert.ok(hub.unread <= buffered(), 'nothing waits any more but what connections hold');
    assert.ok(buffered() < 20 * MIB, `${buffered() / MIB} MiB`);
  });

  it('end with an error that makes a client list again', async () => {
    const late = await silent();
    while (hub.size > 1) for (let index = 0; index < OBJECTS; index++) await write(index, `again-${hub.unread}-`);
    let text = '';
    for await (const chunk of late) text += String(chunk);
    assert.match(text.trimEnd().split('\n').at(-1) ?? '', /^\{"type":"ERROR".*"code":410/);
  });

  it('are broken off when they do not even read that they end', async t => {
    hub.close();
    t.mock.timers.enable({ apis: ['setInterval', 'Date'], now: Date.now() });
    hub = new WatchHub(() => engine.core.store.revision);
    const deaf = await silent();
    while (hub.size > 0) for (let index = 0; index < OBJECTS; index++) await write(index, `deaf-${hub.unread}-`);
    t.mock.timers.tick(seconds(9));
    assert.ok(hub.unread > 0, 'the connection still holds what was written last');
    t.mock.timers.tick(seconds(2));
    assert.equal(hub.unread, 0);
    await assert.rejects(deaf.toArray(), { code: 'ECONNRESET' });
  });
});
