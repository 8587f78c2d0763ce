import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../controller/log.ts';
import { systemClock, VirtualClock } from '../../kube/clock.ts';
import { minutes } from '../../kube/duration.ts';
import { recordingEvents } from '../../kube/events.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { syncCertificates } from './cert-sync.ts';
import { copyContent } from './installer.ts';
import { CountingKube, cluster, deps, NAMESPACE, options } from './installer-testing.ts';
import { acquireLock, tryLock } from './lock-file.ts';
import { temporaryFiles } from './testing.ts';
import { asOnlyWriter, type TakeLock } from './writers-lock.ts';

const CERTS = '/etc/kubernetes/static-pod-resources/kube-apiserver-certs';
const BUNDLE = `${CERTS}/configmaps/client-ca/ca-bundle.crt`;

test('an installer that has read an old bundle does not put it in the place of what the syncer brings', async t => {
  const { files, root } = await temporaryFiles(t);
  const kube = await cluster();
  const client = { namespace: NAMESPACE, name: 'client-ca' };
  const lock: TakeLock = (path, signal) => acquireLock(join(root, path), systemClock, signal);
  const asked = Promise.withResolvers<void>();
  let synced: Promise<void> | undefined;
  const syncer = async () => {
    const live = await kube.get(CONFIG_MAPS, client);
    const lists = { configMaps: [{ name: 'client-ca' }], secrets: [] };
    await syncCertificates(
      { namespace: NAMESPACE, destinationDir: CERTS, ...lists },
      {
        kube,
        cached: () => live,
        files,
        events: recordingEvents(),
        log: silentLog,
        lock: (path, signal) => {
          asked.resolve();
          return lock(path, signal);
        },
      },
    );
  };
  // Between an installer's read and its write the bundle changes, and the syncer hears of it.
  const late = Object.assign(Object.create(kube) as CountingKube, {
    get: async (...[resource, key]: Parameters<CountingKube['get']>) => {
      const found = await kube.get(resource, key);
      if (key.name === client.name && synced === undefined) {
        const { metadata = {} } = found;
        await kube.update(CONFIG_MAPS, { metadata, data: { 'ca-bundle.crt': 'old and new' } });
        synced = syncer();
        await Promise.race([synced, asked.promise]);
      }
      return found;
    },
  });
  await copyContent(options(), deps(late, files, { lock }));
  await synced;
  assert.equal((await files.readFile(BUNDLE)).toString(), 'old and new');
});

test('who waits for a lock that nobody gives up says so after a while', async t => {
  const { files, root } = await temporaryFiles(t);
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  await files.makeDirectory('/certs');
  const held = tryLock(join(root, '/certs/.writers.lock'));
  t.after(() => held?.release());
  const lock: TakeLock = (path, signal) => acquireLock(join(root, path), clock, signal);
  const work = asOnlyWriter('/certs', { files, lock, clock }, async () => 'worked');
  const outcome = work.catch((error: Error) => error.message);
  let isOver = false;
  void outcome.then(() => (isOver = true));
  while (!isOver) await clock.advance(minutes(1) / 10);
  assert.match(await outcome, /\.writers\.lock is still held by another writer after 1m0s/);
});
