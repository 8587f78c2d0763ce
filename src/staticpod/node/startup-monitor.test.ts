import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../controller/log.ts';
import { systemClock, VirtualClock } from '../../kube/clock.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { resource } from '../../kube/resource.ts';
import { FALLBACK_FOR_REVISION, FALLBACK_MESSAGE, FALLBACK_REASON } from '../installer/operand.ts';
import { findPreviousRevision } from './fallback.ts';
import type { Files } from './files.ts';
import { acquireLock, tryLock } from './lock-file.ts';
import { readManifest } from './manifest.ts';
import { promoteNode, type StaticPodOperator } from './promote.ts';
import {
  parseStartupMonitorOptions,
  type Readiness,
  runStartupMonitor,
  type StartupMonitorDeps,
} from './startup-monitor.ts';
import { crashingFiles, temporaryFiles } from './testing.ts';

const RESOURCES = '/etc/kubernetes/static-pod-resources';
const MANIFESTS = '/etc/kubernetes/manifests';
const MANIFEST = `${MANIFESTS}/kube-apiserver-pod.yaml`;
const OWN_MANIFEST = `${MANIFESTS}/kube-apiserver-startup-monitor-pod.yaml`;
const OPTIONS = parseStartupMonitorOptions([
  '--fallback-timeout-duration=300s',
  '--target-name=kube-apiserver',
  `--manifests-dir=${MANIFESTS}`,
  `--resource-dir=${RESOURCES}`,
  '--installer-lock-file=/var/lock/kube-apiserver-installer.lock',
  '--revision=8',
  '--node-name=master-0',
]);

const manifest = (revision: number) =>
  Buffer.from(
    JSON.stringify({ kind: 'Pod', metadata: { name: 'kube-apiserver', labels: { revision: String(revision) } } }),
  );

async function node(
  t: Parameters<typeof temporaryFiles>[0],
  revisions: readonly number[],
  current = 8,
): Promise<Files> {
  const { files } = await temporaryFiles(t);
  for (const revision of revisions) {
    const directory = join(RESOURCES, `kube-apiserver-pod-${revision}`);
    await files.makeDirectory(directory);
    await files.createFile(join(directory, 'kube-apiserver-pod.yaml'), manifest(revision), 0o600);
  }
  await files.makeDirectory(MANIFESTS);
  await files.createFile(MANIFEST, manifest(current), 0o600);
  await files.createFile(OWN_MANIFEST, manifest(current), 0o600);
  return files;
}

function harness(files: Files, answers: () => Readiness | Error) {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const state = { locks: 0, releases: 0, promoted: [] as string[], probes: 0 };
  const deps: StartupMonitorDeps = {
    files,
    clock,
    log: silentLog,
    isReady: async () => {
      state.probes++;
      const answer = answers();
      if (answer instanceof Error) throw answer;
      return answer;
    },
    promote: async (name, revision) => {
      assert.equal(state.locks, state.releases + 1, 'the lock is held');
      state.promoted.push(`${name}/${revision}`);
    },
    lock: async () => {
      state.locks++;
      return { release: () => state.releases++ };
    },
  };
  return { clock, state, deps };
}

async function run(
  deps: StartupMonitorDeps,
  clock: VirtualClock,
  signal = new AbortController().signal,
  options = OPTIONS,
): Promise<string> {
  let outcome: string | undefined;
  const running = runStartupMonitor(options, deps, signal).then(
    result => {
      outcome = result;
    },
    (error: Error) => {
      outcome = `error: ${error.message}`;
    },
  );
  // Files answer in real time, the clock stands still meanwhile.
  while (outcome === undefined) {
    await new Promise(resolve => setImmediate(resolve));
    if (clock.nextWait() !== undefined) await clock.advance(1000);
  }
  await running;
  return outcome;
}

const NOT_READY: Readiness = { ready: false, reason: 'SomeReason', message: 'Some message for the user' };
const READY: Readiness = { ready: true, reason: '', message: '' };

test('a revision that becomes ready is the one to return to, and the node is promoted', async t => {
  const files = await node(t, [7, 8]);
  let probes = 0;
  const { clock, state, deps } = harness(files, () => (++probes < 4 ? NOT_READY : READY));
  assert.equal(await run(deps, clock), 'good');
  assert.deepEqual(state.promoted, ['master-0/8']);
  assert.equal(state.locks, state.releases, 'the lock is free at the end');
  assert.equal(
    await files.linkTarget(`${RESOURCES}/kube-apiserver-last-known-good`),
    'kube-apiserver-pod-8/kube-apiserver-pod.yaml',
  );
  assert.equal(await files.info(OWN_MANIFEST), undefined);
  assert.equal(readManifest((await files.readFile(MANIFEST)).toString(), '').metadata?.annotations, undefined);
});

