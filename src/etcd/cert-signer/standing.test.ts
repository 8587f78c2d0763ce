import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import { startEngine } from '../../api/api.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { hours } from '../../kube/duration.ts';
import { SECRETS } from '../../kube/resource.ts';
import { CONFIG_NAMESPACE } from '../names.ts';
import { NOW, TestEtcd } from '../testing.ts';

async function cluster(t: TestContext): Promise<TestEtcd> {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  t.after(() => engine.close());
  const etcd = await TestEtcd.create({ kube: engine.kube, clock });
  await etcd.settle();
  return etcd;
}

const phases = ({ handOvers }: TestEtcd) => handOvers.standings().map(({ signer, phase }) => `${signer}: ${phase}`);

test('where the signers of etcd stand is told in every phase, and at rest that nobody is waited for', async t => {
  const etcd = await cluster(t);
  await etcd.sync();
  assert.deepEqual(phases(etcd), ['etcd-signer: Steady', 'etcd-metric-signer: Steady']);
  assert.equal(etcd.handOvers.condition()?.status, 'False');
  await etcd.forget('etcd-signer');
  await etcd.sync();
  assert.deepEqual(phases(etcd), ['etcd-signer: Distributing', 'etcd-metric-signer: Steady']);
  await etcd.rollOut();
  await etcd.sync();
  assert.deepEqual(phases(etcd), ['etcd-signer: Signing', 'etcd-metric-signer: Steady']);
  await etcd.rollOut();
  await etcd.sync();
  assert.deepEqual(phases(etcd), ['etcd-signer: Retiring', 'etcd-metric-signer: Steady']);
});

test('a member that its installer does not come to is named while the roll-out lasts, and told after an hour (spec 90, HO-7)', async t => {
  const etcd = await cluster(t);
  await etcd.sync();
  await etcd.forget('etcd-signer');
  await etcd.sync();
  const { notBefore } = await etcd.certificate('etcd-signer');
  await etcd.cutRevision();
  await etcd.install('master-0', 'master-1');
  await etcd.sync();
  const [standing] = etcd.handOvers.standings();
  assert.match(standing?.waitingFor.join() ?? '', /^etcd on node master-2 at revision \d+$/);
  assert.deepEqual(standing?.waitingSince, notBefore);
  assert.match(
    etcd.handOvers.condition()?.message ?? '',
    /etcd-signer: Distributing since .*, waiting for etcd on node master-2/,
  );
  const told = (reason: string) => etcd.events.filter(event => event.reason === reason).map(({ message }) => message);
  assert.equal(told('HandOverWaiting').length, 1);
  await etcd.clock.advanceTo(new Date(etcd.clock.now().getTime() + hours(1)));
  await etcd.sync();
  await etcd.sync();
  assert.equal(told('HandOverStuck').length, 1);
  assert.match(told('HandOverStuck').join(), /etcd on node master-2/);
});

test('leaves that wait for a signer that somebody put to use by hand are told with whom they wait for', async t => {
  const etcd = await cluster(t);
  await etcd.rollOutKubeApiServer(4);
  await etcd.forget('etcd-signer');
  await etcd.sync();
  await etcd.rollOut();
  const [wanted, inUse] = [await etcd.secret('etcd-signer'), await etcd.secret('etcd-signer', CONFIG_NAMESPACE)];
  await etcd.kube.update(SECRETS, { ...inUse, ...(wanted.data && { data: wanted.data }) });
  await etcd.sync();
  const [standing] = etcd.handOvers.standings();
  assert.equal(standing?.phase, 'Signing');
  assert.match(standing?.waitingFor.join() ?? '', /unknown to kube-apiserver on node master-0 at revision 4/);
});
