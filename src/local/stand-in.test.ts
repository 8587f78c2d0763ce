import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { get as httpsGet } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { connect, type TLSSocket } from 'node:tls';
import { isDeepStrictEqual } from 'node:util';
import { silentLog } from '../controller/log.ts';
import { askForAuthorities } from '../hand-over/ask.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { parseName } from '../pki/name.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import { type DirectoryContent, replaceDirectory } from '../staticpod/node/directory-swap.ts';
import { systemFiles } from '../staticpod/node/files.ts';
import { PathMap } from '../staticpod/node/path-map.ts';
import { shakeHands } from '../trust/handshake.ts';
import { apiserverSettings, etcdSettings, type ServerSettings } from './stand-in-flags.ts';
import { LOADED_PATH, StandInServer } from './stand-in-server.ts';

const ISSUE = { keys: systemKeys, lifetimeMs: 3_600_000, algorithm: 'P-256' as const };
const signer = (commonName: string) => issueSigner({ ...ISSUE, now: new Date(), commonName });
const serving = (by: CertificateAndKey, ...hostnames: string[]) =>
  issueServing({ ...ISSUE, now: new Date(), signer: by, hostnames });
const pem = ({ chain }: CertificateAndKey) => encodeCertificates(chain);
const digest = ({ chain }: CertificateAndKey) =>
  createHash('sha256')
    .update(chain[0]?.der ?? '')
    .digest('hex');
const pair = (certificate: CertificateAndKey, key = certificate): DirectoryContent =>
  new Map([
    ['tls.crt', { content: Buffer.from(pem(certificate)), mode: 0o600 }],
    ['tls.key', { content: Buffer.from(encodePrivateKey(key.key)), mode: 0o600 }],
  ]);

