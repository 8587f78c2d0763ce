import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import type { Event } from 'kubernetes-types/core/v1.d.ts';
import { SECRETS } from '../../src/kube/resource.ts';
import { RESOURCE_DIRECTORY } from '../../src/staticpod/config.ts';
import { Cluster, fingerprint } from './cluster.ts';
import { nodeRoot } from './layout.ts';
import {
  base64,
  manifest,
  NAMESPACE,
  newPair,
  OPTIONAL_SECRET,
  POD_CONFIG_MAP,
  pairData,
  REVISIONED_SECRET,
  SERVING_SECRET,
} from './operand.ts';
import { Witness } from './witness.ts';

/** Holds a few revisions, and is soon full. */
const DISK = '4m';
const FULL_NODE = 'master-0';

let cluster: Cluster;
let witness: Witness;
let disk: string | undefined;
let whyNoDisk = '';

before(async () => {
  cluster = await Cluster.start({ prepare: mountDisk });
  witness = new Witness(cluster);
});
after(async () => {
  const offences = await witness?.end();
  await cluster?.stop();
  assert.deepEqual(offences, [], 'bad input never takes two servers down, nor a manifest away');
});

function mountDisk(dir: string): void {
  const path = join(nodeRoot(dir, FULL_NODE), RESOURCE_DIRECTORY);
  mkdirSync(path, { recursive: true });
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK}`, 'tmpfs', path], { stdio: 'pipe' });
    disk = path;
  } catch (error) {
    whyNoDisk = `a small disk cannot be mounted: ${String((error as { stderr?: Buffer }).stderr ?? error).trim()}`;
  }
}

const goodPod = () => ({ 'pod.yaml': JSON.stringify(manifest()) });

/** The newest revision cannot be installed: the first node says why, nobody has stopped, and good input is enough to go on. */
async function refused(bad: Record<string, string>, expected: RegExp): Promise<void> {
  const good = await cluster.converged(1);
  const pids = await cluster.pids();
  const outages = witness.outages.length;
  await cluster.setConfigMap(POD_CONFIG_MAP, bad);
  const { reason, message } = await cluster.condition('NodeInstallerDegraded', 'True');
  assert.equal(reason, 'InstallerPodFailed');
  assert.match(message, new RegExp(`^1 nodes are failing on revision ${good + 1}:\ninstaller: failed to copy: `));
  assert.match(message, expected);
  await cluster.event('InstallerPodFailed', expected);
  await cluster.event('StaticPodInstallerFailed', expected);
  assert.deepEqual(await cluster.pids(), pids);
  assert.equal(witness.outages.length, outages);
  await cluster.setConfigMap(POD_CONFIG_MAP, goodPod());
  await cluster.converged(good + 2);
  await cluster.condition('NodeInstallerDegraded', 'False');
}

test('a manifest that is not YAML', () =>
  refused({ 'pod.yaml': 'kind: [Pod' }, /manifest kube-apiserver-pod\.yaml in configmap .*-\d+ is not YAML/));

test('a pod ConfigMap without a manifest', () =>
  refused({ 'another.yaml': '{}' }, /required 'pod\.yaml' key does not exist in configmap/));

test('an optional Secret may come and go', async () => {
  const revision = await cluster.converged(1);
  const path = (node: string, number: number) => cluster.revisionPath(node, number, `secrets/${OPTIONAL_SECRET}/key`);
  for (const node of cluster.nodes) assert.ok(!existsSync(path(node, revision)));
  const secret = { metadata: { namespace: NAMESPACE, name: OPTIONAL_SECRET }, data: { key: base64('value') } };
  await cluster.kube.create(SECRETS, secret);
  await cluster.converged(revision + 1);
  for (const node of cluster.nodes) assert.equal(readFileSync(path(node, revision + 1), 'utf8'), 'value');
  await cluster.kube.delete(SECRETS, secret.metadata);
  await cluster.converged(revision + 2);
  for (const node of cluster.nodes) assert.ok(!existsSync(path(node, revision + 2)));
  const { conditions = [] } = await cluster.status();
  assert.deepEqual(
    conditions.filter(({ type, status }) => type.endsWith('Degraded') && status !== 'False'),
    [],
  );
});

test('a required Secret that is missing', async () => {
  const revision = await cluster.converged(1);
  const pids = await cluster.pids();
  const key = { namespace: NAMESPACE, name: REVISIONED_SECRET };
  const { data = {} } = await cluster.kube.get(SECRETS, key);
  await cluster.kube.delete(SECRETS, key);
  const { reason, message } = await cluster.condition('RevisionControllerDegraded', 'True');
  assert.deepEqual([reason, message], ['ContentCreationError', `secrets "${REVISIONED_SECRET}" not found`]);
  await cluster.event('RevisionCreateFailed', new RegExp(`secrets "${REVISIONED_SECRET}" not found`));
  await cluster.kube.create(SECRETS, { metadata: key, type: 'Opaque', data });
  await cluster.condition('RevisionControllerDegraded', 'False');
  assert.equal(await cluster.converged(revision), revision, 'the same content needs no new revision');
  assert.deepEqual(await cluster.pids(), pids);
});

test('a full disk', async t => {
  if (disk === undefined) return t.skip(whyNoDisk);
  const good = await cluster.converged(1);
  const pids = await cluster.pids();
  // It stays full, whatever is pruned.
  const filler = join(disk, 'filler');
  fill(filler);
  const filling = setInterval(() => fill(filler), 10);
  t.after(() => clearInterval(filling));
  let [before, next] = ['', await newPair(cluster.signer)];
  const serve = async () => {
    before = (await cluster.ask(FULL_NODE)).peer;
    await cluster.setSecret(SERVING_SECRET, pairData(next));
  };
  await serve();
  await cluster.eventually('a pair that there is no room for', async () => {
    if ((await cluster.ask(FULL_NODE)).peer === fingerprint(next)) {
      // Something has been pruned just then, and this one is small.
      next = await newPair(cluster.signer);
      await serve();
    }
    const isRefused = ({ reason, message }: Event) =>
      reason === 'CertificateUpdateFailed' && message?.includes('ENOSPC') === true;
    return (await cluster.events()).some(isRefused);
  });
  await cluster.changeRevisioned();
  const { message } = await cluster.condition('NodeInstallerDegraded', 'True');
  assert.match(message, /ENOSPC: no space left on device/);
  await cluster.event('InstallerPodFailed', /ENOSPC/);
  const statuses = await cluster.nodeStatuses();
  assert.deepEqual(
    statuses.map(({ currentRevision }) => currentRevision),
    [good, good, good],
    'nobody goes ahead',
  );
  assert.deepEqual(await cluster.pids(), pids, 'what ran goes on');
  // What a failed installer gives back may for a moment be room enough for the small pair; it is whole either way.
  const shown = (await cluster.ask(FULL_NODE)).peer;
  assert.ok(shown === before || shown === fingerprint(next), 'a whole pair is served, the old or the new one');

  clearInterval(filling);
  rmSync(filler);
  await cluster.eventually(
    'the certificate arrives',
    async () => (await cluster.ask(FULL_NODE)).peer === fingerprint(next),
  );
  await cluster.converged(good + 1);
  await cluster.condition('NodeInstallerDegraded', 'False');
});

function fill(path: string): void {
  const block = Buffer.alloc(4096);
  for (;;) {
    try {
      writeFileSync(path, block, { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return;
      throw error;
    }
  }
}
