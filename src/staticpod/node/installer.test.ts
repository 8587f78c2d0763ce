import assert from 'node:assert/strict';
import { join } from 'node:path';
import { test } from 'node:test';
import { VirtualClock } from '../../kube/clock.ts';
import { recordingEvents } from '../../kube/events.ts';
import { NODES, SECRETS } from '../../kube/resource.ts';
import { leftovers } from './directory-swap.ts';
import type { Files } from './files.ts';
import { copyContent, runInstaller } from './installer.ts';
import { type InstallerOptions, parseInstallerOptions } from './installer-options.ts';
import { CountingKube, cluster, deps, installerPod, manifestText, NAMESPACE, options } from './installer-testing.ts';
import { readManifest } from './manifest.ts';
import { Crash, type CrashMoment, crashingFiles, failingFiles, temporaryFiles, visibleTree } from './testing.ts';

test('the installer writes the revision, primes the certificates and puts the manifest in place', async t => {
  const { files } = await temporaryFiles(t);
  const kube = await cluster();
  await copyContent(options(), deps(kube, files));
  const tree = await visibleTree(files, '/etc/kubernetes');
  const below = (prefix: string) =>
    Object.fromEntries(
      Object.entries(tree)
        .filter(([path]) => path.startsWith(prefix) && !path.endsWith('-pod.yaml') && !path.endsWith('/pod.yaml'))
        .map(([path, value]) => [path.slice(prefix.length), value]),
    );
  assert.deepEqual(below('static-pod-resources/kube-apiserver-pod-7/'), {
    'configmaps/config/config.yaml': '600 node: master-0.example',
    'configmaps/config/setup.sh': '755 echo 7',
    'configmaps/kube-apiserver-pod/version': '600 x',
    'secrets/etcd-client/tls.crt': '600 certificate 7',
    'secrets/etcd-client/tls.key': '600 key 7',
  });
  assert.deepEqual(below('static-pod-resources/kube-apiserver-certs/'), {
    'configmaps/client-ca/ca-bundle.crt': '600 REVISION bundle',
    'secrets/serving/tls.crt': '600 serving certificate',
    'secrets/serving/tls.key': '600 serving key',
  });
  const manifest = tree['manifests/kube-apiserver-pod.yaml'] as string;
  assert.equal(tree['static-pod-resources/kube-apiserver-pod-7/kube-apiserver-pod.yaml'], manifest);
  assert.match(manifest, /^600 /);
  const pod = readManifest(manifest.slice(4), 'manifest');
  assert.equal(pod.metadata?.labels?.revision, '7');
  assert.equal(pod.metadata?.uid, undefined);
  assert.deepEqual(pod.spec?.containers[0]?.args, ['--node=master-0.example', '--env=master_0_example']);
  assert.deepEqual(kube.reads.slice(1), [
    'secrets/etcd-client-7',
    'secrets/encryption-config-7',
    'configmaps/config-7',
    'configmaps/kube-apiserver-pod-7',
    'configmaps/cloud-config-7',
    'secrets/serving',
    'secrets/user-serving-cert-000',
    'configmaps/client-ca',
    'configmaps/kube-apiserver-pod-7',
  ]);
});

test('a second run of the same revision changes nothing on the disk', async t => {
  const { files } = await temporaryFiles(t);
  const kube = await cluster();
  await copyContent(options(), deps(kube, files));
  const refuse = failingFiles(files, step => step === 'createFile' || step === 'rename');
  await copyContent(options(), deps(kube, refuse));
});

test('secrets that are not text come through unchanged, tokens replaced around them (T21)', async t => {
  const { files } = await temporaryFiles(t);
  const kube = await cluster();
  const bytes = Buffer.concat([
    Buffer.from([0xff, 0xfe, 0x00, 0xc3, 0x28]),
    Buffer.from('REVISION'),
    Buffer.from([0x80]),
  ]);
  await kube.create(SECRETS, {
    metadata: { namespace: NAMESPACE, name: 'raw-7' },
    data: { blob: bytes.toString('base64') },
  });
  await copyContent(options({ secrets: ['raw'] }), deps(kube, files));
  const written = await files.readFile('/etc/kubernetes/static-pod-resources/kube-apiserver-pod-7/secrets/raw/blob');
  assert.equal(written.toString('hex'), 'fffe00c3283780');
});

