import assert from 'node:assert/strict';
import { test } from 'node:test';
import { memoryHost } from '../../host/memory.ts';
import { CLUSTER_PULL_SECRET, MOUNTED_PULL_SECRETS, OS_PULL_SECRET, OSTREE_AUTH } from './paths.ts';
import { linkOsTreeAuth, mergePullSecret, mountedPullSecret, OsPullSecret, rolesOf } from './pull-secret.ts';

const INTERNAL = '{"auths": {"a": {"auth": "eA=="}, "b": {"auth": "eA=="}}}';
const labels = { 'node-role.kubernetes.io/worker': '', 'node-role.kubernetes.io/infra': '' };

test('roles are labels with the prefix, in a fixed order', () => {
  assert.deepEqual(rolesOf({ ...labels, 'x.node-role.kubernetes.io/evil': '', other: '' }), ['infra', 'worker']);
});

test('mounted entries win, host by host; nothing in ControllerConfig means no entries', () => {
  const merged = mergePullSecret(Buffer.from(INTERNAL), Buffer.from('{"b":{"username":"u"}}')).toString();
  assert.deepEqual(JSON.parse(merged), {
    auths: {
      a: { username: '', password: '', email: '', auth: 'eA==' },
      b: { username: 'u', password: '', email: '', auth: '' },
    },
  });
  assert.equal(mergePullSecret(Buffer.from(''), Buffer.from('{"auths":{}}')).toString(), '{"auths":{}}');
  assert.equal(mergePullSecret(Buffer.from(INTERNAL), undefined).toString(), INTERNAL);
});

test('an error does not quote a secret', () => {
  assert.throws(
    () => mergePullSecret(Buffer.from(INTERNAL), Buffer.from('{"auths":{"a":"hunter2"')),
    (error: Error) => !error.message.includes('hunter2') && error.message.includes('mounted'),
  );
});

test('the modern form of any role goes before the old form of another', async () => {
  const { files } = memoryHost();
  assert.equal(await mountedPullSecret(files, ['infra', 'worker']), undefined);
  await files.write(`${MOUNTED_PULL_SECRETS}/infra/.dockercfg`, Buffer.from('old'));
  await files.write(`${MOUNTED_PULL_SECRETS}/worker/.dockerconfigjson`, Buffer.from('new'));
  assert.equal((await mountedPullSecret(files, ['infra', 'worker']))?.toString(), 'new');
  assert.equal((await mountedPullSecret(files, ['infra', '../worker']))?.toString(), 'old');
});

test('the file is for its owner alone, also where it was not, and is only written when it differs', async () => {
  const { files } = memoryHost();
  const secret = new OsPullSecret(files);
  await files.write(OS_PULL_SECRET, Buffer.from(`${INTERNAL}\n`), { mode: 0o644 });
  const inputs = { labels, internal: Buffer.from(INTERNAL) };
  assert.deepEqual(await Promise.all([secret.sync(inputs), secret.sync(inputs)]), [true, false]);
  assert.equal((await files.stat(OS_PULL_SECRET))?.mode, 0o600);
  assert.equal((await files.read(OS_PULL_SECRET))?.toString(), `${INTERNAL}\n`);
});

test('nothing to pull with writes nothing and asks for no role', async () => {
  const { files } = memoryHost();
  const secret = new OsPullSecret(files);
  assert.equal(await secret.sync({ labels: {}, internal: Buffer.alloc(0) }), false);
  assert.equal(await files.read(OS_PULL_SECRET), undefined);
  await assert.rejects(secret.sync({ labels: {}, internal: Buffer.from(INTERNAL) }), { code: 'InvalidPullSecret' });
});

test('the last credential that is revoked does not stay on the node', async () => {
  const { files } = memoryHost();
  const secret = new OsPullSecret(files);
  const revoked = { labels, internal: Buffer.alloc(0) };
  for (const mounted of [undefined, `${MOUNTED_PULL_SECRETS}/other/.dockerconfigjson`]) {
    await secret.sync({ labels, internal: Buffer.from(INTERNAL) });
    if (mounted !== undefined) await files.write(mounted, Buffer.from('{"auths":{}}'));
    assert.equal(await secret.sync(revoked), true);
    assert.equal((await files.read(OS_PULL_SECRET))?.toString(), '\n');
    assert.equal(await secret.sync(revoked), false);
    await linkOsTreeAuth(files);
    assert.equal(await files.readLink(OSTREE_AUTH), CLUSTER_PULL_SECRET);
  }
});

test('rpm-ostree is pointed to the merged file where it can be used', async () => {
  const { files } = memoryHost();
  assert.equal(await linkOsTreeAuth(files), true);
  assert.equal(await files.readLink(OSTREE_AUTH), CLUSTER_PULL_SECRET);
  await files.write(OS_PULL_SECRET, Buffer.from('{"auths":{}}\n'));
  assert.equal(await linkOsTreeAuth(files), true);
  assert.equal(await files.readLink(OSTREE_AUTH), OS_PULL_SECRET);
  assert.equal(await linkOsTreeAuth(files), false);
  await files.write(OS_PULL_SECRET, Buffer.from('no json'));
  assert.equal(await linkOsTreeAuth(files), true);
  assert.equal(await files.readLink(OSTREE_AUTH), CLUSTER_PULL_SECRET);
});
