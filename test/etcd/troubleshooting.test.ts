/**
 * The situations of seed 002, section 8, each produced and reported as `docs/operations.md` says. Members say what they are told
 * here; `rotation.test.ts` has the same with a real etcd where it matters.
 */
import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { startEngine } from '../../src/api/api.ts';
import { createLog } from '../../src/controller/log.ts';
import { noExpirationMetrics } from '../../src/etcd/metrics.ts';
import { ETCD_NAMESPACE } from '../../src/etcd/names.ts';
import { QuorumReader } from '../../src/etcd/quorum/reader.ts';
import { TestEtcd, type TestEtcdOptions } from '../../src/etcd/testing.ts';
import { VirtualClock } from '../../src/kube/clock.ts';
import { KubeError } from '../../src/kube/error.ts';
import type { Kube } from '../../src/kube/port.ts';
import { SECRETS } from '../../src/kube/resource.ts';
import { intercepted } from '../../src/staticpod/testing.ts';

async function settled(
  t: TestContext,
  through: (kube: Kube) => Kube = kube => kube,
  options: Partial<TestEtcdOptions> = {},
): Promise<TestEtcd> {
  const clock = new VirtualClock(new Date('2026-01-01T00:00:00Z'));
  const engine = await startEngine({ clock });
  t.after(() => engine.close());
  const etcd = await TestEtcd.create({ kube: through(engine.kube), clock, ...options });
  await etcd.settle();
  await etcd.sync();
  return etcd;
}

const degraded = async (etcd: TestEtcd) => {
  const { status, reason, message = '' } = (await etcd.condition()) ?? {};
  return { status, reason, message };
};

describe('troubleshooting, situation 1: EtcdCertSignerControllerDegraded', () => {
  test('a member is down: nothing is written, the message says so; it returns: the condition goes', async t => {
    const etcd = await settled(t);
    etcd.members.set('master-2', false);
    await etcd.forget('etcd-signer');
    const before = await etcd.versions();
    await assert.rejects(etcd.sync());
    assert.deepEqual(await etcd.versions(), before);
    const found = await degraded(etcd);
    assert.deepEqual([found.status, found.reason], ['True', 'Error']);
    assert.match(found.message, /quorum of 2 and 2 healthy members which is not fault tolerant: .*master-2/);
    assert.match(found.message, /skipping EtcdCertSignerController reconciliation due to insufficient quorum$/);
    etcd.members.set('master-2', true);
    await etcd.sync();
    assert.equal((await degraded(etcd)).status, 'False');
    assert.equal((await etcd.bundle()).length, 2, 'and it has gone on');
  });

  test('the API refuses to be read: the message carries its answer', async t => {
    let isForbidden = false;
    const etcd = await settled(t, kube =>
      intercepted(kube, (verb, resource) => {
        if (isForbidden && verb === 'list' && resource.kind === 'Node')
          throw new KubeError(
            403,
            'Forbidden',
            'nodes is forbidden: User "etcd-operator" cannot list resource "nodes"',
          );
      }),
    );
    isForbidden = true;
    await assert.rejects(etcd.sync());
    const found = await degraded(etcd);
    assert.equal(found.status, 'True');
    assert.match(found.message, /nodes is forbidden: User "etcd-operator" cannot list resource "nodes"/);
    isForbidden = false;
    await etcd.sync();
    assert.equal((await degraded(etcd)).status, 'False');
  });

  test('an object cannot be written: the message names it', async t => {
    let isRefused = false;
    const etcd = await settled(t, kube =>
      intercepted(kube, (verb, _resource, name) => {
        if (isRefused && verb === 'update' && name === 'etcd-serving-master-1')
          throw new KubeError(422, 'Invalid', 'data: Forbidden: field is immutable when `immutable` is set');
      }),
    );
    await etcd.forget('etcd-serving-master-1');
    isRefused = true;
    await assert.rejects(etcd.sync());
    const found = await degraded(etcd);
    assert.equal(found.status, 'True');
    assert.match(found.message, /^error on serving cert sync for node master-1: .*field is immutable/);
    isRefused = false;
    await etcd.sync();
    assert.equal((await degraded(etcd)).status, 'False');
  });
});

