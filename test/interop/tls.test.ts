import assert from 'node:assert/strict';
import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { before, describe, it } from 'node:test';
import { type ConnectionOptions, connect, createServer, type TLSSocket, type TlsOptions } from 'node:tls';
import { type CertificateAndKey, loadCertificateAndKey } from '../../src/pki/authority.ts';
import type { KeyAlgorithm } from '../../src/pki/keys.ts';
import { encodeCertificates } from '../../src/pki/pem.ts';
import { type Issued, issueAll, pemOf } from './issued.ts';

/** One handshake, in which each side verifies the other; what the server and the client then know of their peer. */
async function handshake(
  server: TlsOptions,
  client: ConnectionOptions,
): Promise<{ seenByServer: string; seenByClient: string }> {
  const listener = createServer({ requestCert: true, rejectUnauthorized: true, ...server });
  listener.on('tlsClientError', () => {});
  listener.on('secureConnection', socket => socket.end(`${socket.authorized} ${commonName(socket)}`));
  listener.listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  const socket = connect({ port, host: '127.0.0.1', servername: 'localhost', ...client });
  try {
    await once(socket, 'secureConnect');
    const seenByClient = commonName(socket);
    // With TLS 1.3 the client learns only now whether the server took its certificate.
    let seenByServer = '';
    for await (const chunk of socket) seenByServer += String(chunk);
    if (seenByServer === '') throw new Error('the server closed the connection');
    return { seenByServer, seenByClient };
  } finally {
    socket.destroy();
    listener.close();
  }
}

function commonName(socket: TLSSocket): string {
  return String(socket.getPeerCertificate().subject?.CN);
}

const presents = (pair: CertificateAndKey) => ({ cert: pemOf(pair).chain, key: pemOf(pair).key });
const trusts = (...pairs: CertificateAndKey[]) => ({
  ca: pairs.map(({ chain }) => encodeCertificates(chain.slice(0, 1))),
});

for (const algorithm of ['RSA-2048', 'P-256', 'P-384', 'Ed25519'] satisfies KeyAlgorithm[]) {
  describe(`TLS handshakes with ${algorithm}`, () => {
    let issued: Issued;
    let other: Issued;
    let clientWithChain: { cert: string; key: string };
    before(async () => {
      [issued, other] = await Promise.all([issueAll(algorithm, new Date()), issueAll('P-256', new Date())]);
      // A client certificate is stored alone (spec 10, P-3); here its intermediate goes along.
      const { cert, key } = pemOf(issued.client);
      clientWithChain = { cert: cert + pemOf(issued.intermediate).cert, key };
    });

    it('server and client verify each other', async () => {
      const seen = await handshake(
        { ...presents(issued.serving), ...trusts(issued.signer) },
        { ...clientWithChain, ...trusts(issued.signer) },
      );
      assert.deepEqual(seen, { seenByServer: 'true system:node:worker_0', seenByClient: '*.apps.example.com' });
    });
    it('a peer certificate serves in both directions', async () => {
      const peer = { ...presents(issued.peer), ...trusts(issued.signer) };
      assert.deepEqual(await handshake(peer, peer), { seenByServer: 'true 10.0.0.1', seenByClient: '10.0.0.1' });
    });
    it('a lone client certificate is taken by a server that trusts its signer and that one', async () => {
      const server = { ...presents(issued.serving), ...trusts(issued.signer, issued.intermediate) };
      const { seenByServer } = await handshake(server, { ...presents(issued.client), ...trusts(issued.signer) });
      assert.equal(seenByServer, 'true system:node:worker_0');
    });
    it('what was stored and loaded again still serves', async () => {
      const { chain, key } = pemOf(issued.serving);
      const loaded = loadCertificateAndKey(chain, key);
      const seen = await handshake(
        { ...presents(loaded), ...trusts(issued.signer) },
        { ...clientWithChain, ...trusts(issued.signer) },
      );
      assert.equal(seen.seenByClient, '*.apps.example.com');
    });
    it('a bundle of old and new signer verifies both', async () => {
      const both = trusts(other.signer, issued.signer);
      for (const server of [issued.serving, other.serving]) {
        await handshake({ ...presents(server), ...both }, { ...clientWithChain, ...both });
      }
    });
    it('the client refuses an unknown signer', async () => {
      const server = { ...presents(issued.serving), ...trusts(issued.signer) };
      await assert.rejects(handshake(server, { ...clientWithChain, ...trusts(other.signer) }), {
        code: 'SELF_SIGNED_CERT_IN_CHAIN',
      });
    });
    it('the server refuses an unknown signer', async () => {
      const server = { ...presents(issued.serving), ...trusts(other.signer) };
      await assert.rejects(handshake(server, { ...clientWithChain, ...trusts(issued.signer) }));
    });
    it('the client refuses another host', async () => {
      const server = { ...presents(issued.serving), ...trusts(issued.signer) };
      const client = { ...clientWithChain, ...trusts(issued.signer), servername: 'elsewhere.example' };
      await assert.rejects(handshake(server, client), { code: 'ERR_TLS_CERT_ALTNAME_INVALID' });
    });
    it('a serving certificate is no client certificate', async () => {
      const server = { ...presents(issued.serving), ...trusts(issued.signer) };
      await assert.rejects(handshake(server, { ...presents(issued.serving), ...trusts(issued.signer) }));
    });
  });
}