test('a crash after every step of the file system: the manifest is always whole, and a new run converges', async t => {
  const kube = await cluster(['6', '7']);
  const small = (revision: string) =>
    options({ revision, configMaps: ['kube-apiserver-pod'], optionalConfigMaps: [], certConfigMaps: [] });
  const { files: reference } = await temporaryFiles(t);
  await copyContent(small('6'), deps(kube, reference));
  await copyContent(small('7'), deps(kube, reference));
  const expected = await visibleTree(reference, '/');
  const manifestPath = '/etc/kubernetes/manifests/kube-apiserver-pod.yaml';
  for (const moment of ['halfway', 'after'] satisfies CrashMoment[]) {
    for (let at = 1; ; at++) {
      const { files } = await temporaryFiles(t);
      await copyContent(small('6'), deps(kube, files));
      let isOver = false;
      try {
        await copyContent(small('7'), deps(kube, crashingFiles(files, at, moment)));
        isOver = true;
      } catch (error) {
        assert.ok(error instanceof Crash, String(error));
      }
      const where = `${moment} step ${at}`;
      const manifest = readManifest((await files.readFile(manifestPath)).toString(), where);
      const revision = manifest.metadata?.labels?.revision ?? '';
      assert.ok(['6', '7'].includes(revision), where);
      // Whatever the manifest names is there, complete.
      const directory = `/etc/kubernetes/static-pod-resources/kube-apiserver-pod-${revision}`;
      const pair = await visibleTree(files, join(directory, 'secrets/etcd-client'));
      assert.deepEqual(pair, { 'tls.crt': `600 certificate ${revision}`, 'tls.key': `600 key ${revision}` }, where);
      await copyContent(small('7'), deps(kube, files));
      assert.deepEqual(await visibleTree(files, '/'), expected, where);
      for (const kind of ['secrets', 'configmaps']) {
        assert.deepEqual(await leftovers(files, join(directory, kind)), [], where);
      }
      if (isOver) break;
    }
  }
});

test('what cannot be installed is reported and leaves the running manifest alone', async t => {
  const cases: [string, RegExp, (kube: CountingKube) => Promise<void>, Partial<InstallerOptions>?][] = [
    [
      'no pod.yaml',
      /failed to copy: required 'pod.yaml' key does not exist in configmap$/,
      async kube => {
        await kube.configMap('kube-apiserver-pod-8', { 'other-pod.yaml': manifestText('8') });
      },
    ],
    [
      'not YAML',
      /manifest kube-apiserver-pod.yaml in configmap openshift-kube-apiserver\/kube-apiserver-pod-8 is not YAML/,
      async kube => {
        await kube.configMap('kube-apiserver-pod-8', { 'pod.yaml': 'a: [1' });
      },
    ],
    [
      'not a pod',
      /expected a Pod, found kind "ConfigMap"/,
      async kube => {
        await kube.configMap('kube-apiserver-pod-8', { 'pod.yaml': 'kind: ConfigMap' });
      },
    ],
    [
      'a required object is missing',
      /failed to copy: secrets "etcd-client-8" not found$/,
      async kube => {
        await kube.configMap('kube-apiserver-pod-8', { 'pod.yaml': manifestText('8') });
      },
      { secrets: ['etcd-client'] },
    ],
    [
      'a key that is a path',
      /plain file name/,
      async kube => {
        await kube.configMap('kube-apiserver-pod-8', { 'pod.yaml': manifestText('8') });
        await kube.secret('evil-8', { '../../../../escape': 'x' });
      },
      { secrets: ['evil'] },
    ],
    [
      'a manifest key that is a path',
      /plain file name/,
      async kube => {
        await kube.configMap('kube-apiserver-pod-8', {
          'pod.yaml': manifestText('8'),
          '../evil-pod.yaml': manifestText('8'),
        });
      },
      { configMaps: ['config'], optionalConfigMaps: ['kube-apiserver-pod'] },
    ],
  ];
  for (const [name, expected, prepare, overrides] of cases) {
    const { files } = await temporaryFiles(t);
    const kube = await cluster();
    await copyContent(options(), deps(kube, files));
    await kube.configMap('config-8', { 'config.yaml': '' });
    await prepare(kube);
    await installerPod(kube, 'installer-8-master-0.example', false);
    const events = recordingEvents();
    const wanted = options({ revision: '8', secrets: [], settlePauseMs: 0, ...overrides });
    await assert.rejects(runInstaller(wanted, deps(kube, files, { events })), expected, name);
    const manifest = await files.readFile('/etc/kubernetes/manifests/kube-apiserver-pod.yaml');
    assert.equal(readManifest(manifest.toString(), name).metadata?.labels?.revision, '7', name);
    const [event] = events.events;
    assert.deepEqual([event?.type, event?.reason], ['Warning', 'StaticPodInstallerFailed'], name);
    assert.match(event?.message ?? '', /^Installing revision 8: /, name);
  }
});

test('a full disk fails the run with a clear text; the same run succeeds when there is room', async t => {
  const { files } = await temporaryFiles(t);
  const kube = await cluster();
  let isFull = true;
  const disk = failingFiles(files, (step, path) => isFull && step === 'createFile' && path.includes('tls.key'));
  const run = () => copyContent(options(), deps(kube, disk));
  await assert.rejects(run, /ENOSPC: no space left on device/);
  assert.equal(await files.info('/etc/kubernetes/manifests/kube-apiserver-pod.yaml'), undefined);
  assert.equal(
    await files.info('/etc/kubernetes/static-pod-resources/kube-apiserver-pod-7/secrets/etcd-client'),
    undefined,
  );
  isFull = false;
  await run();
  assert.notEqual(await files.info('/etc/kubernetes/manifests/kube-apiserver-pod.yaml'), undefined);
});

