import assert from 'node:assert/strict';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import { issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { encodeCertificates } from '../pki/pem.ts';
import { VirtualClock } from './clock.ts';
import { days, minutes, seconds } from './duration.ts';
import type { PluginCall } from './exec-credential.ts';
import { inClusterAccess } from './in-cluster.ts';
import { type LoadOptions, loadAccess } from './kubeconfig.ts';

let directory: string;

/** Gives every test of the suite that calls it a folder of its own. */
function eachInAFolder(): void {
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kubeconfig-'));
  });
  afterEach(() => rm(directory, { recursive: true }));
}

interface Parts {
  readonly cluster?: object;
  readonly user?: object;
  readonly context?: object;
  readonly [field: string]: unknown;
}

/** A complete kubeconfig with one entry of each kind, all named `n`. */
const config = ({ cluster = {}, user = {}, context = {}, ...rest }: Parts = {}) => ({
  'current-context': 'n',
  contexts: [{ name: 'n', context: { cluster: 'n', user: 'n', ...context } }],
  clusters: [{ name: 'n', cluster: { server: 'https://api.test:6443', ...cluster } }],
  users: [{ name: 'n', user }],
  ...rest,
});

async function write(name: string, content: unknown): Promise<string> {
  const path = join(directory, name);
  await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  return path;
}

const load = async (content: unknown, options: Partial<LoadOptions> = {}) =>
  loadAccess({ path: await write('config', content), env: {}, ...options });
const connection = async (content: unknown, options: Partial<LoadOptions> = {}) =>
  (await load(content, options)).connection();

describe('kubeconfig', () => {
  eachInAFolder();

  it('reads YAML, with the namespace of the context', async () => {
    const access = await load(`
apiVersion: v1
kind: Config
current-context: admin
contexts: [{name: admin, context: {cluster: c, user: u, namespace: openshift-etcd}}]
clusters: [{name: c, cluster: {server: "https://api.test:6443", tls-server-name: kubernetes}}]
users: [{name: u, user: {token: t0ken}}]
`);
    assert.equal(access.namespace, 'openshift-etcd');
    const { server, tls, headers } = await access.connection();
    assert.equal(server.href, 'https://api.test:6443/');
    assert.equal(tls.serverName, 'kubernetes');
    assert.deepEqual(headers, { authorization: 'Bearer t0ken' });
  });

  it('chooses another context on demand', async () => {
    const contexts = ['a', 'b'].map(name => ({ name, context: { cluster: 'n', user: name } }));
    const users = ['a', 'b'].map(name => ({ name, user: { token: `token-${name}` } }));
    const { headers } = await connection(config({ contexts, users, 'current-context': 'a' }), { context: 'b' });
    assert.deepEqual(headers, { authorization: 'Bearer token-b' });
  });

  it('merges the files of KUBECONFIG: the first to say something wins; paths are relative to their file', async () => {
    await mkdir(join(directory, 'sub'));
    await write('sub/token', 'from-sub');
    const first = await write('sub/first', { users: [{ name: 'n', user: { tokenFile: 'token' } }] });
    const second = await write('second', config({ user: { token: 'from-second' } }));
    const KUBECONFIG = ['', join(directory, 'missing'), first, second].join(delimiter);
    const access = await loadAccess({ env: { KUBECONFIG } });
    assert.deepEqual((await access.connection()).headers, { authorization: 'Bearer from-sub' });
  });

  it('falls back to the home directory, then to the pod, then gives up', async () => {
    await mkdir(join(directory, '.kube'));
    await write('.kube/config', config({ user: { token: 'home' } }));
    const access = await loadAccess({ env: {}, home: directory });
    assert.deepEqual((await access.connection()).headers, { authorization: 'Bearer home' });
    await assert.rejects(loadAccess({ env: {}, home: join(directory, 'nowhere') }), /no kubeconfig found/);
    await assert.rejects(
      loadAccess({ env: { KUBECONFIG: '/does/not/exist' } }),
      /none of the files in KUBECONFIG exists/,
    );
    await assert.rejects(loadAccess({ path: join(directory, 'missing'), env: {} }), /ENOENT/);
  });

  it('inline data wins over files', async () => {
    const data = Buffer.from('not a certificate').toString('base64');
    const cluster = { 'certificate-authority-data': data, 'certificate-authority': '/does/not/exist' };
    await assert.rejects(connection(config({ cluster })), /the CA bundle cannot be used/);
  });

  it('a token stands in for a token file that cannot be read', async () => {
    const user = { token: 'fallback', tokenFile: 'missing' };
    assert.deepEqual((await connection(config({ user }))).headers, { authorization: 'Bearer fallback' });
    await assert.rejects(connection(config({ user: { tokenFile: 'missing' } })), /ENOENT/);
  });

  it('knows passwords and impersonation', async () => {
    const user = { username: 'me', password: 'pw', as: 'admin', 'as-groups': ['a', 'b'], 'as-uid': '7' };
    assert.deepEqual((await connection(config({ user }))).headers, {
      authorization: `Basic ${Buffer.from('me:pw').toString('base64')}`,
      'impersonate-user': 'admin',
      'impersonate-group': ['a', 'b'],
      'impersonate-uid': '7',
    });
  });

  it('keeps what worked while the file is broken, and takes the next good one', async () => {
    const clock = new VirtualClock('2024-01-01T00:00:00Z');
    const errors: Error[] = [];
    const access = await load(config({ user: { token: 'one' } }), { clock, onError: error => errors.push(error) });
    const before = await access.connection();
    await write('config', '{{{ half a file');
    assert.equal(await access.connection(), before, 'not even looked at within a second');
    await clock.advance(seconds(1));
    assert.equal(await access.connection(), before);
    assert.equal(errors.length, 1);
    await write('config', config({ user: { token: 'two' } }));
    await clock.advance(seconds(1));
    assert.deepEqual((await access.connection()).headers, { authorization: 'Bearer two' });
  });

  const SECRET = 'c2VjcmV0LXRva2Vu';
  const refused: [why: string, content: unknown, message: RegExp][] = [
    ['no context', config({ 'current-context': '' }), /no current-context/],
    ['unknown context', config({ 'current-context': 'x' }), /there is no context "x"/],
    ['unknown cluster', config({ context: { cluster: 'x' } }), /there is no cluster "x"/],
    ['unknown user', config({ context: { user: 'x' } }), /there is no user "x"/],
    ['no server', config({ cluster: { server: '' } }), /has no server/],
    ['server that is no URL', config({ cluster: { server: 'api.test' } }), /server is not a URL/],
    ['proxy', config({ cluster: { 'proxy-url': 'http://p' } }), /proxy-url is not supported/],
    [
      'CA and insecure',
      config({ cluster: { 'certificate-authority-data': 'AAAA', 'insecure-skip-tls-verify': true } }),
      /exclude each other/,
    ],
    ['auth provider', config({ user: { 'auth-provider': { name: 'oidc' } } }), /use an exec credential plugin/],
    [
      'key without certificate',
      config({ user: { 'client-key-data': SECRET } }),
      /key is configured without its certificate/,
    ],
    ['no base64', config({ user: { 'client-key-data': `${SECRET}!` } }), /client-key-data is not base64/],
    ['number for a token', config({ user: { token: 12345 } }), /token must be a string/],
    ['groups without user', config({ user: { 'as-groups': ['g'] } }), /needs a user in "as"/],
    ['not YAML', `users:\n- token: ${SECRET}\n  }{`, /not readable as YAML in line 3/],
    ['not a mapping', '[]', /no mapping/],
    ['list that is none', config({ users: {} }), /users must be a list/],
  ];
  for (const [why, content, message] of refused) {
    it(`refuses: ${why}; and shows no secret`, async () => {
      await assert.rejects(connection(content), (error: Error) => {
        assert.match(error.message, message);
        assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, new RegExp(SECRET));
        return true;
      });
    });
  }

  it('refuses a file that is too large', async () => {
    await assert.rejects(connection(' '.repeat(1024 * 1024 + 1)), /expected at most 1048576/);
  });
});

