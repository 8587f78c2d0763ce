import assert from 'node:assert/strict';
import { createServer as createPlainServer, type Server } from 'node:net';
import { describe, test } from 'node:test';
import { createServer, type TlsOptions } from 'node:tls';
import fc from 'fast-check';
import { listenOn } from '../kube/listen.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueServing, issueSigner } from '../pki/issue.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { seededKeys } from '../pki/seeded-keys.ts';
import { askForAuthorities } from './ask.ts';

const NOW = new Date();
const keys = seededKeys('ask');
const TIMEOUT_MS = 60_000;

async function authority(commonName: string): Promise<CertificateAndKey> {
  return issueSigner({ commonName, keys, now: NOW, lifetimeMs: 86_400_000, algorithm: 'P-256' });
}

describe('asking a server which CAs it has loaded', () => {
  test('the names are those of the client CAs of this moment, to the byte', async () => {
    const [first, second] = await Promise.all([authority('ns_signer@1'), authority('ns_signer@2')]);
    await serving({ requestCert: true, ca: pem(first) }, async (ask, server) => {
      const before = await ask();
      assert.ok(before.kind === 'loaded');
      assert.deepEqual(before.authorities, [first.chain[0]?.subject.der]);
      server.setSecureContext({ ...(await pair()), ca: [pem(first), pem(second)] });
      const after = await ask();
      assert.ok(after.kind === 'loaded');
      assert.deepEqual(after.authorities, [first.chain[0]?.subject.der, second.chain[0]?.subject.der]);
    });
  });

  test('three hundred CAs are read although their list is spread over several records', async () => {
    const many = await Promise.all(Array.from({ length: 300 }, (_, index) => authority(`openshift_signer@${index}`)));
    await serving({ requestCert: true, ca: many.map(pem) }, async ask => {
      const answer = await ask();
      assert.ok(answer.kind === 'loaded');
      assert.equal(answer.authorities.length, 300);
    });
  });

  test('a server that wants no certificate is told apart from one that could not be asked', async () => {
    await serving({}, async ask => assert.deepEqual(await ask(), { kind: 'not-asking' }));
    await serving({ minVersion: 'TLSv1.3', requestCert: true }, async ask => {
      // Alert 70: the version of the protocol.
      assert.deepEqual(await ask(), { kind: 'silent', reason: 'ended the handshake with alert 70' });
    });
    const nobody = await listening(createPlainServer());
    await nobody.close();
    const asked = await askForAuthorities({ host: '127.0.0.1', port: nobody.port, timeoutMs: TIMEOUT_MS });
    assert.deepEqual(asked, { kind: 'silent', reason: 'ECONNREFUSED' });
  });

  test('whatever a peer sends, in whatever pieces, there is an answer', async () => {
    const bytes = fc.oneof(fc.uint8Array({ maxLength: 400 }), wellFormedFlight());
    const cut = fc.integer({ min: 1, max: 50 });
    await fc.assert(
      fc.asyncProperty(bytes, cut, async (flight, size) => {
        const peer = await listening(
          createPlainServer(socket => {
            socket.on('error', () => {}).resume();
            for (let at = 0; at < flight.length; at += size) socket.write(flight.subarray(at, at + size));
            socket.end();
          }),
        );
        const answer = await askForAuthorities({ host: '127.0.0.1', port: peer.port, timeoutMs: TIMEOUT_MS });
        await peer.close();
        assert.ok(['loaded', 'not-asking', 'silent'].includes(answer.kind));
      }),
      { numRuns: 200 },
    );
  });
});

/** Records that hold a request for a certificate whose inner lengths may be wrong. */
function wellFormedFlight(): fc.Arbitrary<Uint8Array> {
  return fc.uint8Array({ maxLength: 200 }).map(content => {
    const message = Buffer.concat([Buffer.of(13, 0, content.length >> 8, content.length & 0xff), content]);
    return Buffer.concat([Buffer.of(22, 3, 3, message.length >> 8, message.length & 0xff), message]);
  });
}

async function pair(): Promise<{ cert: string; key: string }> {
  const signer = await authority('server');
  const leaf = await issueServing({
    signer,
    hostnames: ['localhost'],
    keys,
    now: NOW,
    lifetimeMs: 3_600_000,
    algorithm: 'P-256',
  });
  return { cert: encodeCertificates(leaf.chain), key: encodePrivateKey(leaf.key) };
}

function pem({ chain }: CertificateAndKey): string {
  return encodeCertificates(chain);
}

async function serving(
  options: TlsOptions,
  use: (ask: () => ReturnType<typeof askForAuthorities>, server: ReturnType<typeof createServer>) => Promise<void>,
): Promise<void> {
  const server = createServer({ ...(await pair()), rejectUnauthorized: false, ...options });
  server.on('tlsClientError', () => {});
  const { port, close } = await listening(server);
  try {
    const question = { host: '127.0.0.1', port, serverName: 'localhost', timeoutMs: TIMEOUT_MS };
    await use(() => askForAuthorities(question), server);
  } finally {
    await close();
  }
}

async function listening(server: Server): Promise<{ port: number; close: () => Promise<unknown> }> {
  const port = await listenOn(server, 0, '127.0.0.1');
  return { port, close: () => new Promise(resolve => server.close(resolve)) };
}
