import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, type TestContext, test } from 'node:test';
import { type Api, startApi } from '../../api/api.ts';
import { bundleOf, secretOf, testClient, testSigner } from '../../inventory/testing.ts';
import type { Access } from '../../kube/access.ts';
import { HttpKube } from '../../kube/client.ts';
import { days } from '../../kube/duration.ts';
import { ConnectionError, KubeError } from '../../kube/error.ts';
import { loadAccess } from '../../kube/kubeconfig.ts';
import { CONFIG_MAPS, EVENTS, NAMESPACES, resource, SECRETS, SERVICE_ACCOUNTS } from '../../kube/resource.ts';
import { issueServing, issueSigner } from '../../pki/issue.ts';
import { systemKeys } from '../../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../pki/pem.ts';
import type { Snapshot } from './model.ts';
import { type ConsoleOptions, type RunningConsole, startConsole } from './server.ts';
import { call, EventReader, post } from './testing.ts';

const NAMESPACE = 'ns';

/** The headers of somebody who logged in, for reading and for writing. */
async function logIn(served: RunningConsole, credentials?: { token: string }): Promise<Record<string, string>> {
  const link = served.loginUrl().split('#login=')[1] ?? '';
  const answer = await post(`${served.url}/api/login`, credentials ?? { link });
  assert.equal(answer.status, 200, answer.text);
  const [cookie = ''] = answer.headers['set-cookie'] ?? [];
  const { csrf } = JSON.parse(answer.text) as { csrf: string };
  return { cookie: cookie.split(';')[0] ?? '', 'x-rotunda-csrf': csrf };
}