describe('credential plugins', () => {
  eachInAFolder();

  const API = 'client.authentication.k8s.io/v1';
  const exec = {
    apiVersion: API,
    command: 'helper',
    args: ['login'],
    env: [{ name: 'A', value: '1' }],
    interactiveMode: 'Never',
  };
  const credential = (status: object, apiVersion = API) =>
    JSON.stringify({ kind: 'ExecCredential', apiVersion, status });

  it('runs the plugin with its arguments and tells it of the cluster', async () => {
    const calls: PluginCall[] = [];
    const runPlugin = (call: PluginCall) => {
      calls.push(call);
      return Promise.resolve(credential({ token: 'fresh' }));
    };
    const content = config({ user: { exec: { ...exec, command: './bin/helper', provideClusterInfo: true } } });
    const { headers } = await connection(content, { runPlugin, env: { PATH: '/bin' } });
    assert.deepEqual(headers, { authorization: 'Bearer fresh' });
    const [{ command, args, env }] = calls as [PluginCall];
    assert.equal(command, join(directory, 'bin/helper'));
    assert.deepEqual(args, ['login']);
    assert.equal(env.A, '1');
    assert.equal(env.PATH, '/bin');
    assert.deepEqual(JSON.parse(env.KUBERNETES_EXEC_INFO ?? ''), {
      kind: 'ExecCredential',
      apiVersion: API,
      spec: { interactive: false, cluster: { server: 'https://api.test:6443', config: null } },
    });
  });

  it('keeps the answer until it expires or is refused', async () => {
    const clock = new VirtualClock('2024-01-01T00:00:00Z');
    let runs = 0;
    const runPlugin = () => {
      const ends = new Date(clock.now().getTime() + minutes(10)).toISOString();
      return Promise.resolve(credential({ token: `t${++runs}`, expirationTimestamp: ends }));
    };
    const access = await load(config({ user: { exec } }), { clock, runPlugin });
    const token = async () => (await access.connection()).headers.authorization;
    assert.equal(await token(), 'Bearer t1');
    await clock.advance(minutes(9));
    assert.equal(await token(), 'Bearer t1');
    await clock.advance(seconds(50));
    assert.equal(await token(), 'Bearer t2', 'renewed ten seconds before the end');
    assert.equal(access.refused(), true);
    assert.equal(await token(), 'Bearer t2', 'not again so soon');
    await clock.advance(seconds(10));
    access.refused();
    assert.equal(await token(), 'Bearer t3');
  });

  it('a plugin that fails leaves the credentials that are still good', async () => {
    const clock = new VirtualClock('2024-01-01T00:00:00Z');
    const answers = [credential({ token: 't1', expirationTimestamp: '2024-01-01T00:01:00Z' })];
    const runPlugin = () => {
      const next = answers.shift();
      return next === undefined ? Promise.reject(new Error('ended with code 1')) : Promise.resolve(next);
    };
    const errors: Error[] = [];
    const access = await load(config({ user: { exec } }), { clock, runPlugin, onError: error => errors.push(error) });
    await access.connection();
    await clock.advance(minutes(2));
    assert.deepEqual((await access.connection()).headers, { authorization: 'Bearer t1' });
    assert.equal(errors[0]?.message, 'credential plugin helper: ended with code 1');
    answers.push(credential({ token: 't2' }));
    await clock.advance(seconds(5));
    await access.connection();
    assert.equal(answers.length, 1, 'a plugin that failed is left alone for a while');
    await clock.advance(seconds(5));
    assert.deepEqual((await access.connection()).headers, { authorization: 'Bearer t2' });
  });

  const refused: [why: string, exec: object, answer: string, message: RegExp][] = [
    [
      'removed version',
      { apiVersion: 'client.authentication.k8s.io/v1alpha1' },
      '',
      /expected client.authentication.k8s.io\/v1 or/,
    ],
    ['no command', { command: '' }, '', /has no command/],
    ['must ask questions', { interactiveMode: 'Always' }, '', /nobody to answer/],
    ['bad args', { args: [1] }, '', /args must be a list of strings/],
    ['bad env', { env: [{ name: 'A' }] }, '', /env must be a list/],
    ['not JSON', {}, 'top-secret', /is not JSON/],
    ['another kind', {}, '{"kind":"top-secret"}', /is not of kind ExecCredential/],
    [
      'another version',
      {},
      credential({ token: 'top-secret' }, 'client.authentication.k8s.io/v1beta1'),
      /is not of apiVersion/,
    ],
    ['empty', {}, credential({}), /neither a token nor a client certificate/],
    ['certificate alone', {}, credential({ clientCertificateData: 'top-secret' }), /without the other/],
    ['token that is no text', {}, credential({ token: 1 }), /token that is no string/],
    ['bad time', {}, credential({ token: 'top-secret', expirationTimestamp: 'tomorrow' }), /not RFC 3339/],
  ];
  for (const [why, change, answer, message] of refused) {
    it(`refuses: ${why}; and shows no secret`, async () => {
      const runPlugin = () => Promise.resolve(answer);
      await assert.rejects(
        connection(config({ user: { exec: { ...exec, ...change } } }), { runPlugin }),
        (error: Error) => {
          assert.match(error.message, message);
          assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, /top-secret/);
          return true;
        },
      );
    });
  }

  it('says how to get a plugin that is missing', async () => {
    const runPlugin = () => Promise.reject(new Error('cannot be started (ENOENT)'));
    const content = config({ user: { exec: { ...exec, installHint: 'install it from the shelf' } } });
    await assert.rejects(
      connection(content, { runPlugin }),
      /helper: cannot be started \(ENOENT\)\ninstall it from the shelf/,
    );
  });
});

describe('in-cluster access', () => {
  eachInAFolder();

  it('reads token, authority and namespace, the token again when it changes', async () => {
    const clock = new VirtualClock('2024-01-01T00:00:00Z');
    await write('token', 'one');
    const issuing = { keys: systemKeys, now: new Date(), algorithm: 'P-256', lifetimeMs: days(1) } as const;
    await write('ca.crt', encodeCertificates((await issueSigner({ ...issuing, commonName: 'ca' })).chain));
    await write('namespace', 'openshift-etcd\n');
    const env = { KUBERNETES_SERVICE_HOST: 'fd00::1', KUBERNETES_SERVICE_PORT: '443' };
    const access = await inClusterAccess({ env, clock, directory });
    assert.equal(access.namespace, 'openshift-etcd');
    const { server, headers } = await access.connection();
    assert.equal(server.href, 'https://[fd00::1]/');
    assert.deepEqual(headers, { authorization: 'Bearer one' });
    await write('token', 'two');
    await clock.advance(seconds(1));
    assert.deepEqual((await access.connection()).headers, { authorization: 'Bearer two' });
    await assert.rejects(inClusterAccess({ env: {}, directory }), /not a pod/);
  });
});