test('troubleshooting, situation 2: leaves are older than their rule because somebody has not loaded the CA', async t => {
  const held: boolean[] = [];
  const lines: string[] = [];
  const log = createLog({ name: 'etcd', destination: { write: line => void lines.push(line) } });
  const metrics = { ...noExpirationMetrics, held: (is: boolean) => void held.push(is) };
  const etcd = await settled(t, undefined, { metrics, log });
  await etcd.rollOutKubeApiServer(1);
  await etcd.forget('etcd-signer');
  await etcd.sync();
  // etcd has the new CA everywhere; the rollout of kube-apiserver with its copy stands still.
  await etcd.rollOut();
  await etcd.sync();
  assert.equal(held.at(-1), true, 'rotunda_etcd_leaves_held is 1');
  assert.match(
    lines.map(line => JSON.parse(line) as { msg: string; held?: string }).findLast(({ held: why }) => why)?.held ?? '',
    /etcd-signer waits for kube-apiserver on node master-0 at revision 1, kube-apiserver on node master-1 at revision 1/,
    'the log says for whom leaves wait',
  );
  await etcd.rollOutKubeApiServer(2);
  await etcd.sync();
  assert.equal(held.at(-1), false, 'they have it: the leaves follow');
});

test('troubleshooting, situation 3: while a signer changes both bundles hold two CAs, and the old leaves stay', async t => {
  const etcd = await settled(t);
  const leaf = await etcd.certificate('etcd-peer-master-0');
  await etcd.forget('etcd-signer');
  await etcd.forget('etcd-metric-signer');
  await etcd.sync();
  assert.deepEqual([(await etcd.bundle()).length, (await etcd.bundle('etcd-metrics-ca-bundle')).length], [2, 2]);
  assert.ok((await etcd.certificate('etcd-peer-master-0')).der.equals(leaf.der));
  await etcd.rollOut();
  await etcd.sync();
  assert.ok(!(await etcd.certificate('etcd-peer-master-0')).der.equals(leaf.der), 'rolled out: the leaves follow');
  assert.deepEqual(await etcd.refusals(), []);
});

test('troubleshooting, situation 4: the aggregate lacks a leaf or has another one: the next pass mends it', async t => {
  const etcd = await settled(t);
  const read = () => etcd.secret('etcd-all-certs');
  const right = (await read()).data ?? {};
  for (const name of ['etcd-peer-master-0', 'etcd-serving-master-1', 'etcd-serving-metrics-master-2']) {
    const leaf = await etcd.secret(name);
    assert.equal(right[`${name}.crt`], leaf.data?.['tls.crt'], name);
    assert.equal(right[`${name}.key`], leaf.data?.['tls.key'], name);
  }
  const { 'etcd-peer-master-0.crt': _gone, ...rest } = right;
  await etcd.kube.update(SECRETS, { ...(await read()), data: rest });
  await etcd.sync();
  assert.deepEqual((await read()).data, right);
  assert.equal((await read()).metadata?.namespace, ETCD_NAMESPACE);
});

test('troubleshooting, situation 5: a rollout that stands still is told with the member that holds it up', async t => {
  const etcd = await settled(t);
  etcd.members.set('master-2', false);
  const reader = new QuorumReader({ kube: etcd.kube, members: etcd.members });
  const permission = await reader.mayRestart({ nodeName: 'master-0', isOperandReady: true });
  assert.equal(permission.allowed, false);
  assert.match(
    permission.allowed ? '' : (permission.reason ?? ''),
    /^etcd would have 1 healthy members left and needs 2: .*master-2/,
  );
  assert.equal((await reader.mayRestart({ nodeName: 'master-2', isOperandReady: false })).allowed, true);
});