test('a failing API is asked again until the deadline, a refusal is final (T05)', async t => {
  const { files } = await temporaryFiles(t);
  const kube = await cluster();
  kube.failures.push({ path: 'secrets/etcd-client-7', code: 500, times: 6 });
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const run = copyContent(options(), deps(kube, files, { clock }));
  let isDone = false;
  void run.finally(() => {
    isDone = true;
  });
  for (let minute = 0; minute < 10 && !isDone; minute++) await clock.advance(10_000);
  await run;
  assert.equal(kube.reads.filter(path => path === 'secrets/etcd-client-7').length, 7);
  kube.failures = [{ path: 'secrets/serving', code: 403, times: 1 }];
  await assert.rejects(copyContent(options(), deps(kube, files)), /the server answered 403/);
});

test('a kubelet version that cannot be read costs the copies no more than a moment (10.3.1)', async t => {
  const { files } = await temporaryFiles(t);
  const kube = await cluster();
  kube.failures.push({ path: 'nodes/master-0.example', code: 500, times: Infinity });
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const run = copyContent(options(), deps(kube, files, { clock }));
  for (let second = 0; second < 15; second++) await clock.advance(1000);
  assert.ok(kube.reads.includes('secrets/etcd-client-7'), 'the copies have begun');
  await run;
});

test('the startup monitor comes before the operand, and the lock is held around both', async t => {
  const { files } = await temporaryFiles(t);
  const kube = new CountingKube();
  await kube.configMap('kube-apiserver-pod-7', {
    'pod.yaml': manifestText('REVISION'),
    'kube-apiserver-startup-monitor-pod.yaml': manifestText('REVISION', 'kube-apiserver-startup-monitor'),
  });
  const steps: string[] = [];
  const watched: Files = {
    ...files,
    rename: async (from, to) => {
      await files.rename(from, to);
      if (to.endsWith('-pod.yaml')) steps.push(to.slice('/etc/kubernetes/'.length));
    },
  };
  const lock = async (path: string) => {
    steps.push(`lock ${path}`);
    return { release: () => steps.push('release') };
  };
  const podManifestsLockFile = '/var/lock/kube-apiserver-installer.lock';
  await copyContent(
    options({ podManifestsLockFile, configMaps: ['kube-apiserver-pod'], secrets: [], certDir: undefined }),
    deps(kube, watched, { lock }),
  );
  assert.deepEqual(steps, [
    `lock ${podManifestsLockFile}`,
    'static-pod-resources/kube-apiserver-pod-7/kube-apiserver-startup-monitor-pod.yaml',
    'manifests/kube-apiserver-startup-monitor-pod.yaml',
    'static-pod-resources/kube-apiserver-pod-7/kube-apiserver-pod.yaml',
    'manifests/kube-apiserver-pod.yaml',
    'release',
  ]);
});

test('an old kubelet gets a fresh identity with each manifest', async t => {
  const { files } = await temporaryFiles(t);
  const kube = await cluster();
  await kube.create(NODES, {
    metadata: { name: 'master-0.example' },
    status: { nodeInfo: { kubeletVersion: 'v1.22.9' } } as never,
  });
  await copyContent(options(), deps(kube, files));
  const manifest = await files.readFile('/etc/kubernetes/manifests/kube-apiserver-pod.yaml');
  assert.match(readManifest(manifest.toString(), 'manifest').metadata?.uid ?? '', /^[0-9a-f-]{36}$/);
});

test('the flags of the installer are those of upstream', () => {
  const argv = [
    '-v=2',
    '--revision=7',
    '--namespace=ns',
    '--pod=p',
    '--resource-dir=/r',
    '--pod-manifest-dir=/m',
    '--configmaps=a',
    '--configmaps=b,c',
    '--optional-secrets',
    'd',
    '--timeout-duration=90s',
  ];
  const parsed = parseInstallerOptions(argv, { NODE_NAME: 'n' });
  assert.deepEqual(parsed.configMaps, ['a', 'b', 'c']);
  assert.deepEqual(parsed.optionalSecrets, ['d']);
  assert.equal(parsed.timeoutMs, 90_000);
  assert.equal(parsed.settlePauseMs, 30_000);
  const without = (start: string) => argv.filter(argument => !argument.startsWith(start));
  assert.throws(
    () => parseInstallerOptions(without('--revision'), { NODE_NAME: 'n' }),
    /^FlagError: --revision is required$/,
  );
  assert.throws(() => parseInstallerOptions(argv, {}), /^FlagError: env var NODE_NAME is required$/);
  assert.throws(() => parseInstallerOptions(without('--configmaps'), { NODE_NAME: 'n' }), /--configmaps is required/);
  assert.throws(() => parseInstallerOptions([...argv, '--timeout-duration=0'], { NODE_NAME: 'n' }), /cannot be 0/);
  assert.throws(() => parseInstallerOptions([...argv, '--wrong=1'], { NODE_NAME: 'n' }), /unknown flag: --wrong/);
});
