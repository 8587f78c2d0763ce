import assert from 'node:assert/strict';
import { test } from 'node:test';
import { startEngine } from '../../api/engine.ts';
import { silentLog } from '../../controller/log.ts';
import { systemClock } from '../../kube/clock.ts';
import { KubeError } from '../../kube/error.ts';
import { recordingEvents } from '../../kube/events.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { CONFIG_MAPS, NAMESPACES, SECRETS } from '../../kube/resource.ts';
import { type CertSyncDeps, type CertSyncOptions, prepareDestination, syncCertificates } from './cert-sync.ts';
import { parseCertSyncerOptions, runCertSyncer } from './cert-syncer.ts';
import type { Files } from './files.ts';
import type { ObjectKind } from './object-files.ts';
import { type CrashMoment, crashingFiles, failingFiles, freeLock, temporaryFiles, visibleTree } from './testing.ts';

const NAMESPACE = 'openshift-kube-apiserver';
const OPTIONS: CertSyncOptions = {
  namespace: NAMESPACE,
  destinationDir: '/certs',
  configMaps: [{ name: 'client-ca' }],
  secrets: [{ name: 'serving' }, { name: 'user', optional: true }],
};
const base64 = (text: string) => Buffer.from(text).toString('base64');
const pair = (generation: number) => ({
  'tls.crt': base64(`certificate ${generation}`),
  'tls.key': base64(`key ${generation}`),
});

/** A cache that is as new as the API unless a test puts something else into it. */
async function setup(files: Files, generation = 1) {
  const kube = new MemoryKube();
  await kube.create(CONFIG_MAPS, {
    metadata: { namespace: NAMESPACE, name: 'client-ca' },
    data: { 'ca-bundle.crt': 'CA' },
  });
  await kube.create(SECRETS, { metadata: { namespace: NAMESPACE, name: 'serving' }, data: pair(generation) });
  const events = recordingEvents();
  const pass = async (overrides: Partial<CertSyncDeps> = {}) => {
    const [secrets, configMaps] = [
      await kube.list(SECRETS, { namespace: NAMESPACE }),
      await kube.list(CONFIG_MAPS, { namespace: NAMESPACE }),
    ];
    const cached = (kind: ObjectKind, name: string) =>
      (kind === 'secrets' ? secrets.items : configMaps.items).find(({ metadata }) => metadata?.name === name);
    const before = events.events.length;
    let error: unknown;
    try {
      await syncCertificates(OPTIONS, { kube, cached, files, lock: freeLock, events, log: silentLog, ...overrides });
    } catch (thrown) {
      error = thrown;
    }
    return { error, events: events.events.slice(before) };
  };
  const rotate = async (next: number) => {
    const secret = await kube.get(SECRETS, { namespace: NAMESPACE, name: 'serving' });
    await kube.update(SECRETS, { ...secret, data: pair(next) });
  };
  return { kube, pass, rotate };
}

test('objects are written once, with the permissions of their kind, and not again while they are the same', async t => {
  const { files } = await temporaryFiles(t);
  const { pass } = await setup(files);
  const first = await pass();
  assert.equal(first.error, undefined);
  assert.deepEqual(
    first.events.map(({ type, reason, message }) => [type, reason, message]),
    [
      ['Normal', 'CertificateUpdated', `Wrote updated configmap: ${NAMESPACE}/client-ca`],
      ['Normal', 'CertificateUpdated', `Wrote updated secret: ${NAMESPACE}/serving`],
    ],
  );
  assert.deepEqual(await visibleTree(files, '/certs'), {
    'configmaps/client-ca/ca-bundle.crt': '644 CA',
    'secrets/serving/tls.crt': '600 certificate 1',
    'secrets/serving/tls.key': '600 key 1',
  });
  assert.deepEqual(await pass(), { error: undefined, events: [] });
});

test('what the installer primed with other permissions is left alone', async t => {
  const { files } = await temporaryFiles(t);
  const { pass } = await setup(files);
  await files.makeDirectory('/certs/configmaps/client-ca');
  await files.createFile('/certs/configmaps/client-ca/ca-bundle.crt', Buffer.from('CA'), 0o600);
  const { events } = await pass();
  assert.deepEqual(
    events.map(({ message }) => message),
    [`Wrote updated secret: ${NAMESPACE}/serving`],
  );
});

test('a key of the object that is gone takes its file along', async t => {
  const { files } = await temporaryFiles(t);
  const { kube, pass } = await setup(files);
  await pass();
  const configMap = await kube.get(CONFIG_MAPS, { namespace: NAMESPACE, name: 'client-ca' });
  await kube.update(CONFIG_MAPS, { ...configMap, data: { other: '' } });
  await pass();
  assert.deepEqual(await visibleTree(files, '/certs/configmaps'), { 'client-ca/other': '644 ' });
});

test('a required object that is missing is an error without event, and its files stay', async t => {
  const { files } = await temporaryFiles(t);
  const { kube, pass } = await setup(files);
  await pass();
  await kube.delete(SECRETS, { namespace: NAMESPACE, name: 'serving' });
  const { error, events } = await pass();
  assert.match(String(error), /secrets "serving" not found/);
  assert.deepEqual(events, []);
  assert.equal((await files.readFile('/certs/secrets/serving/tls.crt')).toString(), 'certificate 1');
});

