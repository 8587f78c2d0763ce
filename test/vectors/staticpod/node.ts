import assert from 'node:assert/strict';
import { join } from 'node:path';
import { silentLog } from '../../../src/controller/log.ts';
import { sleep, VirtualClock } from '../../../src/kube/clock.ts';
import { minutes } from '../../../src/kube/duration.ts';
import { KubeError } from '../../../src/kube/error.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import type { Kube } from '../../../src/kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../../src/kube/resource.ts';
import { syncCertificates } from '../../../src/staticpod/node/cert-sync.ts';
import { leftovers, replaceDirectory } from '../../../src/staticpod/node/directory-swap.ts';
import { fallBack, findPreviousRevision } from '../../../src/staticpod/node/fallback.ts';
import type { Files } from '../../../src/staticpod/node/files.ts';
import { copyContent, type InstallerDeps } from '../../../src/staticpod/node/installer.ts';
import type { InstallerOptions } from '../../../src/staticpod/node/installer-options.ts';
import { needsUid, readManifest } from '../../../src/staticpod/node/manifest.ts';
import { runPrune } from '../../../src/staticpod/node/prune.ts';
import { readObject, retryUntil } from '../../../src/staticpod/node/read-retry.ts';
import { decideSettle, SETTLE_LIMIT_MS, SETTLE_PAUSE_MS, SETTLE_POLL_MS } from '../../../src/staticpod/node/settle.ts';
import { runStartupMonitor } from '../../../src/staticpod/node/startup-monitor.ts';
import { crashingFiles, failingFiles, freeLock, temporaryFiles } from '../../../src/staticpod/node/testing.ts';
import { intercepted, NOW } from '../../../src/staticpod/testing.ts';
import { type Adapter, attempt, checkError, defined, errorOf, type Json, objectOf } from './case.ts';

const NAMESPACE = 'some-ns';