function directory(t: TestContext): string {
  const path = mkdtempSync(join(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), 'rotunda-stand-in-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

const swap = (path: string, content: DirectoryContent) => replaceDirectory(systemFiles(), path, content, 'cert-sync');

interface Loaded {
  readonly inputs: readonly {
    name: string;
    reload: string;
    certificates?: string[];
    isStale: boolean;
    refused?: string;
  }[];
}

async function started(t: TestContext, settings: ServerSettings) {
  const server = new StandInServer({ name: 'test', settings, log: silentLog });
  await server.start();
  t.after(() => server.stop());
  const get = (path: string, servername = '') =>
    new Promise<{ peer: string; body: string }>((resolve, reject) => {
      const options = {
        host: '127.0.0.1',
        port: server.ports()[0],
        path,
        servername,
        agent: false as const,
        rejectUnauthorized: false,
      };
      httpsGet(options, response => {
        const peer = createHash('sha256')
          .update((response.socket as TLSSocket).getPeerCertificate().raw)
          .digest('hex');
        let body = '';
        response.on('data', (chunk: Buffer) => {
          body += chunk.toString();
        });
        response.once('end', () => resolve({ peer, body }));
      }).once('error', reject);
    });
  const presents = async (expected: CertificateAndKey, servername = '') => {
    while ((await get('/healthz', servername)).peer !== digest(expected))
      await new Promise(resolve => setImmediate(resolve));
  };
  const loaded = async () => JSON.parse((await get(LOADED_PATH)).body) as Loaded;
  return { server, get, presents, loaded };
}

function settingsFor(path: string, changes: Partial<ServerSettings> = {}): ServerSettings {
  return {
    listen: [{ host: '127.0.0.1', port: 0 }],
    serving: { cert: join(path, 'secrets/serving/tls.crt'), key: join(path, 'secrets/serving/tls.key') },
    sni: [],
    servingReload: 'watch',
    clientCaReload: 'watch',
    others: [],
    ...changes,
  };
}

test('a stop does not wait for clients that keep their connection', async t => {
  const path = directory(t);
  await swap(join(path, 'secrets/serving'), pair(await serving(await signer('ca'), 'a')));
  const { server } = await started(t, settingsFor(path));
  const socket = connect({ host: '127.0.0.1', port: server.ports()[0] ?? 0, rejectUnauthorized: false });
  const closed = new Promise(resolve => socket.once('close', resolve));
  socket.on('error', () => {});
  await new Promise(resolve => socket.once('secureConnect', resolve));
  await server.stop();
  await closed;
});

test('a swapped directory is presented at the next handshakes; a pair that does not match is not', async t => {
  const path = directory(t);
  const ca = await signer('ca');
  const [first, second, third] = [await serving(ca, 'a'), await serving(ca, 'a'), await serving(ca, 'a')];
  await swap(join(path, 'secrets/serving'), pair(first));
  const { get, presents, loaded } = await started(t, settingsFor(path));
  assert.equal((await get('/readyz')).peer, digest(first));
  await swap(join(path, 'secrets/serving'), pair(second));
  await presents(second);
  await swap(join(path, 'secrets/serving'), pair(third, first));
  const refused = async () => (await loaded()).inputs[0]?.refused;
  while ((await refused()) === undefined) await new Promise(resolve => setImmediate(resolve));
  assert.match((await refused()) ?? '', /does not belong to the certificate/);
  assert.equal((await get('/livez')).peer, digest(second), 'the old one stays');
  rmSync(join(path, 'secrets/serving'));
  await get('/livez');
  await swap(join(path, 'secrets/serving'), pair(third));
  await presents(third);
  assert.equal((await loaded()).inputs[0]?.refused, undefined);
});

test('a pair that does not match, or a missing file, is fatal at the start', async t => {
  const path = directory(t);
  const ca = await signer('ca');
  const [first, second] = [await serving(ca, 'a'), await serving(ca, 'a')];
  await swap(join(path, 'secrets/serving'), pair(first, second));
  const start = (changes: Partial<ServerSettings> = {}) =>
    new StandInServer({ name: 'test', settings: settingsFor(path, changes), log: silentLog });
  assert.throws(start, /does not belong to the certificate/);
  await swap(join(path, 'secrets/serving'), pair(first));
  assert.throws(() => start({ clientCa: join(path, 'none') }), /ENOENT/);
  writeFileSync(join(path, 'empty'), '');
  assert.throws(() => start({ clientCa: join(path, 'empty') }), /does not contain any valid/);
});

test('the certificate is chosen by the name asked for, or by the address connected to', async t => {
  const path = directory(t);
  const ca = await signer('ca');
  const certificates = {
    serving: await serving(ca, 'kubernetes'),
    localhost: await serving(ca, 'localhost', '127.0.0.1'),
    wild: await serving(ca, 'x'),
  };
  for (const [name, certificate] of Object.entries(certificates))
    await swap(join(path, 'secrets', name), pair(certificate));
  const sni = (name: string, names: string[] = []) => ({
    cert: join(path, 'secrets', name, 'tls.crt'),
    key: join(path, 'secrets', name, 'tls.key'),
    names,
  });
  const { get } = await started(t, settingsFor(path, { sni: [sni('localhost'), sni('wild', ['*.apps.example'])] }));
  assert.equal((await get('/', 'kubernetes')).peer, digest(certificates.serving));
  assert.equal((await get('/', 'localhost')).peer, digest(certificates.localhost));
  assert.equal((await get('/', 'LOCALHOST')).peer, digest(certificates.localhost));
  assert.equal((await get('/', 'a.apps.example')).peer, digest(certificates.wild));
  assert.equal((await get('/', 'other.example')).peer, digest(certificates.serving));
  assert.equal((await get('/')).peer, digest(certificates.localhost), 'no name, but 127.0.0.1 is in that certificate');
});

test('files that the real server reads only once are not read again, and it shows', async t => {
  const path = directory(t);
  const [ca, other] = [await signer('ca'), await signer('other')];
  await swap(join(path, 'secrets/serving'), pair(await serving(ca, 'a')));
  mkdirSync(join(path, 'keys'));
  for (const name of ['etcd', 'header']) writeFileSync(join(path, name), pem(ca));
  writeFileSync(join(path, 'keys/1.pub'), 'one');
  const { server, loaded } = await started(
    t,
    settingsFor(path, {
      others: [
        { name: 'etcd-ca', kind: 'bundle', paths: [join(path, 'etcd')], reload: 'start' },
        { name: 'requestheader-client-ca', kind: 'bundle', paths: [join(path, 'header')], reload: 'watch' },
        { name: 'keys', kind: 'directory', paths: [join(path, 'keys')], reload: 'start' },
      ],
    }),
  );
  for (const name of ['etcd', 'header']) writeFileSync(join(path, name), pem(other));
  writeFileSync(join(path, 'keys/2.pub'), 'two');
  server.reload('watch', 'handshake');
  const { inputs } = await loaded();
  const input = (name: string) => inputs.find(one => one.name === name);
  assert.deepEqual([input('etcd-ca')?.certificates, input('etcd-ca')?.isStale], [[digest(ca)], true]);
  assert.deepEqual(
    [input('requestheader-client-ca')?.certificates, input('requestheader-client-ca')?.isStale],
    [[digest(other)], false],
  );
  assert.equal(input('keys')?.isStale, true);
  const text = JSON.stringify(inputs);
  assert.equal(text.includes('PRIVATE'), false);
  assert.equal(
    text.includes(
      createHash('sha256')
        .update(readFileSync(join(path, 'secrets/serving/tls.key')))
        .digest('hex'),
    ),
    false,
  );
});

test('the flags and the configuration file of kube-apiserver', t => {
  const path = directory(t);
  const config = join(path, 'config.yaml');
  writeFileSync(
    config,
    JSON.stringify({
      servingInfo: {
        bindAddress: '0.0.0.0:6443',
        namedCertificates: [{ certFile: '/c/n.crt', keyFile: '/c/n.key', names: ['x'] }],
      },
      apiServerArguments: {
        'tls-cert-file': ['/c/a.crt'],
        'tls-private-key-file': ['/c/a.key'],
        'client-ca-file': ['/c/ca'],
        'etcd-cafile': ['/r/etcd'],
      },
      serviceAccountPublicKeyFiles: ['/r/keys'],
    }),
  );
  const map = new PathMap([{ inside: '/c', outside: '/n/certs' }]);
  const env = { ROTUNDA_PATH_MAP: map.toEnv(), ROTUNDA_NODE_ADDRESS: '127.5.5.10' };
  const settings = apiserverSettings(
    ['kube-apiserver', `--openshift-config=${config}`, '--etcd-cafile=/other', '--permit-address-sharing'],
    env,
  );
  assert.deepEqual(settings.listen, [{ host: '127.5.5.10', port: 6443 }]);
  assert.deepEqual(settings.serving, { cert: '/n/certs/a.crt', key: '/n/certs/a.key' });
  assert.deepEqual(settings.sni, [{ cert: '/n/certs/n.crt', key: '/n/certs/n.key', names: ['x'] }]);
  assert.equal(settings.clientCa, '/n/certs/ca');
  assert.deepEqual(
    settings.others.map(({ name, paths, reload }) => [name, paths[0], reload]),
    [
      ['etcd-ca', '/other', 'start'],
      ['service-account-public-keys', '/r/keys', 'start'],
      ['openshift-config', config, 'start'],
    ],
  );
  const flags = apiserverSettings(
    [
      '--tls-cert-file',
      '/a',
      '--tls-private-key-file',
      '/b',
      '--tls-sni-cert-key=/s.crt,/s.key:a,*.b',
      '--secure-port=7',
      '--bind-address=::1',
      '--kubelet-client-certificate=/k.crt',
      '--kubelet-client-key=/k.key',
    ],
    {},
  );
  assert.deepEqual(flags.listen, [{ host: '::1', port: 7 }]);
  assert.deepEqual(flags.sni, [{ cert: '/s.crt', key: '/s.key', names: ['a', '*.b'] }]);
  assert.deepEqual(flags.others, [
    { name: 'kubelet-client', kind: 'pair', paths: ['/k.crt', '/k.key'], reload: 'watch' },
  ]);
  assert.throws(() => apiserverSettings([], {}), /--tls-cert-file and --tls-private-key-file are required/);
});

test('etcd: a new leaf at the next handshake, a new CA not before the next start', async t => {
  const path = directory(t);
  const [ca, other] = [await signer('ca'), await signer('other')];
  const [first, second] = [await serving(ca, 'etcd'), await serving(ca, 'etcd')];
  await swap(join(path, 'secrets/serving'), pair(first));
  writeFileSync(join(path, 'ca'), pem(ca));
  const [cert, key] = [join(path, 'secrets/serving/tls.crt'), join(path, 'secrets/serving/tls.key')];
  const { client, peer } = etcdSettings(
    [
      `--cert-file=${cert}`,
      `--key-file=${key}`,
      `--trusted-ca-file=${join(path, 'ca')}`,
      '--listen-client-urls=https://127.0.0.1:0',
      `--peer-cert-file=${cert}`,
      `--peer-key-file=${key}`,
      '--listen-peer-urls=https://0.0.0.0:2380',
    ],
    { ROTUNDA_NODE_ADDRESS: '127.5.5.10' },
  );
  assert.deepEqual(peer?.listen, [{ host: '127.5.5.10', port: 2380 }]);
  const { get, loaded } = await started(t, client);
  assert.equal((await get('/healthz')).peer, digest(first));
  await swap(join(path, 'secrets/serving'), pair(second));
  assert.equal((await get('/healthz')).peer, digest(second), 'no waiting: the very next one');
  writeFileSync(join(path, 'ca'), pem(other));
  await get('/healthz');
  const trusted = (await loaded()).inputs.find(({ name }) => name === 'client-ca');
  assert.deepEqual([trusted?.certificates, trusted?.isStale], [[digest(ca)], true]);
});

test('clients are told of client CAs and of those of front proxies, as they are now; only the first let somebody in', async t => {
  const path = directory(t);
  const [server, clients, proxies, next] = await Promise.all(['server', 'clients', 'proxies', 'next'].map(signer));
  assert.ok(server && clients && proxies && next);
  const names: Record<string, CertificateAndKey[]> = { 'client-ca': [clients], 'aggregator-client-ca': [proxies] };
  const bundle = (name: string, ...cas: CertificateAndKey[]) => {
    names[name] = cas;
    const content = { content: Buffer.from(cas.map(pem).join('')), mode: 0o644 };
    return swap(join(path, 'configmaps', name), new Map([['ca-bundle.crt', content]]));
  };
  for (const [name, cas] of Object.entries(names)) await bundle(name, ...cas);
  for (const name of ['serving', 'named']) await swap(join(path, 'secrets', name), pair(await serving(server, 'a')));
  const file = (...parts: string[]) => join(path, ...parts);
  const settings = apiserverSettings(
    [
      `--tls-cert-file=${file('secrets/serving/tls.crt')}`,
      `--tls-private-key-file=${file('secrets/serving/tls.key')}`,
      `--tls-sni-cert-key=${file('secrets/named/tls.crt')},${file('secrets/named/tls.key')}:named`,
      `--client-ca-file=${file('configmaps/client-ca/ca-bundle.crt')}`,
      `--requestheader-client-ca-file=${file('configmaps/aggregator-client-ca/ca-bundle.crt')}`,
      '--bind-address=127.0.0.1',
      '--secure-port=0',
    ],
    {},
  );
  const { server: running } = await started(t, settings);
  const port = running.ports()[0] ?? 0;
  const told = async (serverName?: string) => {
    const answer = await askForAuthorities({ host: '127.0.0.1', port, serverName, timeoutMs: 60_000 });
    assert.equal(answer.kind, 'loaded');
    return answer.kind === 'loaded' ? answer.authorities.map(name => parseName(name, '').commonName).toSorted() : [];
  };
  const untilTold = async (...expected: string[]) => {
    for (const name of [undefined, 'named'])
      while (!isDeepStrictEqual(await told(name), expected)) await new Promise(resolve => setImmediate(resolve));
  };
  const letsIn = async (by: CertificateAndKey) => {
    const client = await issueClient({ ...ISSUE, now: new Date(), signer: by, user: { name: 'x', groups: [] } });
    const shown = { cert: pem(client), key: encodePrivateKey(client.key) };
    return (await shakeHands({ host: '127.0.0.1', port, serverName: 'a', pair: shown, timeoutMs: 60_000 })).kind;
  };
  for (const name of [undefined, 'named']) assert.deepEqual(await told(name), ['clients', 'proxies']);
  assert.deepEqual(
    [await letsIn(clients), await letsIn(proxies), await letsIn(next)],
    ['accepted', 'refused', 'refused'],
  );
  await bundle('aggregator-client-ca', proxies, next);
  await untilTold('clients', 'next', 'proxies');
  assert.equal(await letsIn(next), 'refused');
  await bundle('client-ca', clients, next);
  await bundle('aggregator-client-ca', proxies);
  await untilTold('clients', 'next', 'proxies');
  const untilLetIn = async () => {
    while ((await letsIn(next)) !== 'accepted') await new Promise(resolve => setImmediate(resolve));
  };
  await untilLetIn();
  await bundle('client-ca', next);
  await untilTold('next', 'proxies');
  assert.deepEqual([await letsIn(clients), await letsIn(next)], ['refused', 'accepted']);
});
