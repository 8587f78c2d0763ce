import assert from 'node:assert/strict';
import { once } from 'node:events';
import { type ClientHttp2Session, connect } from 'node:http2';
import { request } from 'node:https';
import { connect as connectTcp } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { connect as connectTls } from 'node:tls';
import { days } from '../../kube/duration.ts';
import { issueClient, issueIntermediate, issueSigner } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import { type Api, startApi } from '../api.ts';

interface ClientCertificate {
  readonly cert: string;
  readonly key: string;
}

const ISSUE = { keys: systemKeys, now: new Date(), lifetimeMs: days(1), algorithm: 'P-256' } as const;

describe('connections to the API', () => {
  let api: Api;

  before(async () => {
    api = await startApi();
  });
  after(() => api.close());

  const options = { rejectUnauthorized: false } as const;
  /** As long as an empty URL with this many characters added. */
  const path = (characters: number) => `/version?${'~'.repeat(characters)}`;

  function askHttp1(url: string, more: object = {}): Promise<number | undefined> {
    return new Promise((resolve, reject) => {
      const sent = request(`${api.url}${url}`, { ...options, ...more, agent: false }, response => {
        response.resume().on('end', () => resolve(response.statusCode));
      });
      sent.on('error', reject).end();
    });
  }

  function askHttp2(session: ClientHttp2Session, url: string): Promise<number | string> {
    return new Promise(resolve => {
      const stream = session.request({ ':path': url });
      let answer: number | string = 'nothing';
      stream.on('response', headers => (answer = headers[':status'] ?? 'no status'));
      stream.on('error', error => (answer = error.message));
      stream.on('close', () => resolve(answer)).resume();
    });
  }

  it('take URLs as long as Go does over HTTP/1.1, and answer longer ones', async () => {
    assert.equal(await askHttp1(path(900_000)), 200);
    assert.equal(await askHttp1(path(1_200_000)), 431);
  });

  it('answer what is no HTTP', async () => {
    const client = connectTls({ ...options, host: '127.0.0.1', port: Number(new URL(api.url).port) });
    client.end('what is this?\r\n\r\n');
    let text = '';
    client.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    await once(client, 'close');
    assert.match(text, /^HTTP\/1\.1 400 Bad Request\r\n/);
  });

  it('tell over HTTP/2 how long a URL may be, and serve on after a longer one', async () => {
    const session = connect(api.url, { ...options, maxSendHeaderBlockLength: 1024 * 1024 });
    const [settings] = (await once(session, 'remoteSettings')) as [{ maxHeaderListSize: number }];
    assert.equal(settings.maxHeaderListSize, 64 * 1024);
    assert.equal(await askHttp2(session, path(30_000)), 200);
    assert.match(String(await askHttp2(session, `/${'a'.repeat(70_000)}`)), /ENHANCE_YOUR_CALM/);
    assert.equal(await askHttp2(session, '/version'), 200);
    session.close();
  });

  it('answer 401 to a certificate whose CA has the name of ours and another key', async () => {
    const client = await forged();
    for (const maxVersion of ['TLSv1.2', 'TLSv1.3'] as const) {
      const session = connect(api.url, { ...options, ...client, maxVersion });
      session.on('error', () => {});
      assert.equal(await askHttp2(session, '/api/v1/namespaces'), 401, `HTTP/2, ${maxVersion}`);
      assert.equal(await askHttp2(session, '/api/v1/namespaces'), 401, `HTTP/2 again, ${maxVersion}`);
      session.close();
      assert.equal(await askHttp1('/api/v1/namespaces', { ...client, maxVersion }), 401, `HTTP/1.1, ${maxVersion}`);
    }
  });

  it('are known by all the certificates a client has shown as soon as their CA is taken', async () => {
    const root = await issueSigner({ ...ISSUE, commonName: 'root' });
    const signer = await issueIntermediate({ ...ISSUE, signer: root, commonName: 'between' });
    const leaf = await issueClient({ ...ISSUE, signer, user: { name: 'alice', groups: ['system:masters'] } });
    const key = encodePrivateKey(leaf.key);
    const [whole, alone] = [[...leaf.chain, ...signer.chain], leaf.chain].map(chain =>
      connect(api.url, { ...options, cert: encodeCertificates(chain), key }),
    ) as [ClientHttp2Session, ClientHttp2Session];
    const ask = () => Promise.all([whole, alone].map(session => askHttp2(session, '/api/v1/namespaces')));
    assert.deepEqual(await ask(), [401, 401]);
    api.setClientCas(encodeCertificates(root.chain));
    assert.deepEqual(await ask(), [200, 401]);
    for (const session of [whole, alone]) session.close();
  });

  // Twenty times as long as it takes, and a third of what a handshake may.
  it('end with the server, also those that never shake hands', { timeout: 60_000 }, async () => {
    const own = await startApi();
    const silent = connectTcp(Number(new URL(own.url).port), '127.0.0.1');
    const later = connect(own.url, options);
    const ends = [once(silent, 'close'), once(later, 'close')];
    // They are accepted in their order.
    await once(later, 'remoteSettings');
    await own.close();
    await Promise.all(ends);
  });

  async function forged(): Promise<ClientCertificate> {
    const { chain, key } = await issueSigner({ ...ISSUE, commonName: 'rotunda-client-ca' });
    // Without key ids only the name tells who is said to have signed.
    const signer = { chain: chain.map(certificate => ({ ...certificate, subjectKeyId: undefined })), key };
    const leaf = await issueClient({ ...ISSUE, signer, user: { name: 'eve', groups: ['system:masters'] } });
    return { cert: encodeCertificates(leaf.chain), key: encodePrivateKey(leaf.key) };
  }
});
