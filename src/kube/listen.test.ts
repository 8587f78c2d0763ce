import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createPlain } from 'node:http';
import { createServer, type Server } from 'node:https';
import { connect as connectTcp, createServer as createTcp } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { connect } from 'node:tls';
import { issueServing, issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { days } from './duration.ts';
import { closeAtOnce, listenOn } from './listen.ts';

/** More than the buffers of a connection take, on both sides. */
const ANSWER_BYTES = 32 * 1024 * 1024;
/** More than one read takes. */
const BODY_BYTES = 150_000;

describe('a TLS server that listens', () => {
  let server: Server;
  let port: number;

  before(async () => {
    const issue = { keys: systemKeys, now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' } as const;
    const signer = await issueSigner({ ...issue, commonName: 'ca' });
    const { chain, key } = await issueServing({ ...issue, signer, hostnames: ['127.0.0.1'] });
    server = createServer({ cert: encodeCertificates(chain), key: encodePrivateKey(key) }, answer);
    port = await listenOn(server, 0, '127.0.0.1');
  });
  after(() => closeAtOnce(server));

  function answer(request: IncomingMessage, response: ServerResponse): void {
    let bytes = 0;
    request.on('error', () => {});
    request.on('data', (chunk: Buffer) => (bytes += chunk.length));
    request.on('end', () => response.end(request.method === 'GET' ? Buffer.alloc(ANSWER_BYTES) : `took ${bytes}`));
  }

  it('loses nothing of a body that comes while the answer before is still being taken', async () => {
    const client = connect({ port, host: '127.0.0.1', rejectUnauthorized: false });
    client.on('error', () => {});
    const asked = once(server, 'request');
    client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n');
    const [, first] = (await asked) as [IncomingMessage, ServerResponse];
    while (!first.writableEnded) await new Promise(resolve => setImmediate(resolve));
    const askedAgain = once(server, 'request');
    const head = Buffer.from(
      `POST / HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-length: ${BODY_BYTES}\r\n\r\n`,
    );
    client.write(Buffer.concat([head, Buffer.alloc(BODY_BYTES)]));
    await askedAgain;
    let [bytes, end] = [0, ''];
    client.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      end = (end + chunk.toString('latin1')).slice(-200);
    });
    await once(client, 'close');
    assert.ok(bytes > ANSWER_BYTES, `${bytes} bytes came back`);
    assert.match(end, new RegExp(`\\r\\ntook ${BODY_BYTES}$`));
  });
});

describe('a server that closes', () => {
  // Half of what a handshake may take: who waits for it is not there by then.
  const limit = { timeout: 60_000 };
  const servers = { TCP: () => createTcp(), HTTP: () => createPlain(), HTTPS: () => createServer() };
  for (const [what, create] of Object.entries(servers)) {
    it(`does so at once although a connection over ${what} is silent`, limit, async () => {
      const server = create();
      const port = await listenOn(server, 0, '127.0.0.1');
      const accepted = once(server, 'connection');
      const silent = connectTcp(port, '127.0.0.1').on('error', () => {});
      const ended = once(silent, 'close');
      await accepted;
      await closeAtOnce(server);
      await ended;
    });
  }
});
