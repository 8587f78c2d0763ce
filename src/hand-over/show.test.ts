import assert from 'node:assert/strict';
import { createServer } from 'node:https';
import { test } from 'node:test';
import type { TLSSocket } from 'node:tls';
import { listenOn } from '../kube/listen.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueServing, issueSigner } from '../pki/issue.ts';
import { systemKeys as keys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { askForAuthorities } from './ask.ts';
import { askByShowing } from './show.ts';

const NOW = new Date();
const HOUR_MS = 3_600_000;
const TIMEOUT_MS = 60_000;
const made = { keys, now: NOW, lifetimeMs: HOUR_MS, algorithm: 'P-256' } as const;
/** Two generations of an administrator's own CA. */
const [BEFORE, AFTER] = await Promise.all(
  ['kubernetes', 'kubernetes'].map(commonName => issueSigner({ ...made, commonName })),
);

/** A server that has loaded these CAs, and leaves it to whoever answers what becomes of others, as kube-apiserver and kubelets do. */
async function serving<T>(
  loaded: readonly CertificateAndKey[],
  isStrict: boolean,
  use: (place: { host: string; port: number; timeoutMs: number }, users: string[]) => Promise<T>,
): Promise<T> {
  const own = await issueServing({ ...made, signer: BEFORE as CertificateAndKey, hostnames: ['127.0.0.1'] });
  const users: string[] = [];
  const server = createServer(
    {
      cert: encodeCertificates(own.chain),
      key: encodePrivateKey(own.key),
      ca: loaded.map(({ chain }) => encodeCertificates(chain)),
      requestCert: true,
      rejectUnauthorized: isStrict,
    },
    ({ socket }, response) => {
      const { authorized } = socket as TLSSocket;
      if (authorized) users.push((socket as TLSSocket).getPeerCertificate().subject.CN as string);
      response.writeHead(authorized ? 403 : 401).end();
    },
  );
  const port = await listenOn(server, 0, '127.0.0.1');
  try {
    return await use({ host: '127.0.0.1', port, timeoutMs: TIMEOUT_MS }, users);
  } finally {
    server.close();
    server.closeAllConnections();
  }
}

for (const isStrict of [false, true]) {
  const how = isStrict ? 'ends the connection' : 'answers 401';
  test(`of two CAs of one name the one that is loaded is told from the other, where a server ${how}`, async () => {
    const ask = (loaded: readonly CertificateAndKey[]) =>
      serving(loaded, isStrict, async (place, users) => {
        const answer = await askByShowing(place, AFTER as CertificateAndKey, { keys, now: new Date() });
        const named = await askForAuthorities(place);
        // The name alone says yes in either case.
        assert.ok(named.kind === 'loaded');
        assert.ok(named.authorities.some(name => name.equals(AFTER?.chain[0]?.subject.der as Buffer)));
        return [answer.kind, users] as const;
      });
    // One that ends the connection without a word has not said what it lacks: no receipt either.
    assert.deepEqual(await ask([BEFORE as CertificateAndKey]), [isStrict ? 'silent' : 'refused', []]);
    assert.deepEqual(await ask([BEFORE, AFTER] as CertificateAndKey[]), ['accepted', ['rotunda.dev:receipt']]);
  });
}

test('nobody who listens is no answer', async () => {
  const place = await serving([], false, async found => found);
  const answer = await askByShowing(place, AFTER as CertificateAndKey, { keys, now: new Date() });
  assert.equal(answer.kind, 'silent');
});
