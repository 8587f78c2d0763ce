import assert from 'node:assert/strict';
import { utimes } from 'node:fs/promises';
import { join } from 'node:path';
import { test } from 'node:test';
import { silentLog } from '../../controller/log.ts';
import { systemClock } from '../../kube/clock.ts';
import { replaceDirectory } from './directory-swap.ts';
import { decidePrune, parsePruneOptions, runPrune } from './prune.ts';
import { Crash, crashingFiles, temporaryFiles } from './testing.ts';

const RESOURCES = '/etc/kubernetes/static-pod-resources';
const NAMES = ['kube-apiserver-pod-1', 'kube-apiserver-pod-2', 'kube-apiserver-pod-3', 'kube-apiserver-pod-4'];

test('which directories are pruned', () => {
  const cases: [string, string[], number[], number, number | undefined, string[]][] = [
    ['all but the protected ones', ['test-1', 'test-2', 'test-3', 'othertest-4'], [3, 2], 3, undefined, ['test-1']],
    ['nothing above the limit', ['test-1', 'test-2', 'test-3'], [], 2, undefined, ['test-1', 'test-2']],
    ['the last known good one stays (T25)', ['test-1', 'test-2', 'test-3'], [3], 3, 1, ['test-2']],
    [
      'names that do not match are skipped (T15)',
      ['test-', 'test-x', 'test-1a', 'test--1', 'test-1-2', 'test'],
      [],
      9,
      undefined,
      [],
    ],
    ['leading zeros', ['test-006', 'test-007'], [6], 9, undefined, ['test-007']],
  ];
  for (const [name, directories, protectedRevisions, maxEligibleRevision, good, expected] of cases) {
    const options = { staticPodName: 'test', maxEligibleRevision, protectedRevisions };
    assert.deepEqual(decidePrune(directories, options, good), expected, name);
  }
});

async function revisions(t: Parameters<typeof temporaryFiles>[0]) {
  const { files, root } = await temporaryFiles(t);
  for (const name of NAMES) {
    await files.makeDirectory(join(RESOURCES, name, 'secrets'));
    await files.createFile(join(RESOURCES, name, 'kube-apiserver-pod.yaml'), Buffer.from('{}'), 0o600);
  }
  await files.makeDirectory(join(RESOURCES, 'etcd-pod-1'));
  return { files, root };
}

const OPTIONS = parsePruneOptions([
  '-v=4',
  '--max-eligible-revision=4',
  '--protected-revisions=3,4',
  `--resource-dir=${RESOURCES}`,
  '--cert-dir=kube-apiserver-certs',
  '--static-pod-name=kube-apiserver-pod',
]);

test('the pruner removes revisions, and keeps the one the last-known-good link names', async t => {
  const { files } = await revisions(t);
  // As upstream writes it: absolute.
  await files.link(
    `${RESOURCES}/kube-apiserver-pod-1/kube-apiserver-pod.yaml`,
    join(RESOURCES, 'kube-apiserver-last-known-good'),
  );
  await runPrune(OPTIONS, { files, clock: systemClock, log: silentLog });
  assert.deepEqual(
    (await files.list(RESOURCES)).map(({ name }) => name),
    [
      'etcd-pod-1',
      'kube-apiserver-last-known-good',
      'kube-apiserver-pod-1',
      'kube-apiserver-pod-3',
      'kube-apiserver-pod-4',
    ],
  );
});

test('a pruner that dies leaves whole revisions, and the next one goes on', async t => {
  for (let at = 1; ; at++) {
    const { files } = await revisions(t);
    let isOver = false;
    try {
      await runPrune(OPTIONS, { files: crashingFiles(files, at, 'halfway'), clock: systemClock, log: silentLog });
      isOver = true;
    } catch (error) {
      assert.ok(error instanceof Crash);
    }
    for (const { name } of await files.list(RESOURCES)) {
      if (!NAMES.includes(name)) continue;
      assert.ok(await files.info(join(RESOURCES, name, 'kube-apiserver-pod.yaml')), `${name} is whole`);
      assert.ok(await files.info(join(RESOURCES, name, 'secrets')), `${name} is whole`);
    }
    const later = { ...systemClock, now: () => new Date(Date.now() + 3_600_000) };
    await runPrune(OPTIONS, { files, clock: later, log: silentLog });
    const names = (await files.list(RESOURCES)).map(({ name }) => name);
    assert.deepEqual(names, ['etcd-pod-1', 'kube-apiserver-pod-3', 'kube-apiserver-pod-4']);
    if (isOver) break;
  }
});

test("what crashes left among the certificates goes after half an hour, ours and upstream's", async t => {
  const { files, root } = await temporaryFiles(t);
  const parent = `${RESOURCES}/kube-apiserver-certs/secrets`;
  await replaceDirectory(
    files,
    `${parent}/serving`,
    new Map([['tls.key', { content: Buffer.from('k'), mode: 0o600 }]]),
    'installer',
  );
  await files.makeDirectory(`${parent}/plain/deeper`);
  await files.makeDirectory(`${parent}/../other`);
  await files.makeDirectory('/elsewhere');
  await files.link(join(root, 'elsewhere'), `${parent}/linked`);
  const upstream = ['plain/tls.key.tmp643092404', 'plain/deeper/a.tmp1', '../other/b.tmp2', '../c.tmp3'];
  const old = [...upstream, '.serving.installer-0123456789ab', '.gone.cert-sync-0123456789ab'];
  await files.createFile('/elsewhere/d.tmp4', Buffer.from(''), 0o600);
  const young = ['plain/tls.crt.tmp1', '.serving.cert-sync-aaaaaaaaaaaa'];
  for (const name of [...old, ...young]) {
    if (name.startsWith('.') && !name.startsWith('..')) await files.makeDirectory(`${parent}/${name}`);
    else await files.createFile(`${parent}/${name}`, Buffer.from(''), 0o600);
  }
  const past = new Date(Date.now() - 31 * 60_000);
  for (const name of old) await utimes(join(root, parent, name), past, past);
  await utimes(join(root, 'elsewhere/d.tmp4'), past, past);
  await runPrune(OPTIONS, { files, clock: systemClock, log: silentLog });
  for (const name of old) assert.equal(await files.info(`${parent}/${name}`), undefined, name);
  assert.ok(await files.info('/elsewhere/d.tmp4'), 'links are not followed');
  for (const name of [...young, 'serving/tls.key']) assert.ok(await files.info(`${parent}/${name}`), name);
});

test('the flags of the pruner are those of upstream', () => {
  assert.deepEqual(OPTIONS.protectedRevisions, [3, 4]);
  assert.throws(
    () => parsePruneOptions(['--resource-dir=/r', '--static-pod-name=x']),
    /--max-eligible-revision is required/,
  );
  assert.throws(
    () => parsePruneOptions(['--max-eligible-revision=1', '--static-pod-name=x']),
    /--resource-dir is required/,
  );
  assert.throws(
    () => parsePruneOptions(['--max-eligible-revision=1', '--resource-dir=/r']),
    /--static-pod-name is required/,
  );
  const none = parsePruneOptions([
    '--max-eligible-revision=1',
    '--resource-dir=/r',
    '--static-pod-name=x',
    '--protected-revisions=',
  ]);
  assert.deepEqual(none.protectedRevisions, []);
});
