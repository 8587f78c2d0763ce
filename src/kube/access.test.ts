import assert from 'node:assert/strict';
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, before, beforeEach, describe, it } from 'node:test';
import type { TLSSocket } from 'node:tls';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import type { Access } from './access.ts';
import { fixedAccess } from './access.ts';
import { HttpKube } from './client.ts';
import { VirtualClock } from './clock.ts';
import { days, seconds } from './duration.ts';
import { loadAccess } from './kubeconfig.ts';
import { CONFIG_MAPS } from './resource.ts';
import { eventually, TestApi } from './test-api.ts';

const key = { namespace: 'ns', name: 'a' };
const issuing = () => ({ keys: systemKeys, now: new Date(), algorithm: 'P-256' as const, lifetimeMs: days(1) });
const certificatePem = (pair: CertificateAndKey) => encodeCertificates(pair.chain);
const keyPem = (pair: CertificateAndKey) => encodePrivateKey(pair.key);

describe('TLS', () => {
  let signer: CertificateAndKey;
  let otherSigner: CertificateAndKey;
  let serving: CertificateAndKey;
  let clients: CertificateAndKey[];
  let directory: string;
  let api: TestApi;
  let kube: HttpKube | undefined;

  before(async () => {
    signer = await issueSigner({ ...issuing(), commonName: 'test-signer' });
    otherSigner = await issueSigner({ ...issuing(), commonName: 'other-signer' });
    serving = await issueServing({ ...issuing(), signer, hostnames: ['127.0.0.1', 'api.test'] });
    clients = await Promise.all(['first', 'second'].map(name => issueClient({ ...issuing(), signer, user: { name } })));
  });

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kube-access-'));
    api = await TestApi.start({
      cert: certificatePem(serving),
      key: keyPem(serving),
      ca: certificatePem(signer),
      requestCert: true,
      rejectUnauthorized: false,
    });
  });

  afterEach(async () => {
    await kube?.close();
    kube = undefined;
    await eventually(() => api.sockets.size === 0, 'no connection is left');
    await api.stop();
    await rm(directory, { recursive: true });
  });

  const file = async (name: string, content: string) => {
    await writeFile(join(directory, `${name}.new`), content);
    await rename(join(directory, `${name}.new`), join(directory, name));
  };
  const kubeconfig = (fields: { cluster?: object; user?: object }) =>
    file(
      'kubeconfig',
      JSON.stringify({
        'current-context': 'c',
        contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
        clusters: [{ name: 'c', cluster: { server: api.url, 'certificate-authority': 'ca.crt', ...fields.cluster } }],
        users: [{ name: 'u', user: fields.user ?? {} }],
      }),
    );
  /** The common name of the client certificate with each request. */
  const namesOfClients = () => {
    const names: (string | undefined)[] = [];
    api.intercept = (_seen, _response, { socket }) => {
      const { subject } = (socket as TLSSocket).getPeerCertificate();
      names.push((subject as { CN?: string } | undefined)?.CN);
      return false;
    };
    return names;
  };
  const load = (options: Partial<Parameters<typeof loadAccess>[0]> = {}) =>
    loadAccess({ path: join(directory, 'kubeconfig'), env: {}, ...options });
  const get = async (access: Access) => {
    kube ??= new HttpKube(access);
    await assert.rejects(kube.get(CONFIG_MAPS, key), { code: 404 });
  };

  it('verifies the server and presents the client certificate', async () => {
    const names = namesOfClients();
    await file('ca.crt', certificatePem(signer));
    await file('client.crt', certificatePem(clients[0] ?? assert.fail()));
    await file('client.key', keyPem(clients[0] ?? assert.fail()));
    await kubeconfig({ user: { 'client-certificate': 'client.crt', 'client-key': 'client.key' } });
    await get(await load());
    assert.deepEqual(names, ['first']);
  });

  it('refuses a server of another authority, and one that is not the one that was meant', async () => {
    const refusal = async (tls: { ca: string; serverName?: string }) => {
      kube = new HttpKube(fixedAccess(api.url, { tls }));
      const error = await kube.get(CONFIG_MAPS, key).catch((caught: unknown) => caught as { code: string });
      await kube.close();
      return 'code' in error ? error.code : undefined;
    };
    assert.match((await refusal({ ca: certificatePem(otherSigner) })) ?? '', /SIGNATURE|SELF_SIGNED|ISSUER/);
    const ca = certificatePem(signer);
    assert.equal(await refusal({ ca, serverName: 'other.test' }), 'ERR_TLS_CERT_ALTNAME_INVALID');
    assert.equal(await refusal({ ca, serverName: '127.0.0.2' }), 'ERR_TLS_CERT_ALTNAME_INVALID');
    kube = new HttpKube(fixedAccess(api.url, { tls: { ca, serverName: 'api.test' } }));
    await get(fixedAccess(api.url));
    await kube.close();
    kube = new HttpKube(fixedAccess(api.url, { tls: { insecure: true } }));
    await get(fixedAccess(api.url));
  });

  it('takes a new client certificate from the file, without a restart; a watch under way goes on', async () => {
    const clock = new VirtualClock(new Date());
    const names = namesOfClients();
    const [first, second] = clients as [CertificateAndKey, CertificateAndKey];
    await file('ca.crt', certificatePem(signer));
    await file('client.crt', certificatePem(first));
    await file('client.key', keyPem(first));
    await kubeconfig({ user: { 'client-certificate': 'client.crt', 'client-key': 'client.key' } });
    const errors: Error[] = [];
    const access = await load({ clock, onError: error => errors.push(error) });
    kube = new HttpKube(access, { clock });
    const stop = new AbortController();
    const events: string[] = [];
    const watching = (async () => {
      for await (const { type } of kube?.watch(CONFIG_MAPS, { namespace: 'ns', signal: stop.signal }) ?? [])
        events.push(type);
    })();
    await eventually(() => api.watchers === 1, 'the watch is open');

    await file('client.crt', certificatePem(second));
    await clock.advance(seconds(1));
    await get(access);
    assert.deepEqual(names, ['first', 'first'], 'a certificate without its key is not taken');
    assert.match(errors[0]?.message ?? '', /the client certificate and key cannot be used/);

    await file('client.key', keyPem(second));
    await clock.advance(seconds(1));
    await get(access);
    assert.equal(names.at(-1), 'second');
    api.put('/api/v1/namespaces/ns/configmaps', { metadata: { name: 'a', namespace: 'ns' } });
    await eventually(() => api.sockets.size === 2, 'old and new connection are open, idle ones of the old are closed');
    await eventually(() => events.length === 1, 'the old connection still brings news');
    stop.abort();
    await watching;
    await eventually(() => api.sockets.size === 1, 'the old connection is gone when its last request is');
  });

  it('cuts off what still hangs on old credentials after a minute', async () => {
    const clock = new VirtualClock(new Date());
    await file('ca.crt', certificatePem(signer));
    await kubeconfig({});
    const access = await load({ clock });
    kube = new HttpKube(access, { clock });
    const watching = (async () => {
      for await (const _ of kube?.watch(CONFIG_MAPS, { namespace: 'ns' }) ?? []);
    })().catch((error: unknown) => error);
    await eventually(() => api.watchers === 1, 'the watch is open');
    await file('ca.crt', certificatePem(signer) + certificatePem(otherSigner));
    await clock.advance(seconds(1));
    await get(access);
    await clock.advance(seconds(60));
    assert.match(String(await watching), /ConnectionError/);
    await eventually(() => api.watchers === 0, 'the watch is gone');
  });

  it('follows a changed authority and a changed server', async () => {
    const clock = new VirtualClock(new Date());
    await file('ca.crt', certificatePem(otherSigner));
    await kubeconfig({});
    const access = await load({ clock });
    kube = new HttpKube(access, { clock });
    await assert.rejects(kube.get(CONFIG_MAPS, key), /certificate/);
    await file('ca.crt', certificatePem(signer));
    await clock.advance(seconds(1));
    await get(access);
    await kubeconfig({ cluster: { server: `${api.url}/elsewhere` } });
    await clock.advance(seconds(1));
    await get(access);
    assert.match(api.requests.at(-1)?.path ?? '', /^\/elsewhere/);
  });

  it('a half-written authority file changes nothing', async () => {
    const clock = new VirtualClock(new Date());
    const whole = certificatePem(signer);
    await file('ca.crt', whole);
    await kubeconfig({});
    const errors: Error[] = [];
    const access = await load({ clock, onError: error => errors.push(error) });
    const good = await access.connection();
    for (const half of ['', whole.slice(0, 100), whole + whole.slice(0, 100), whole.replace(/[A-Z]{4}/, '!!!!')]) {
      await file('ca.crt', half);
      await clock.advance(seconds(1));
      assert.equal(await access.connection(), good);
    }
    assert.equal(errors.length, 4);
  });

  it('reads a token file again after 401, once', async () => {
    await file('ca.crt', certificatePem(signer));
    await file('token', 'old\n');
    await kubeconfig({ user: { tokenFile: 'token' } });
    const clock = new VirtualClock(new Date());
    const access = await load({ clock });
    kube = new HttpKube(access, { clock });
    const seen: unknown[] = [];
    api.intercept = ({ headers }, response) => {
      seen.push(headers.authorization);
      if (headers.authorization === 'Bearer new') return false;
      response.writeHead(401).end();
      return true;
    };
    await assert.rejects(kube.get(CONFIG_MAPS, key), { code: 401, reason: 'Unauthorized' });
    assert.deepEqual(seen.splice(0), ['Bearer old', 'Bearer old']);
    await file('token', 'new\n');
    await get(access);
    assert.deepEqual(seen, ['Bearer old', 'Bearer new'], 'the clock stood still: only the 401 made it look');
  });
});