export const nodeAdapters: Record<string, Adapter> = {
  async 'prune.disk'(given, expected, t) {
    const { files } = await temporaryFiles(t);
    for (const name of given.directories) await files.makeDirectory(`/resources/${name}`);
    for (const name of given.files ?? []) await files.createFile(`/resources/${name}`, Buffer.from('x'), 0o600);
    const { staticPodName, maxEligibleRevision, protectedRevisions, certDir } = given;
    const options = { resourceDir: '/resources', staticPodName, maxEligibleRevision, protectedRevisions, ...defined({ certDir }) };
    const error = await attempt(() => runPrune(options, { files, clock: new VirtualClock(NOW), log: silentLog }));
    checkError(error, expected.error ?? null);
    const left = (await files.list('/resources')).filter(({ kind }) => kind === 'directory').map(({ name }) => name);
    assert.deepEqual(new Set(left), new Set(expected.directoriesLeft));
  },

  'startupMonitor.findPrevious'({ targetName, revision, entries, withoutManifest = [] }, expected) {
    const directories = entries.map(({ dir }: Json) => dir).filter((dir: Json) => dir !== undefined);
    const found = findPreviousRevision(directories, targetName, revision, directory => !withoutManifest.includes(directory));
    assert.equal(found !== undefined, expected.found);
    if (expected.revision !== undefined) assert.equal(found, expected.revision);
  },

  async 'startupMonitor.run'(given, expected, t) {
    const { files } = await temporaryFiles(t);
    const monitor = await monitoredNode(files, 'kube-apiserver', 8, [7]);
    const clock = new VirtualClock(NOW);
    const stop = new AbortController();
    let held = 0;
    let heldAtWork = false;
    let isPromoted = false;
    const lock = async () => {
      held++;
      return { release: () => held-- };
    };
    const watched = intercept(files, step => {
      if (step === 'link' || step === 'rename') heldAtWork ||= held > 0;
    });
    const isReady = async () => {
      if (given.cancelled) stop.abort(new Error('stopped'));
      if (given.monitorError) throw new Error('cannot tell');
      return { ready: given.ready ?? false, reason: 'SomeReason', message: 'some message' };
    };
    const promote = async () => {
      isPromoted = true;
      heldAtWork ||= held > 0;
    };
    const deps = { files: watched, clock, log: silentLog, isReady, promote, lock };
    const error = await driven(clock, () => attempt(() => runStartupMonitor(monitor, deps, stop.signal)));
    const manifest = readManifest((await files.readFile('/manifests/kube-apiserver-pod.yaml')).toString(), 'manifest');
    const found = {
      error: error !== undefined,
      fallback: Object.keys(manifest.metadata?.annotations ?? {}).length > 0,
      markGood: isPromoted,
      selfRemoval: (await files.info('/manifests/kube-apiserver-startup-monitor-pod.yaml')) === undefined,
      // Held while manifests and links change; afterwards it is given back, which is what 17.1.5 asks for.
      lockHeld: heldAtWork,
    };
    assert.equal(held, 0);
    for (const [field, value] of Object.entries(expected)) assert.equal(found[field as keyof typeof found], value, field);
  },

  async 'startupMonitor.fallback'(given, expected, t) {
    const { files } = await temporaryFiles(t);
    const { targetName, revision, lastKnownGoodExists, reason, message } = given;
    const onDisk = given.revisionsOnDisk ?? (given.previousRevision === null ? [] : [given.previousRevision ?? revision - 1]);
    const options = await monitoredNode(files, targetName, revision, onDisk);
    const link = `/resources/${targetName}-last-known-good`;
    if (lastKnownGoodExists) await files.link(`${targetName}-pod-${onDisk[0]}/${targetName}-pod.yaml`, link);
    const before = await files.linkTarget(link);
    const didFallBack = await fallBack(files, options, { reason, message });
    assert.equal(didFallBack, expected.written !== undefined && expected.written !== null);
    // Ours is replaced, and never gone in between.
    if (expected.removed !== undefined) assert.match(String(expected.removed), /^not required;|^\//);
    if (!didFallBack) return;
    const path = `/manifests/${targetName}-pod.yaml`;
    assert.ok(String(expected.written).endsWith(path));
    const manifest = readManifest((await files.readFile(path)).toString(), path);
    if (expected.annotations !== undefined) assert.deepEqual(manifest.metadata?.annotations, expected.annotations);
    if (expected.symlinkCreated !== undefined) assert.equal((await files.linkTarget(link)) !== before, expected.symlinkCreated);
  },

  async 'installerPod.copy'(given, expected, t) {
    const { files } = await temporaryFiles(t);
    const error = await install(given, files);
    checkError(error, expected.error ?? null);
    const tree = await treeOf(files, '/');
    for (const [path, wanted] of Object.entries<Json>(expected.files ?? expected.filesInclude ?? {})) {
      const file = tree.get(path);
      assert.ok(file, `${path} is missing`);
      if (wanted.content !== undefined) assert.equal(file.content.toString(), wanted.content, path);
      if (wanted.contentHex !== undefined) assert.equal(file.content.toString('hex'), wanted.contentHex, path);
      if (wanted.podEquals !== undefined) assert.deepEqual(JSON.parse(file.content.toString()), wanted.podEquals, path);
      if (wanted.mode !== undefined) assert.equal(`0${file.mode.toString(8)}`, wanted.mode, path);
    }
    if (expected.files !== undefined) assert.deepEqual([...tree.keys()].sort(byText), Object.keys(expected.files).sort(byText));
    for (const path of expected.absent ?? []) assert.equal(await files.info(`/${path}`), undefined, path);
  },

  'installerPod.needsUid'({ kubeletVersion }, { generateUid }) {
    assert.equal(needsUid(kubeletVersion), generateUid);
  },

  async 'installerPod.get'({ exists, optional, firstResponse }, expected) {
    const memory = new MemoryKube();
    const key = { namespace: NAMESPACE, name: 'object' };
    if (exists) await memory.create(SECRETS, { metadata: key });
    let attempts = 0;
    const kube = intercepted(memory, () => {
      attempts++;
      if (attempts === 1 && firstResponse !== null) throw new KubeError(firstResponse, 'Failure', `answered ${firstResponse}`);
    });
    const clock = new VirtualClock(NOW);
    const deadline = new Date(NOW.getTime() + minutes(2));
    const error = await driven(clock, () => attempt(() => readObject(kube, SECRETS, key, { optional, clock, deadline })));
    assert.equal(error !== undefined, expected.error);
    if (expected.attempts !== undefined) assert.equal(attempts, expected.attempts);
    if (expected.attemptsMin !== undefined) assert.ok(attempts >= expected.attemptsMin);
  },

  async 'installerPod.settle'({ nodeName, revision, pods }, expected) {
    const installers = pods.map(({ name, node, containers }: Json) => ({
      metadata: { name },
      spec: { nodeName: node, containers: [] },
      status: {
        containerStatuses: containers.map(({ terminated }: Json) => ({ state: terminated ? { terminated: { exitCode: 0 } } : { running: {} } })),
      },
    }));
    let decision: Json;
    const error = await attempt(() => (decision = decideSettle(installers, nodeName, revision)));
    if (typeof expected.error === 'string') assert.ok(error?.message.includes(expected.error), error?.message);
    else if (expected.error !== undefined) assert.equal(error !== undefined, Boolean(expected.error));
    else assert.equal(error, undefined);
    if (expected.result !== undefined && expected.result !== 'error') assert.equal(decision.result, expected.result);
    if (expected.waiting !== undefined) assert.equal(decision.result === 'waiting', expected.waiting);
    if (expected.fixedDelaySeconds !== undefined) assert.equal(SETTLE_PAUSE_MS / 1000, expected.fixedDelaySeconds);
    if (expected.pollSeconds !== undefined) assert.equal(SETTLE_POLL_MS / 1000, expected.pollSeconds);
    if (expected.giveUpAfterSeconds !== undefined) assert.equal(SETTLE_LIMIT_MS / 1000, expected.giveUpAfterSeconds);
  },

  async 'installerPod.order'(given, expected, t) {
    const { files } = await temporaryFiles(t);
    const { options } = given;
    const { revision } = options;
    const copies = (kind: string, names: string[] = []) => names.map(name => ({ kind, name: `${name}-${revision}`, data: { key: 'x' } }));
    const objects = [
      ...copies('Secret', options.secrets),
      ...copies('Secret', options.optionalSecrets),
      { kind: 'ConfigMap', name: `${options.pod}-${revision}`, data: { 'pod.yaml': { kind: 'Pod', metadata: { name: 'p' } } } },
      ...copies('ConfigMap', (options.configmaps ?? []).filter((name: string) => name !== options.pod)),
      ...(options.certSecrets ?? []).map((name: string) => ({ kind: 'Secret', name, data: { key: 'x' } })),
      ...(options.certConfigmaps ?? []).map((name: string) => ({ kind: 'ConfigMap', name, data: { key: 'x' } })),
    ];
    const reads: string[] = [];
    const writes: string[] = [];
    const wrote = (what: string | undefined) => {
      if (what !== undefined && writes.at(-1) !== what) writes.push(what);
    };
    const certDir = options.certDir ?? 'resources/certs';
    const placeOf = (path: string): string | undefined => {
      for (const [prefix, set] of [[`/resources/${options.pod}-${revision}`, 'revisioned'], [`/${certDir}`, 'cert']] as const) {
        for (const kind of ['secrets', 'configmaps']) if (path.startsWith(`${prefix}/${kind}/`)) return `${set} ${kind}`;
      }
      if (path.startsWith('/manifests/')) return 'manifestDir pod manifest (atomic replacement)';
      return path.endsWith('.yaml') ? 'resourceDir pod manifest' : undefined;
    };
    const watched = intercept(files, (step, path) => {
      if (step === 'rename') wrote(placeOf(path));
      if (step === 'remove' && path.startsWith('/manifests/')) wrote('old manifest removed');
    });
    const deps: Partial<InstallerDeps> = {
      lock: async path => {
        const isManifests = path.endsWith('installer.lock');
        if (isManifests) wrote('lock acquired');
        return { release: () => isManifests && wrote('lock released') };
      },
    };
    const error = await install({ options: { ...options, certDir }, objects }, watched, deps, (plural, name) => {
      if (plural === 'secrets' || plural === 'configmaps') reads.push(`${plural}/${name}`);
    });
    assert.equal(error, undefined);
    if (expected.readsInOrder !== undefined) assert.deepEqual(reads, expected.readsInOrder);
    if (expected.writesInOrder !== undefined) assert.deepEqual(writes, expected.writesInOrder);
  },

  async 'installerPod.writeManifest'({ existingManifest, crashAfter }, expected, t) {
    // Every moment is tried, also the one that the case names.
    assert.match(crashAfter ?? '', /^\w*$/);
    const pod = (name: string) => ({ apiVersion: 'v1', kind: 'Pod', metadata: { namespace: NAMESPACE, name } });
    const given = {
      options: { revision: '6', pod: 'kube-apiserver-pod', configmaps: [] },
      objects: [{ kind: 'ConfigMap', name: 'kube-apiserver-pod-6', data: { 'pod.yaml': pod('new') } }],
    };
    for (let at = 1, isDone = false; !isDone; at++) {
      const { files } = await temporaryFiles(t);
      const path = '/manifests/kube-apiserver-pod.yaml';
      if (existingManifest) {
        await files.makeDirectory('/manifests');
        await files.createFile(path, Buffer.from(JSON.stringify(pod('old'))), 0o600);
      }
      isDone = (await install(given, crashingFiles(files, at, 'halfway'))) === undefined;
      const isPresent = (await files.info(path)) !== undefined;
      if (existingManifest) assert.equal(isPresent, expected.manifestPresent, `crash at step ${at}`);
      if (!isPresent) continue;
      const { metadata } = readManifest((await files.readFile(path)).toString(), path);
      if (expected.manifestIs !== undefined) assert.ok(expected.manifestIs.includes(metadata?.name), `crash at step ${at}: ${metadata?.name}`);
    }
  },

  async 'certSync.sync'(given, expected, t) {
    const { files } = await temporaryFiles(t);
    await writeTree(files, '/certs', given.directories);
    const memory = new MemoryKube();
    await createAll(memory, given.objects);
    const kube = intercepted(memory, (verb, _resource, name) => {
      if (verb === 'get' && given.liveGetErrors?.includes(name)) throw errorOf('the server is not well');
    });
    const cachedList = [...(given.cachedObjects ?? []), ...given.objects].filter(({ name }: Json) => !given.cacheMissing?.includes(name));
    const cached = (kind: string, name: string) => {
      const found = cachedList.find((object: Json) => object.name === name && (object.kind === 'Secret') === (kind === 'secrets'));
      return found && objectOf(found, NAMESPACE);
    };
    const events = recordingEvents();
    const options = { namespace: NAMESPACE, destinationDir: '/certs', configMaps: given.configMaps, secrets: given.secrets };
    const error = await attempt(() => syncCertificates(options, { kube, cached, files, lock: freeLock, events, log: silentLog }));
    assert.equal(error !== undefined, expected.error, error?.message);
    if (expected.events !== undefined) assert.deepEqual(events.events.map(({ reason }) => reason), expected.events.map((event: Json) => event.reason ?? event));
    if (expected.directories !== undefined) assert.deepEqual(await directoriesOf(files, '/certs'), expected.directories);
  },

  async 'atomicDir.sync'({ existing, files: wanted, fault }, expected, t) {
    const { files } = await temporaryFiles(t);
    if (existing !== null) await writeTree(files, '/objects', { target: existing });
    let writes = 0;
    const isStaging = (path: string) => /\/\.[^/]*$/.test(path);
    const faulty = failingFiles(files, (step, path) => {
      if (step === 'createFile') writes++;
      switch (fault) {
        case undefined:
        case null:
          return false;
        case 'mkdirStaging':
          return step === 'makeDirectory' && isStaging(path);
        case 'fsyncTargetParent':
        case 'fsyncParent':
          return step === 'flushDirectory' && path === '/objects';
        case 'fsyncStaging':
        case 'fsyncStagingDirectory':
          return step === 'flushDirectory' && isStaging(path);
        case 'swap':
        case 'exchange':
        case 'rename':
          return step === 'rename' && path === '/objects/target';
        default: {
          const match = /^(?:writeFile|fsyncFile|chmodFile)(\d+)$/.exec(fault);
          assert.ok(match, `a fault nobody knows: ${fault}`);
          return step === 'createFile' && writes === Number(match[1]);
        }
      }
    });
    const content = new Map(Object.entries<Json>(wanted).map(([name, file]) => [name, { content: bytesOf(file), mode: Number.parseInt(file.mode, 8) }]));
    const error = await attempt(() => replaceDirectory(faulty, '/objects/target', content, 'installer'));
    assert.equal(error !== undefined, expected.error, error?.message);
    assert.deepEqual((await directoriesOf(files, '/'))['objects/target'] ?? null, expected.directory);
    if (expected.stagingLeft !== undefined) assert.equal((await leftovers(files, '/objects')).length > 0, expected.stagingLeft);
  },

  async 'retry.connectionErrors'({ everyAttemptFailsWith, deadlineMs, attemptDurationMs, firstFailures }, expected) {
    const clock = new VirtualClock(NOW);
    let attempts = 0;
    const work = async () => {
      attempts++;
      await sleep(clock, attemptDurationMs);
      const code = firstFailures === undefined ? everyAttemptFailsWith : (firstFailures[attempts - 1] ?? null);
      if (code !== null) throw new KubeError(code, 'Failure', String(code));
    };
    const error = await driven(clock, () => attempt(() => retryUntil(clock, new Date(NOW.getTime() + deadlineMs), work)));
    if (expected.attempts !== undefined) assert.equal(attempts, expected.attempts);
    if (expected.attemptsMin !== undefined) assert.ok(attempts >= expected.attemptsMin, `${attempts} attempts`);
    assert.equal(error?.message ?? null, expected.error === null ? null : String(expected.error));
  },
};

/** Runs the copy phase of the installer below a root directory. */
async function install(
  given: Json,
  files: Files,
  deps: Partial<InstallerDeps> = {},
  onRead: (plural: string, name: string) => void = () => {},
): Promise<Error | undefined> {
  const memory = new MemoryKube();
  await createAll(memory, given.objects);
  const kube = intercepted(memory, (verb, resource, name) => {
    if (verb === 'get') onRead(resource.plural, name);
  });
  const clock = new VirtualClock(NOW);
  return driven(clock, () =>
    attempt(() => copyContent(optionsOf(given.options), { kube, files, clock, log: silentLog, events: recordingEvents(), lock: freeLock, ...deps })),
  );
}

function optionsOf(given: Json): InstallerOptions {
  const { revision, pod, certDir, lockFile } = given;
  return {
    revision,
    pod,
    nodeName: given.nodeName ?? 'm0',
    namespace: NAMESPACE,
    resourceDir: '/resources',
    podManifestDir: '/manifests',
    configMaps: given.configmaps ?? [],
    optionalConfigMaps: given.optionalConfigmaps ?? [],
    secrets: given.secrets ?? [],
    optionalSecrets: given.optionalSecrets ?? [],
    certDir: certDir === undefined ? undefined : `/${certDir}`,
    certConfigMaps: given.certConfigmaps ?? [],
    optionalCertConfigMaps: given.optionalCertConfigmaps ?? [],
    certSecrets: given.certSecrets ?? [],
    optionalCertSecrets: given.optionalCertSecrets ?? [],
    podManifestsLockFile: lockFile ? '/lock/installer.lock' : undefined,
    timeoutMs: minutes(2),
    settlePauseMs: 0,
  };
}

/** A node whose startup monitor watches `revision`, with older revisions on its disk. */
async function monitoredNode(files: Files, targetName: string, revision: number, older: readonly number[]) {
  const manifest = (labels: Record<string, string>, name = targetName) =>
    Buffer.from(JSON.stringify({ apiVersion: 'v1', kind: 'Pod', metadata: { name, labels } }));
  for (const number of [...older, revision]) {
    await files.makeDirectory(`/resources/${targetName}-pod-${number}`);
    const path = `/resources/${targetName}-pod-${number}/${targetName}-pod.yaml`;
    await files.createFile(path, manifest({ revision: String(number) }), 0o600);
  }
  await files.makeDirectory('/manifests');
  await files.createFile(`/manifests/${targetName}-pod.yaml`, manifest({ revision: String(revision) }), 0o600);
  await files.createFile(`/manifests/${targetName}-startup-monitor-pod.yaml`, manifest({}, `${targetName}-startup-monitor`), 0o600);
  return {
    targetName,
    revision,
    resourceDir: '/resources',
    manifestsDir: '/manifests',
    nodeName: 'm0',
    fallbackTimeoutMs: 33_000,
    installerLockFile: '/lock/installer.lock',
  };
}

async function createAll(kube: Kube, objects: readonly Json[]): Promise<void> {
  for (const object of objects) {
    const { kind, ...rest } = objectOf(bytesToText(object), NAMESPACE);
    await kube.create(kind === 'Secret' ? SECRETS : CONFIG_MAPS, rest as Json);
  }
}

/** `dataHex` is content that is not text. */
function bytesToText(object: Json): Json {
  if (object.dataHex === undefined) return object;
  const data = Object.entries<string>(object.dataHex).map(([key, hex]) => [key, Buffer.from(hex, 'hex').toString('latin1')]);
  return { ...object, data: { ...object.data, ...Object.fromEntries(data) } };
}

function bytesOf({ content, contentHex }: Json): Buffer {
  return contentHex === undefined ? Buffer.from(content) : Buffer.from(contentHex, 'hex');
}

async function writeTree(files: Files, base: string, directories: Json): Promise<void> {
  await files.makeDirectory(base);
  for (const [path, entries] of Object.entries<Json>(directories)) {
    await files.makeDirectory(join(base, path));
    for (const [name, file] of Object.entries<Json>(entries)) {
      await files.createFile(join(base, path, name), bytesOf(file), Number.parseInt(file.mode ?? '0600', 8));
    }
  }
}

/** All files by path, links followed, hidden entries left out. */
async function treeOf(files: Files, path: string): Promise<Map<string, { content: Buffer; mode: number }>> {
  const found = new Map<string, { content: Buffer; mode: number }>();
  for (const { name } of await files.list(path)) {
    if (name.startsWith('.')) continue;
    const child = join(path, name);
    const info = await files.info(child);
    if (info?.kind === 'directory') for (const [key, value] of await treeOf(files, child)) found.set(key, value);
    else if (info?.kind === 'file') found.set(child.replace(/^\//, ''), { content: await files.readFile(child), mode: info.mode });
  }
  return found;
}

/** The directories of objects, `<kind>/<name>`, with what is in them. */
async function directoriesOf(files: Files, base: string): Promise<Json> {
  const found: Json = {};
  for (const { name: kind } of await files.list(base)) {
    for (const { name } of await files.list(join(base, kind))) {
      if (name.startsWith('.')) continue;
      const directory: Json = {};
      for (const [path, { content, mode }] of await treeOf(files, join(base, kind, name))) {
        directory[path.split('/').at(-1) as string] = { content: content.toString(), mode: `0${mode.toString(8)}` };
      }
      found[`${kind}/${name}`] = directory;
    }
  }
  return found;
}

/** The same files, with somebody told of each step and the path it is about. */
function intercept(files: Files, before: (step: keyof Files, path: string) => void): Files {
  return {
    ...files,
    createFile(path, content, mode) {
      before('createFile', path);
      return files.createFile(path, content, mode);
    },
    link(target, path) {
      before('link', path);
      return files.link(target, path);
    },
    rename(from, to) {
      before('rename', to);
      return files.rename(from, to);
    },
    remove(path) {
      before('remove', path);
      return files.remove(path);
    },
  };
}

/** Moves the clock as long as the work waits for it. */
async function driven<T>(clock: VirtualClock, work: () => Promise<T>): Promise<T> {
  let isOver = false;
  const over = () => (isOver = true);
  const result = work();
  result.then(over, over);
  while (!isOver) {
    await new Promise(resolve => setImmediate(resolve));
    const next = clock.nextWait();
    // Work on real files takes time of its own; the clock moves only when nothing happened for a while.
    for (let tick = 0; tick < 20 && !isOver && clock.nextWait()?.getTime() === next?.getTime(); tick++) {
      await new Promise(resolve => setImmediate(resolve));
    }
    if (!isOver && next !== undefined && next.getTime() < NOW.getTime() + minutes(2)) await clock.advanceTo(next);
  }
  return result;
}

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
