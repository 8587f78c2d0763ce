import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { REFRESH_PERIOD } from '../../certrotation/annotations.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { SECRETS } from '../../kube/resource.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE } from '../names.ts';
import { profile416 } from '../profile.ts';
import { foreignSigner, NOW, TestEtcd, type TestEtcdOptions } from '../testing.ts';

async function cluster(t: TestContext, options: Partial<TestEtcdOptions> = {}): Promise<TestEtcd> {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  t.after(() => engine.close());
  return TestEtcd.create({ ...options, kube: engine.kube, clock });
}

describe('what upstream left behind', () => {
  test('a cluster of 4.16 is taken over without a rotation; its second CA is used when the first is due', async t => {
    const etcd = await cluster(t);
    await takeFrom416(etcd);
    const before = await etcd.snapshot();
    await etcd.sync();
    await etcd.rollOut();
    await etcd.sync();
    const after = await etcd.snapshot();
    for (const [name, content] of before) assert.equal(after.get(name), content, name);
    assert.ok(after.has('ConfigMap openshift-etcd/etcd-all-bundles'));

    etcd.clock.jumpTo(new Date(NOW.getTime() + days(1461)));
    await etcd.sync();
    await etcd.rollOut();
    await etcd.sync();
    assert.ok(
      (await etcd.certificate('etcd-signer', CONFIG_NAMESPACE)).der.equals((await etcd.certificate('etcd-signer')).der),
    );
  });

  test('a cluster of a later release has its signer in openshift-etcd and keeps it', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    for (const name of ['etcd-signer', 'etcd-metric-signer']) {
      await etcd.kube.delete(SECRETS, { namespace: CONFIG_NAMESPACE, name });
    }
    const leaves = await etcd.secret('etcd-all-certs');
    await etcd.sync();
    assert.deepEqual((await etcd.secret('etcd-all-certs')).data, leaves.data);
    assert.ok(
      (await etcd.certificate('etcd-signer', CONFIG_NAMESPACE)).der.equals((await etcd.certificate('etcd-signer')).der),
    );
  });

  test('the runbook of 4.16: copy the second CA over the first, wait, delete it', async t => {
    const etcd = await cluster(t, { profile: profile416() });
    await etcd.kube.create(SECRETS, await foreignSigner('etcd-signer'));
    await etcd.kube.create(SECRETS, await foreignSigner('etcd-metric-signer'));
    await etcd.sync();
    await etcd.rollOut();
    await etcd.sync();
    const leaves = await etcd.secret('etcd-all-certs');
    await etcd.sync();
    assert.deepEqual((await etcd.secret('etcd-all-certs')).data, leaves.data, 'nothing happens by itself');

    const second = await etcd.secret('etcd-signer');
    const first = await etcd.secret('etcd-signer', CONFIG_NAMESPACE);
    await etcd.kube.update(SECRETS, { ...first, data: second.data ?? {} });
    await etcd.sync();
    const { subjectKeyId } = await etcd.certificate('etcd-signer');
    assert.deepEqual((await etcd.certificate('etcd-peer-master-0')).authorityKeyId, subjectKeyId);
    assert.equal((await etcd.bundle()).length, 2);

    await etcd.rollOut();
    await etcd.kube.delete(SECRETS, { namespace: ETCD_NAMESPACE, name: 'etcd-signer' });
    const published = await etcd.secret('etcd-all-certs');
    await etcd.sync();
    assert.equal((await etcd.bundle()).length, 3);
    assert.deepEqual((await etcd.secret('etcd-all-certs')).data, published.data);
  });

  test('a CA nobody trusts, put in place by hand, signs nothing until everybody does (T-1)', async t => {
    const etcd = await cluster(t);
    await etcd.settle();
    const leaves = await etcd.secret('etcd-all-certs');
    const foreign = await foreignSigner('etcd-signer');
    const inUse = await etcd.secret('etcd-signer', CONFIG_NAMESPACE);
    await etcd.kube.update(SECRETS, { ...inUse, data: foreign.data ?? {} });
    await etcd.sync();
    assert.equal((await etcd.bundle()).length, 2);
    assert.deepEqual((await etcd.secret('etcd-all-certs')).data, leaves.data);
    await etcd.rollOut();
    await etcd.sync();
    assert.deepEqual(await etcd.refusals(), []);
  });
});

/** A cluster as 4.16 leaves it: signers in openshift-config sign, those in openshift-etcd are only bundled. */
async function takeFrom416(etcd: TestEtcd): Promise<void> {
  await etcd.kube.create(SECRETS, await foreignSigner('etcd-signer'));
  await etcd.kube.create(SECRETS, await foreignSigner('etcd-metric-signer'));
  await etcd.sync(etcd.certSigner(profile416()));
  for (const namespace of [ETCD_NAMESPACE, CONFIG_NAMESPACE]) {
    for (const secret of (await etcd.kube.list(SECRETS, { namespace })).items) {
      // 4.16 wrote no refresh period.
      const { [REFRESH_PERIOD]: _period, ...annotations } = secret.metadata?.annotations ?? {};
      await etcd.kube.update(SECRETS, { ...secret, metadata: { ...secret.metadata, annotations } });
    }
  }
  await etcd.rollOut(profile416());
}