test('an optional object that is gone is removed from the disk, once that is certain', async t => {
  const { files } = await temporaryFiles(t);
  const { kube, pass } = await setup(files);
  await kube.create(SECRETS, { metadata: { namespace: NAMESPACE, name: 'user' }, data: pair(5) });
  await pass();
  const stale = await pass({ cached: (kind, name) => (name === 'user' ? undefined : cachedAll(kind, name)) });
  function cachedAll(kind: ObjectKind, name: string) {
    const data = kind === 'secrets' ? pair(1) : { 'ca-bundle.crt': 'CA' };
    return { metadata: { namespace: NAMESPACE, name }, data };
  }
  assert.deepEqual(stale, { error: undefined, events: [] }, 'the cache was behind');
  assert.ok(await files.info('/certs/secrets/user'));
  await kube.delete(SECRETS, { namespace: NAMESPACE, name: 'user' });
  const { events } = await pass();
  assert.deepEqual(
    events.map(({ type, reason, message }) => [type, reason, message]),
    [['Warning', 'CertificateRemoved', `Removed file for missing secret: ${NAMESPACE}/user`]],
  );
  assert.equal(await files.info('/certs/secrets/user'), undefined);
  assert.deepEqual((await pass()).events, []);
});

test('a cache that differs from the disk is checked against the API before anything is written', async t => {
  const { files } = await temporaryFiles(t);
  const { kube, pass, rotate } = await setup(files);
  await pass();
  const old = (kind: ObjectKind, name: string) =>
    kind === 'secrets' && name === 'serving'
      ? { metadata: { name }, data: pair(0) }
      : { metadata: { name }, data: { 'ca-bundle.crt': 'CA' } };
  const cached = (kind: ObjectKind, name: string) => (name === 'user' ? undefined : old(kind, name));
  assert.deepEqual(await pass({ cached }), { error: undefined, events: [] });
  await rotate(2);
  const broken = Object.assign(Object.create(kube) as MemoryKube, {
    get: () => Promise.reject(new KubeError(500, 'InternalError', 'no answer')),
  });
  const { error, events } = await pass({ kube: broken });
  assert.match(String(error), /no answer/);
  assert.deepEqual(
    events.map(({ type, reason, message }) => [type, reason, message]),
    [['Warning', 'CertificateUpdateFailed', `Failed getting secret: ${NAMESPACE}/serving: no answer`]],
  );
  assert.equal((await files.readFile('/certs/secrets/serving/tls.crt')).toString(), 'certificate 1');
});

test('a full disk is a warning, keeps the old pair, and does not stop the other objects (T28)', async t => {
  const { files } = await temporaryFiles(t);
  const { pass } = await setup(files);
  const full = failingFiles(files, (step, path) => step === 'createFile' && path.endsWith('ca-bundle.crt'));
  const { error, events } = await pass({ files: full });
  assert.match(String(error), /ENOSPC/);
  assert.deepEqual(
    events.map(({ type, reason }) => [type, reason]),
    [
      ['Warning', 'CertificateUpdateFailed'],
      ['Normal', 'CertificateUpdated'],
    ],
  );
});

test('a crash at any step of a pass leaves a whole pair, and the next start converges', async t => {
  for (const moment of ['halfway', 'after'] satisfies CrashMoment[]) {
    for (let at = 1; ; at++) {
      const { files } = await temporaryFiles(t);
      const { pass, rotate } = await setup(files);
      await pass();
      await rotate(2);
      const { error } = await pass({ files: crashingFiles(files, at, moment) });
      const certificate = (await files.readFile('/certs/secrets/serving/tls.crt')).toString();
      const key = (await files.readFile('/certs/secrets/serving/tls.key')).toString();
      assert.equal(certificate.replace('certificate', 'key'), key, `${moment} step ${at}`);
      await prepareDestination(OPTIONS, files);
      await pass();
      assert.equal((await files.list('/certs/secrets')).length, 2, 'a link and its generation');
      assert.equal((await files.readFile('/certs/secrets/serving/tls.key')).toString(), 'key 2');
      if (error === undefined) break;
      assert.match((error as Error).message, /crashed|dead/);
    }
  }
});

test('the program follows the API within moments and ends when its kubeconfig changes', async t => {
  const { files } = await temporaryFiles(t);
  const engine = await startEngine();
  t.after(() => engine.close());
  const { kube } = engine;
  await kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
  await kube.create(CONFIG_MAPS, {
    metadata: { namespace: NAMESPACE, name: 'client-ca' },
    data: { 'ca-bundle.crt': 'CA' },
  });
  const serving = await kube.create(SECRETS, { metadata: { namespace: NAMESPACE, name: 'serving' }, data: pair(1) });
  const events = recordingEvents('cert-syncer');
  await files.createFile('/kubeconfig', Buffer.from('first'), 0o600);
  const stop = new AbortController();
  const running = runCertSyncer(
    { ...OPTIONS, kubeconfig: '/kubeconfig' },
    { kube, files, lock: freeLock, clock: systemClock, log: silentLog, events },
    stop.signal,
  );
  const written = async (text: string) => {
    for (;;) {
      const content = await files.readFile('/certs/secrets/serving/tls.crt').catch(() => Buffer.from(''));
      if (content.toString() === text) return;
      await new Promise(resolve => setImmediate(resolve));
    }
  };
  await written('certificate 1');
  await kube.update(SECRETS, { ...serving, data: pair(2) });
  await written('certificate 2');
  await files.remove('/kubeconfig');
  await files.createFile('/kubeconfig', Buffer.from('second'), 0o600);
  assert.equal(await running, 'kubeconfig changed');
  assert.equal(events.events.at(-1)?.component, 'cert-syncer-cert-sync-controller');
});

test('the flags of the certificate syncer are those of upstream', () => {
  const lists = { configMaps: [], secrets: [] };
  const options = parseCertSyncerOptions(['--destination-dir=/d', '--kubeconfig=/k'], { POD_NAMESPACE: 'ns' }, lists);
  assert.deepEqual([options.destinationDir, options.namespace, options.kubeconfig], ['/d', 'ns', '/k']);
  assert.throws(() => parseCertSyncerOptions([], {}, lists), /--destination-dir is required/);
});