test('a revision that does not become ready in time gives way to the last known good one', async t => {
  for (const [link, revisions, expected] of [
    ['kube-apiserver-pod-5/kube-apiserver-pod.yaml', [5, 7, 8], '5'],
    [`${RESOURCES}/kube-apiserver-pod-9/kube-apiserver-pod.yaml`, [5, 7, 8], '7'],
    ['kube-apiserver-pod-8/kube-apiserver-pod.yaml', [5, 7, 8], '7'],
    [undefined, [5, 8, 9], '5'],
  ] as const) {
    const files = await node(t, revisions);
    if (link !== undefined) await files.link(link, `${RESOURCES}/kube-apiserver-last-known-good`);
    const { clock, state, deps } = harness(files, () => NOT_READY);
    assert.equal(await run(deps, clock), 'fell back');
    const pod = readManifest((await files.readFile(MANIFEST)).toString(), '');
    assert.equal(pod.metadata?.labels?.revision, expected);
    assert.deepEqual(pod.metadata?.annotations, {
      [FALLBACK_FOR_REVISION]: '8',
      [FALLBACK_REASON]: 'SomeReason',
      [FALLBACK_MESSAGE]: 'Some message for the user',
    });
    assert.match(pod.metadata?.uid ?? '', /^[0-9a-f-]{36}$/);
    assert.deepEqual(state.promoted, []);
    assert.ok(state.probes >= 299 && state.probes <= 301, `probed every second: ${state.probes}`);
    assert.equal(await files.info(OWN_MANIFEST), undefined);
  }
});

test('with nothing to return to the failing pod stays', async t => {
  const files = await node(t, [8]);
  const { clock, deps } = harness(files, () => NOT_READY);
  assert.equal(await run(deps, clock), 'nothing to fall back to');
  assert.equal(readManifest((await files.readFile(MANIFEST)).toString(), '').metadata?.labels?.revision, '8');
});

test('not knowing is no reason to fall back: another revision, a check that fails, a stop', async t => {
  const files = await node(t, [7, 8], 9);
  const other = harness(files, () => READY);
  assert.match(await run(other.deps, other.clock), /^error: expected .* to carry the label revision 8, found "9"$/);
  assert.equal(other.state.locks, other.state.releases);

  const failing = harness(await node(t, [7, 8]), () => new Error('cannot tell'));
  assert.equal(await run(failing.deps, failing.clock), 'error: cannot tell');
  assert.equal(failing.state.locks, failing.state.releases);

  const stop = new AbortController();
  const stopped = harness(await node(t, [7, 8]), () => {
    stop.abort(new Error('told to stop'));
    return NOT_READY;
  });
  assert.equal(await run(stopped.deps, stopped.clock, stop.signal), 'error: told to stop');
  assert.ok(await stopped.deps.files.info(OWN_MANIFEST));
});

test('a monitor that dies at any step of falling back leaves a whole manifest', async t => {
  for (let at = 1; ; at++) {
    const files = await node(t, [7, 8]);
    const { clock, deps } = harness(crashingFiles(files, at, 'halfway'), () => NOT_READY);
    const outcome = await run(deps, clock, undefined, { ...OPTIONS, fallbackTimeoutMs: 3000 });
    const revision = readManifest((await files.readFile(MANIFEST)).toString(), `step ${at}`).metadata?.labels?.revision;
    assert.ok(revision === '7' || revision === '8');
    if (outcome === 'fell back') break;
    assert.match(outcome, /crashed|dead/);
  }
});

test('the previous revision on the disk', () => {
  const cases: [string[], string[], number | undefined][] = [
    [[], [], undefined],
    [['kube-abc-apiserver-pod-11'], [], undefined],
    [['kube-apiserver-pod-7'], [], 7],
    [['kube-apiserver-pod-5', 'kube-apiserver-pod-8', 'kube-apiserver-pod-4'], [], 5],
    [['kube-apiserver-pod-abc-11'], [], undefined],
    [['kube-apiserver-pod-7', 'kube-apiserver-pod-6'], ['kube-apiserver-pod-7'], 6],
  ];
  for (const [directories, without, expected] of cases) {
    assert.equal(
      findPreviousRevision(directories, 'kube-apiserver', 8, name => !without.includes(name)),
      expected,
    );
  }
});

test('promotion happens only while the revision is still the target', async () => {
  const operators = resource<StaticPodOperator>('operator.openshift.io/v1', 'KubeAPIServer', 'kubeapiservers', false);
  const kube = new MemoryKube();
  const nodeStatuses = [
    { nodeName: 'master-0', currentRevision: 7, targetRevision: 8 },
    { nodeName: 'master-1', currentRevision: 7, targetRevision: 9 },
  ];
  await kube.create(operators, { metadata: { name: 'cluster' }, status: { nodeStatuses } });
  await promoteNode(kube, operators, 'master-0', 8, systemClock);
  await promoteNode(kube, operators, 'master-1', 8, systemClock);
  await promoteNode(kube, operators, 'master-2', 8, systemClock);
  const { status } = await kube.get(operators, { name: 'cluster' });
  assert.deepEqual(status?.nodeStatuses, [
    { nodeName: 'master-0', currentRevision: 8, targetRevision: 0 },
    { nodeName: 'master-1', currentRevision: 7, targetRevision: 9 },
  ]);
});

test('the lock is exclusive, can be waited for and is free after release', async t => {
  const { root } = await temporaryFiles(t);
  const path = join(root, 'installer.lock');
  const first = tryLock(path);
  assert.ok(first);
  assert.equal(tryLock(path), undefined);
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const stop = new AbortController();
  const waiting = acquireLock(path, clock, stop.signal);
  const cancelled = assert.rejects(acquireLock(path, clock, AbortSignal.abort(new Error('late'))), /late/);
  await clock.advance(1000);
  first.release();
  first.release();
  await clock.advance(300);
  (await waiting).release();
  await cancelled;
  assert.throws(() => tryLock(join(root, 'no', 'such', 'directory')), /cannot lock|unable to open/);
});
