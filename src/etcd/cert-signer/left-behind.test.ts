import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { WAIVED } from '../../hand-over/names.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { days } from '../../kube/duration.ts';
import { NODES, SECRETS } from '../../kube/resource.ts';
import { CONFIG_NAMESPACE } from '../names.ts';
import { NOW, TestEtcd } from '../testing.ts';

async function cluster(t: TestContext): Promise<TestEtcd> {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  t.after(() => engine.close());
  return TestEtcd.create({ kube: engine.kube, clock });
}

async function waive(etcd: TestEtcd, ...names: readonly string[]): Promise<void> {
  for (const name of names) {
    const node = await etcd.kube.get(NODES, { name });
    const annotations = { ...node.metadata?.annotations, [WAIVED]: etcd.clock.now().toISOString() };
    await etcd.kube.update(NODES, { ...node, metadata: { ...node.metadata, annotations } });
  }
}

test('nodes that were waived hold nothing up (spec 90, HO-7)', async t => {
  const etcd = await cluster(t);
  await etcd.settle();
  await etcd.forget('etcd-signer');
  await etcd.sync();
  const next = await etcd.certificate('etcd-signer');
  // The installer does not come to master-2 any more.
  await etcd.cutRevision();
  await etcd.install('master-0', 'master-1');
  await etcd.sync();
  assert.ok(!(await etcd.certificate('etcd-signer', CONFIG_NAMESPACE)).der.equals(next.der));
  await waive(etcd, 'master-2');
  await etcd.sync();
  assert.ok((await etcd.certificate('etcd-signer', CONFIG_NAMESPACE)).der.equals(next.der));
  assert.deepEqual((await etcd.certificate('etcd-peer-master-0')).authorityKeyId, next.subjectKeyId);
});

test('leaves go on when waiting would harm everybody, and an event names who is left behind (spec 90, HO-7)', async t => {
  const etcd = await cluster(t);
  await etcd.settle();
  await etcd.rollOutKubeApiServer(4);
  await etcd.forget('etcd-signer');
  await etcd.sync();
  await etcd.rollOut();
  // Somebody puts it to use by hand, although kube-apiserver does not know it.
  const [wanted, inUse] = [await etcd.secret('etcd-signer'), await etcd.secret('etcd-signer', CONFIG_NAMESPACE)];
  await etcd.kube.update(SECRETS, { ...inUse, ...(wanted.data && { data: wanted.data }) });
  const before = await etcd.certificate('etcd-peer-master-0');
  await etcd.sync();
  assert.ok((await etcd.certificate('etcd-peer-master-0')).der.equals(before.der), 'kube-apiserver is waited for');
  const left = () =>
    etcd.events.filter(({ reason }) => reason === 'HandOverLeavesBehind').map(({ message }) => message);
  await etcd.clock.advanceTo(new Date(before.notAfter.getTime() - days(1.5)));
  await etcd.sync();
  assert.ok((await etcd.certificate('etcd-peer-master-0')).der.equals(before.der), 'there is time left');
  assert.deepEqual(left(), []);
  // The next signer is due by now, and comes to the members, but not to kube-apiserver.
  await etcd.rollOut();
  await etcd.clock.advanceTo(new Date(before.notAfter.getTime() - days(0.5)));
  await etcd.sync();
  const { subjectKeyId } = await etcd.certificate('etcd-signer', CONFIG_NAMESPACE);
  assert.deepEqual((await etcd.certificate('etcd-peer-master-0')).authorityKeyId, subjectKeyId);
  assert.ok(left().length > 0);
  for (const message of left()) {
    assert.match(message, /^"etcd-signer" in "openshift-config" changes without kube-apiserver on node master-0 /);
    assert.match(message, /kube-apiserver on node master-2 at revision 4 \(runs without it\); they accept it again/);
    assert.doesNotMatch(message, /etcd on node/);
  }
});

test('where most members would be left behind they are waited for: leaves that they refuse help nobody', async t => {
  const etcd = await cluster(t);
  await etcd.settle();
  const before = await etcd.certificate('etcd-peer-master-0');
  await etcd.clock.advanceTo(new Date(before.notAfter.getTime() - days(0.5)));
  await etcd.sync();
  await etcd.sync();
  assert.ok((await etcd.certificate('etcd-peer-master-0')).der.equals(before.der));
  assert.deepEqual(await etcd.refusals(), []);
  await etcd.rollOut();
  await etcd.sync();
  assert.ok(!(await etcd.certificate('etcd-peer-master-0')).der.equals(before.der));
  assert.deepEqual(await etcd.refusals(), []);
});