describe('the server of the console', () => {
  let dir = '';
  let api: Api;
  let access: Access;
  let kube: HttpKube;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-console-'));
    api = await startApi();
    writeFileSync(join(dir, 'kubeconfig'), api.kubeconfig, { mode: 0o600 });
    access = await loadAccess({ path: join(dir, 'kubeconfig') });
    kube = new HttpKube(access);
    const signer = await testSigner('signer');
    await kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
    await kube.create(SECRETS, secretOf('signer', signer, 'signer'));
    await kube.create(SECRETS, secretOf('leaf', await testClient(signer, 'user'), 'target'));
    await kube.create(CONFIG_MAPS, bundleOf('ca', signer));
  });

  after(async () => {
    await kube.close();
    await api.close();
    rmSync(dir, { recursive: true, force: true });
  });

  async function start(t: TestContext, options: Partial<ConsoleOptions> = {}): Promise<RunningConsole> {
    const served = await startConsole({ access, ...options });
    t.after(() => served.close());
    return served;
  }

  async function tokenOf(name: string): Promise<string> {
    await kube.create(SERVICE_ACCOUNTS, { metadata: { namespace: NAMESPACE, name } });
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} };
    const path = `/api/v1/namespaces/${NAMESPACE}/serviceaccounts/${name}/token`;
    const { status } = (await kube.request('POST', path, { body })) as { status: { token: string } };
    return status.token;
  }

  test('everything but the page and logging in needs a session', async t => {
    const { url } = await start(t);
    for (const path of [
      'session',
      'live',
      'snapshot',
      'trust',
      'plan?days=1',
      'objects/secret/ns/leaf',
      'actions',
      'nonsense',
    ]) {
      assert.equal((await call(`${url}/api/${path}`)).status, 401, path);
      assert.equal((await call(`${url}/api/${path}`, { headers: { cookie: 'rotunda=made-up' } })).status, 401, path);
    }
    for (const path of ['actions', 'actions/abc', 'logout'])
      assert.equal((await post(`${url}/api/${path}`, {})).status, 401, path);
    for (const path of ['/', '/console.js', '/console.css', '/icon.svg'])
      assert.equal((await call(url + path)).status, 200, path);
    assert.equal((await call(`${url}/../../package.json`)).status, 404);
    assert.equal((await call(`${url}/`, { method: 'DELETE' })).status, 405);
  });

  test('a cluster that answers too late fails the requests that need it, and nothing else', async t => {
    const late = () => Promise.reject(new ConnectionError('TIMEOUT', 'no answer within 30 s'));
    const silent = new Proxy(kube, { get: (target, verb) => (verb === 'close' ? target.close : late) });
    const served = await start(t, { kube: silent });
    const headers = await logIn(served);
    const waive = { kind: 'waive', node: 'worker-0' };
    const answers = await Promise.all([
      ...['snapshot', 'live', 'plan?days=1'].map(path => call(`${served.url}/api/${path}`, { headers })),
      post(`${served.url}/api/actions`, waive, headers),
    ]);
    for (const { status, text } of answers) assert.deepEqual([status, /TIMEOUT/.test(text)], [502, true], text);
    assert.equal((await call(`${served.url}/api/session`, { headers })).status, 200);
  });

  test('safe headers on every answer', async t => {
    const { url } = await start(t);
    for (const path of ['/', '/console.js', '/nothing', '/api/session']) {
      const { headers } = await call(url + path);
      const policy = headers['content-security-policy'] ?? '';
      assert.match(String(policy), /default-src 'none'.*frame-ancestors 'none'/, path);
      assert.ok(!String(policy).includes('unsafe-'), path);
      assert.equal(headers['x-content-type-options'], 'nosniff');
      assert.equal(headers['referrer-policy'], 'no-referrer');
      assert.equal(headers['access-control-allow-origin'], undefined);
    }
    assert.equal((await call(`${url}/api/session`)).headers['cache-control'], 'no-store');
    const { headers } = await call(`${url}/console.js`);
    const again = await call(`${url}/console.js`, { headers: { 'if-none-match': headers.etag ?? '' } });
    assert.equal(again.status, 304);
  });

  test('a name that is not ours is refused: somebody else pointed it at us', async t => {
    const { url } = await start(t, { hostnames: ['console.example.com'] });
    const { port } = new URL(url);
    const statusFor = async (host: string) => (await call(url, { headers: { host } })).status;
    assert.equal(await statusFor(`evil.example.com:${port}`), 421);
    assert.equal(await statusFor('127.0.0.1'), 421);
    for (const host of ['127.0.0.1', 'localhost', '[::1]', 'Console.example.com']) {
      assert.equal(await statusFor(`${host}:${port}`), 200, host);
    }
  });

  test('only our own page changes anything', async t => {
    const served = await start(t);
    const { url } = served;
    const session = await logIn(served);
    const action = { kind: 'regenerate', object: { namespace: NAMESPACE, name: 'leaf' } };
    const statusWith = async (headers: Record<string, string>) =>
      (await post(`${url}/api/actions`, action, headers)).status;
    assert.equal(await statusWith({ cookie: session.cookie as string }), 403);
    assert.equal(await statusWith({ ...session, 'x-rotunda-csrf': 'guess' }), 403);
    assert.equal(await statusWith({ ...session, origin: 'https://evil.example.com' }), 403);
    assert.equal(await statusWith({ ...session, 'sec-fetch-site': 'cross-site' }), 403);
    assert.equal(await statusWith({ ...session, origin: url, 'sec-fetch-site': 'same-origin' }), 200);
    assert.equal((await post(`${url}/api/actions`, action, { ...session, 'content-type': 'text/plain' })).status, 415);
    assert.equal((await post(`${url}/api/login`, {}, { origin: 'null' })).status, 403);
  });

  test('a link is good once, its cookie cannot be read by scripts', async t => {
    const { url, loginUrl } = await start(t);
    const link = loginUrl().split('#login=')[1];
    const first = await post(`${url}/api/login`, { link });
    assert.equal(first.status, 200);
    assert.match(String(first.headers['set-cookie']), /; Path=\/; HttpOnly; SameSite=Strict; Max-Age=43200$/);
    assert.equal((JSON.parse(first.text) as { user: string }).user, 'system:admin');
    const second = await post(`${url}/api/login`, { link });
    assert.equal(second.status, 401);
    assert.equal(second.headers['set-cookie'], undefined);
    for (const body of [{}, { link: 5 }, { link: '' }, { token: 'x y' }, { token: 'a'.repeat(20_000) }, null, []]) {
      assert.equal((await post(`${url}/api/login`, body)).status, 401, JSON.stringify(body)?.slice(0, 40));
    }
  });

  test('a wrong token is refused by the cluster, and guessing has an end, which locks no owner of a link out', async t => {
    const served = await start(t);
    const { url } = served;
    for (let attempt = 0; attempt < 20; attempt++) {
      assert.equal((await post(`${url}/api/login`, { token: `wrong-${attempt}` })).status, 401);
    }
    assert.equal((await post(`${url}/api/login`, { token: 'wrong' })).status, 429);
    await logIn(served);
  });

  test('too large, no JSON, no action: refused with a reason', async t => {
    const served = await start(t);
    const session = await logIn(served);
    const ask = (body: unknown) => post(`${served.url}/api/actions`, body, session);
    assert.equal((await ask('{')).status, 400);
    assert.equal((await ask({ kind: 'delete-everything' })).status, 400);
    assert.equal((await ask({ kind: 'pause', pool: '../secrets' })).status, 400);
    assert.equal((await ask({ kind: 'regenerate', object: { namespace: 'NS', name: 'x' } })).status, 400);
    assert.equal((await ask({ kind: 'regenerate', object: { namespace: 'ns', name: 'absent' } })).status, 409);
    assert.equal((await ask({ kind: 'pause', pool: 'absent' })).status, 409);
    assert.equal((await ask('x'.repeat(70_000))).status, 413);
    for (const text of ['0', '-1', '1e3', 'x', '401']) {
      assert.equal((await call(`${served.url}/api/plan?days=${text}`, { headers: session })).status, 400, text);
    }
    assert.equal((await call(`${served.url}/api/objects/secret/ns/absent`, { headers: session })).status, 404);
  });

  test('logging out ends the session', async t => {
    const served = await start(t);
    const session = await logIn(served);
    assert.equal((await call(`${served.url}/api/session`, { headers: session })).status, 200);
    assert.equal((await post(`${served.url}/api/logout`, {}, session)).status, 200);
    assert.equal((await call(`${served.url}/api/session`, { headers: session })).status, 401);
  });

  test('a user with a token sees and does what it may, and no more', async t => {
    const served = await start(t, { prober: { snapshot: () => ({ rounds: 1, edges: [] }) } });
    const session = await logIn(served, { token: await tokenOf('nobody') });
    const { user } = JSON.parse((await call(`${served.url}/api/session`, { headers: session })).text) as {
      user: string;
    };
    assert.equal(user, 'system:serviceaccount:ns:nobody');
    const snapshot = JSON.parse((await call(`${served.url}/api/snapshot`, { headers: session })).text) as Snapshot;
    assert.deepEqual(snapshot.sections.certificates, []);
    assert.match(snapshot.about.limits[0] ?? '', /^you may not list .*\bsecrets\b/);
    assert.equal(snapshot.about.hasProber, false);
    assert.equal((await call(`${served.url}/api/objects/secret/ns/leaf`, { headers: session })).status, 404);
    const action = { kind: 'regenerate', object: { namespace: NAMESPACE, name: 'leaf' } };
    assert.equal((await post(`${served.url}/api/actions`, action, session)).status, 403);
  });

  test('an action is done only after its plan was shown, once, and by the one who saw it', async t => {
    const served = await start(t);
    const [session, other] = [await logIn(served), await logIn(served)];
    const action = { kind: 'regenerate', object: { namespace: NAMESPACE, name: 'leaf' } };
    assert.equal((await post(`${served.url}/api/actions/guess`, {}, session)).status, 409);
    const preview = JSON.parse((await post(`${served.url}/api/actions`, action, session)).text) as {
      id: string;
      refusal?: string;
    };
    assert.equal(preview.refusal, undefined);
    assert.equal((await post(`${served.url}/api/actions/${preview.id}`, {}, other)).status, 409);
    const before = await kube.get(SECRETS, { namespace: NAMESPACE, name: 'leaf' });
    assert.notEqual(before.metadata?.annotations?.['auth.openshift.io/certificate-not-after'], 'force-regeneration');
    const done = await post(`${served.url}/api/actions/${preview.id}`, { overrideGate: true }, session);
    assert.equal(done.status, 200, done.text);
    const after = await kube.get(SECRETS, { namespace: NAMESPACE, name: 'leaf' });
    assert.equal(after.metadata?.annotations?.['auth.openshift.io/certificate-not-after'], 'force-regeneration');
    assert.equal((await post(`${served.url}/api/actions/${preview.id}`, {}, session)).status, 409);
    const again = JSON.parse((await post(`${served.url}/api/actions`, action, session)).text) as { id: string };
    const empty = await post(`${served.url}/api/actions/${again.id}`, null, session);
    // No override was asked for: done, or held by the gate; never an error of the console.
    assert.ok([200, 409].includes(empty.status), empty.text);
  });

  test('no key material leaves it, whatever is in the cluster', async t => {
    const key = encodePrivateKey(await systemKeys.generate('P-256'));
    const metadata = { namespace: NAMESPACE, name: 'loud' };
    await kube.create(EVENTS, {
      metadata,
      involvedObject: { namespace: NAMESPACE },
      reason: 'Loud',
      message: `here: ${key}`,
      type: 'Normal',
    });
    await kube.create(SECRETS, {
      metadata: {
        namespace: NAMESPACE,
        name: 'strange',
        annotations: { 'openshift.io/description': key, 'other.example/x': 'unasked' },
      },
      data: { 'tls.crt': Buffer.from(key).toString('base64'), 'tls.key': Buffer.from(key).toString('base64') },
    });
    const served = await start(t);
    const session = await logIn(served);
    const bodies: string[] = [];
    for (const path of [
      'session',
      'snapshot',
      'trust',
      'plan?days=30',
      'objects/secret/ns/leaf',
      'objects/secret/ns/signer',
      'objects/secret/ns/strange',
      'objects/configmap/ns/ca',
    ]) {
      bodies.push((await call(`${served.url}/api/${path}`, { headers: session })).text);
    }
    const secret = await kube.get(SECRETS, { namespace: NAMESPACE, name: 'leaf' });
    const secretKey = secret.data?.['tls.key'] ?? 'absent';
    for (const body of bodies) {
      assert.ok(
        !body.includes('PRIVATE KEY') && !body.includes(secretKey) && !body.includes('LS0tLS1'),
        body.slice(0, 200),
      );
      assert.ok(!body.includes('unasked'));
    }
    const { about } = JSON.parse(bodies[1] ?? '') as Snapshot;
    assert.ok(about.limits.some(limit => limit.startsWith('events: ns/loud looks like key material')));
  });

  test('a refusal that would quote key material is sent without it and ends nothing', { timeout: 600_000 }, async t => {
    const quoted = 'LS0tLS1CRUdJTi';
    class LoudKube extends HttpKube {
      override get(): Promise<never> {
        return Promise.reject(new KubeError(422, 'Invalid', `invalid: ${quoted}`));
      }
    }
    const loud = new LoudKube(access);
    t.after(() => loud.close());
    const served = await start(t, { kube: loud });
    const session = await logIn(served);
    const asked = await call(`${served.url}/api/objects/secret/x/${quoted}`, { headers: session });
    assert.deepEqual([asked.status, JSON.parse(asked.text)], [404, { error: 'there is no such secret' }]);
    const action = { kind: 'regenerate', object: { namespace: NAMESPACE, name: 'leaf' } };
    const refused = await post(`${served.url}/api/actions`, action, session);
    assert.equal(refused.status, 502);
    assert.ok(!refused.text.includes(quoted), refused.text);
    assert.equal((await call(`${served.url}/api/session`, { headers: session })).status, 200);
  });

  test('guesses that come all at once have an end too', async t => {
    const { url } = await start(t);
    const guess = (_: unknown, index: number) => post(`${url}/api/login`, { token: `wrong-${index}` });
    const statuses = (await Promise.all(Array.from({ length: 30 }, guess))).map(({ status }) => status);
    assert.equal(statuses.filter(status => status === 401).length, 20);
    assert.equal(statuses.filter(status => status === 429).length, 10);
  });

  test('what is no token was no guess: it locks nobody out', async t => {
    const served = await start(t);
    for (let attempt = 0; attempt < 21; attempt++) {
      assert.equal((await post(`${served.url}/api/login`, { link: 'old' })).status, 401);
    }
    await logIn(served, { token: await tokenOf('late') });
  });

  test('one user logging in again and again ends its own oldest session, never those of others', async t => {
    const served = await start(t);
    const [owner, other] = [await logIn(served), await logIn(served, { token: await tokenOf('quiet') })];
    const token = await tokenOf('busy');
    const sessions: Record<string, string>[] = [];
    for (let login = 0; login < 70; login++) sessions.push(await logIn(served, { token }));
    const isIn = async (headers: Record<string, string>) =>
      (await call(`${served.url}/api/session`, { headers })).status === 200;
    const open = await Promise.all(sessions.map(isIn));
    assert.deepEqual(open.lastIndexOf(false), 70 - 8 - 1);
    assert.equal(open.filter(Boolean).length, 8);
    assert.ok((await isIn(owner)) && (await isIn(other)));
    await logIn(served);
  });

  test('the stream tells everything, then what changes, and goes on where it broke off', async t => {
    const served = await start(t);
    const session = await logIn(served);
    const first = await EventReader.open(served.url, session);
    const snapshot = await first.next(({ event }) => event === 'snapshot');
    assert.ok((JSON.parse(snapshot.data) as Snapshot).sections.certificates.length >= 2);
    const signer = await testSigner('later');
    await kube.create(CONFIG_MAPS, bundleOf('later', signer));
    const patch = await first.next(({ data }) => data.includes('"name":"later"'));
    assert.equal(patch.event, 'patch');
    first.close();
    await kube.delete(CONFIG_MAPS, { namespace: NAMESPACE, name: 'later' });
    const second = await EventReader.open(served.url, { ...session, 'last-event-id': patch.id });
    const next = await second.next(({ data }) => data.includes('ns/later'));
    assert.equal(next.event, 'patch');
    assert.match(next.data, /"gone":\{"bundles":\["ns\/later"\]\}/);
    second.close();
    const stranger = await EventReader.open(served.url, { ...session, 'last-event-id': 'of-another-start-1' });
    assert.equal((await stranger.next(() => true)).event, 'snapshot');
    stranger.close();
    const another = await logIn(served);
    const opened = await Promise.allSettled(Array.from({ length: 12 }, () => EventReader.open(served.url, another)));
    const readers = opened.flatMap(result => (result.status === 'fulfilled' ? [result.value] : []));
    assert.equal(readers.length, 8, 'as many pages as a session may have open, also when all come at once');
    for (const reader of readers) reader.close();
  });

  test('over TLS the cookie is for TLS only; without TLS only this machine is served', async t => {
    const now = new Date();
    const common = { keys: systemKeys, now, algorithm: 'P-256', lifetimeMs: days(1) } as const;
    const signer = await issueSigner({ ...common, commonName: 'console-ca' });
    const { chain, key } = await issueServing({ ...common, signer, hostnames: ['127.0.0.1'] });
    const [certFile, keyFile] = [join(dir, 'tls.crt'), join(dir, 'tls.key')];
    writeFileSync(certFile, encodeCertificates(chain));
    writeFileSync(keyFile, encodePrivateKey(key), { mode: 0o600 });
    const served = await start(t, { tls: { certFile, keyFile } });
    assert.match(served.url, /^https:/);
    const link = served.loginUrl().split('#login=')[1];
    const answer = await post(`${served.url}/api/login`, { link });
    assert.match(String(answer.headers['set-cookie']), /^__Host-rotunda-\d+=.*; Secure$/);
    assert.match(String(answer.headers['strict-transport-security']), /max-age/);
    await assert.rejects(startConsole({ access, host: '0.0.0.0' }), /needs a TLS certificate/);
    await assert.rejects(startConsole({ access, tls: { certFile, keyFile: certFile } }));
  });

  test('tells of roles it was given in the cluster', async t => {
    const token = await tokenOf('reader');
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' };
    const subjects = [{ kind: 'ServiceAccount', namespace: NAMESPACE, name: 'reader' }];
    const bindings = resource<{ metadata: { name: string }; roleRef: object; subjects: object[] }>(
      'rbac.authorization.k8s.io/v1',
      'ClusterRoleBinding',
      'clusterrolebindings',
      false,
    );
    await kube.create(bindings, { metadata: { name: 'reader' }, roleRef, subjects });
    const served = await start(t);
    const session = await logIn(served, { token });
    const snapshot = JSON.parse((await call(`${served.url}/api/snapshot`, { headers: session })).text) as Snapshot;
    assert.ok(snapshot.sections.certificates.some(({ metadata }) => metadata.name === 'leaf'));
    await kube.delete(SERVICE_ACCOUNTS, { namespace: NAMESPACE, name: 'reader' });
    assert.equal((await post(`${served.url}/api/login`, { token })).status, 401, 'a token of nobody');
  });
});
