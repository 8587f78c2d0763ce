import assert from 'node:assert/strict';
import { readdirSync, readFileSync, statSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { isDeepStrictEqual } from 'node:util';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resource.ts';
import { UNREVISIONED } from '../../src/kube-apiserver/operand-objects.ts';
import { encodePrivateKey } from '../../src/pki/pem.ts';
import { RESOURCE_DIRECTORY } from '../../src/staticpod/config.ts';
import { Cluster, fingerprint } from './cluster.ts';
import { NAMESPACE, newPair, POD_CONFIG_MAP, pairData, REVISIONED_SECRET, SERVING_SECRET } from './operand.ts';
import { Witness } from './witness.ts';

let cluster: Cluster;
before(async () => {
  cluster = await Cluster.start();
});
after(() => cluster.stop());

const revisionDirectories = (node: string) =>
  readdirSync(cluster.path(node, RESOURCE_DIRECTORY))
    .filter(name => name.startsWith(`${POD_CONFIG_MAP}-`))
    .sort();

test('a changed Secret moves one node at a time, never two are down, and old revisions go', async () => {
  const first = await cluster.converged(1);
  const pids = await cluster.pids();
  const witness = new Witness(cluster);
  await cluster.changeRevisioned();
  await cluster.converged(first + 1);
  assert.deepEqual(witness.outages, cluster.nodes, 'each server went down once, one after the other');
  const last = await cluster.changeRevisioned();
  const revision = await cluster.converged(first + 2);
  assert.deepEqual(witness.outages, [...cluster.nodes, ...cluster.nodes]);
  assert.deepEqual(await witness.end(), []);

  assert.equal(revision, first + 2, 'one revision for each change');
  for (const [index, pid] of (await cluster.pids()).entries()) assert.notEqual(pid, pids[index]);
  for (const node of cluster.nodes) {
    const key = cluster.revisionPath(node, revision, `secrets/${REVISIONED_SECRET}/tls.key`);
    assert.equal(readFileSync(key, 'utf8'), Buffer.from(last['tls.key'] ?? '', 'base64').toString());
    assert.equal(statSync(key).mode & 0o777, 0o600);
  }
  const { message } = await cluster.condition('NodeInstallerProgressing', 'False');
  assert.equal(message, `3 nodes are at revision ${revision}`);

  // Two revisions are kept: the one that runs and the one before.
  const kept = [revision - 1, revision].map(number => `${POD_CONFIG_MAP}-${number}`);
  for (const node of cluster.nodes) {
    await cluster.eventually(`old revisions on ${node} are gone`, () =>
      isDeepStrictEqual(revisionDirectories(node), kept),
    );
  }
  await cluster.eventually('old revisions in the API are gone', async () => {
    const { items: configMaps } = await cluster.kube.list(CONFIG_MAPS, { namespace: NAMESPACE });
    const { items: secrets } = await cluster.kube.list(SECRETS, { namespace: NAMESPACE });
    return ![...configMaps, ...secrets].some(({ metadata }) => metadata?.name?.endsWith(`-${first}`));
  });
});

test('a broken revision stops at the first node and is reported; a fixed one takes its place', async () => {
  const good = await cluster.converged(1);
  const pids = await cluster.pids();
  const witness = new Witness(cluster);
  const [pair, other] = [await newPair(cluster.signer), await newPair(cluster.signer)];
  // A key that does not belong to its certificate: the server ends as soon as it starts.
  await cluster.changeRevisioned({ ...pairData(pair), 'tls.key': pairData(other)['tls.key'] ?? '' });
  const { reason, message } = await cluster.condition('StaticPodsDegraded', 'True');
  assert.equal(reason, 'Error');
  assert.match(message, /pod\/kube-apiserver-master-0 container "kube-apiserver" is (waiting|terminated)/);
  const crashes = await cluster.eventually('the condition says why', async () => {
    const found = (await cluster.status()).conditions?.find(({ type }) => type === 'StaticPodsDegraded');
    return found?.message?.includes('does not belong to the certificate') ? found.message : undefined;
  });
  assert.doesNotMatch(crashes, /PRIVATE KEY/);
  await cluster.event('BackOff', /Back-off restarting failed container=kube-apiserver/);

  // By now the process has ended twice, and nobody else has moved.
  const [first, ...others] = await cluster.nodeStatuses();
  assert.equal(first?.targetRevision, good + 1);
  assert.equal(first?.currentRevision, good);
  for (const node of others) assert.deepEqual([node.currentRevision, node.targetRevision], [good, 0]);
  assert.deepEqual(
    (await Promise.all(['master-1', 'master-2'].map(node => cluster.ask(node)))).map(({ loaded }) => loaded.pid),
    pids.slice(1),
  );
  const { message: progress } = await cluster.condition('NodeInstallerProgressing', 'True');
  assert.equal(progress, `3 nodes are at revision ${good}; 0 nodes have achieved new revision ${good + 1}`);
  assert.deepEqual(witness.outages, ['master-0']);

  await cluster.changeRevisioned();
  assert.equal(await cluster.converged(good + 2), good + 2);
  await cluster.condition('StaticPodsDegraded', 'False');
  assert.deepEqual(witness.outages, cluster.nodes);
  assert.deepEqual(await witness.end(), []);
});

test('a changed certificate reaches all nodes and all handshakes, and no process restarts', async () => {
  const revision = await cluster.converged(1);
  const pids = await cluster.pids();
  const witness = new Witness(cluster);
  const next = await newPair(cluster.signer);
  await cluster.setSecret(SERVING_SECRET, pairData(next));
  for (const node of cluster.nodes) {
    await cluster.eventually(
      `${node} shows the new certificate`,
      async () => (await cluster.ask(node)).peer === fingerprint(next),
    );
    const key = cluster.path(node, `${RESOURCE_DIRECTORY}/${UNREVISIONED.directory}/secrets/${SERVING_SECRET}/tls.key`);
    assert.equal(readFileSync(key, 'utf8'), encodePrivateKey(next.key));
    assert.equal(statSync(key).mode & 0o777, 0o600);
  }
  assert.deepEqual(await cluster.pids(), pids, 'the same processes');
  assert.equal(await cluster.converged(1), revision, 'the same revision');
  assert.deepEqual(witness.outages, []);
  assert.deepEqual(await witness.end(), []);
  await cluster.event('CertificateUpdated', new RegExp(`Wrote updated secret: ${NAMESPACE}/${SERVING_SECRET}`));
});
