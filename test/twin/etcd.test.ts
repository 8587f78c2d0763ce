import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { days, hours, minutes } from '../../src/kube/duration.ts';
import { CONFIG_MAPS, SECRETS } from '../../src/kube/resource.ts';
import { Cluster, START } from '../../src/twin/cluster.ts';
import { live } from '../../src/twin/life.ts';

/** A cluster whose etcd is founded, at so many minutes after its beginning. */
async function up(options: { readonly etcdDayMs?: number } = {}) {
  const told: string[] = [];
  const cluster = new Cluster({ seed: 'etcd', ...options, tell: (_at, what) => void told.push(what) });
  await cluster.begin();
  await cluster.goOn(new Date(START.getTime() + minutes(10)));
  const goOn = (milliseconds: number) => cluster.goOn(new Date(cluster.time.nowMs + milliseconds));
  return { cluster, told, goOn, master: (index: number) => cluster.nodes[index] ?? assert.fail('no such node') };
}

test('the operator founds etcd: one begins, the others join as learners and get their votes', async t => {
  const { cluster, told } = await up();
  t.after(() => cluster.end());
  const voters = cluster.etcd.members.filter(({ isLearner }) => !isLearner).map(({ name }) => name);
  assert.deepEqual(voters, ['master-0', 'master-1', 'master-2']);
  assert.equal(told.filter(what => /let in as a learner/.test(what)).length, 2);
  const endpoints = cluster.api.stored<ConfigMap>(CONFIG_MAPS, { namespace: 'openshift-etcd', name: 'etcd-endpoints' });
  assert.deepEqual(Object.values(endpoints?.data ?? {}).sort(), ['10.0.0.1', '10.0.0.2', '10.0.0.3']);
  assert.deepEqual(cluster.look.refusals, []);
});

test('both signers of etcd are handed over while a member is restarted after the other, and nobody refuses anybody', async () => {
  const counts = new Map<string, number>();
  const life = await live({
    seed: 'signers',
    days: 20,
    etcdDayMs: days(1) / 100,
    tell: (_at, what) => {
      const [, node] = /^etcd on (\S+) stops/.exec(what) ?? [];
      if (node !== undefined) counts.set(node, (counts.get(node) ?? 0) + 1);
      if (/SignerInUseChanged: "etcd-/.test(what)) counts.set('handed over', (counts.get('handed over') ?? 0) + 1);
    },
  });
  assert.deepEqual(life.violations, []);
  // Two at the beginning, when nobody verifies yet.
  assert.equal(counts.get('handed over'), 4);
  // The list of members, the new CA, the new leaves, and the old CA is gone.
  assert.deepEqual([counts.get('master-0'), counts.get('master-1'), counts.get('master-2')], [4, 4, 4]);
});

test('a leader that loses power is followed by another; without a majority the API is away', async t => {
  const { cluster, told, goOn, master } = await up();
  t.after(() => cluster.end());
  const leader = cluster.nodes.find(({ name }) => name === cluster.etcd.leader) ?? assert.fail('nobody leads');
  const kube = cluster.api.connect('somebody');
  cluster.powerOff(leader);
  await assert.rejects(kube.list(CONFIG_MAPS), /etcdserver: no leader/);
  await goOn(minutes(1));
  assert.notEqual(cluster.etcd.leader, leader.name);
  await kube.list(CONFIG_MAPS);
  const second = [master(0), master(1), master(2)].find(node => node !== leader) ?? assert.fail();
  cluster.powerOff(second);
  await goOn(hours(1));
  assert.equal(cluster.etcd.leader, undefined);
  await assert.rejects(kube.list(CONFIG_MAPS), /etcdserver: no leader/);
  cluster.powerOn(second);
  await goOn(minutes(10));
  await kube.list(CONFIG_MAPS);
  assert.ok(told.includes(`etcd: ${leader.name} leads no more`));
});

test('a member whose disk is lost stays out until it is removed and emptied; then it comes back as a new one', async t => {
  const { cluster, told, goOn, master } = await up();
  t.after(() => cluster.end());
  cluster.etcd.loseData(master(2));
  await goOn(hours(3));
  assert.ok(told.includes('etcd on master-2 ends at once: its log was lost: tocommit is out of range'));
  assert.equal(master(2).pods.get('etcd')?.isReady, false);
  const lost = cluster.etcd.members.find(({ name }) => name === 'master-2') ?? assert.fail('no such member');
  cluster.etcd.remove(lost.id);
  await goOn(hours(1));
  assert.equal(master(2).pods.get('etcd')?.isReady, false, 'it has written down its old name again');
  cluster.etcd.loseData(master(2));
  await goOn(hours(1));
  const back = cluster.etcd.members.find(({ name }) => name === 'master-2');
  assert.notEqual(back?.id, lost.id);
  assert.equal(back?.isLearner, false);
  assert.equal(master(2).pods.get('etcd')?.isReady, true);
});

for (const name of ['etcd-client', 'etcd-signer', 'etcd-peer-master-1']) {
  test(`somebody deletes ${name}: it is made again`, async t => {
    const { cluster, goOn } = await up();
    t.after(() => cluster.end());
    const key = { namespace: 'openshift-etcd', name };
    cluster.api.delete('somebody', SECRETS, key);
    await goOn(hours(1));
    assert.ok(cluster.api.stored(SECRETS, key));
    assert.deepEqual(cluster.look.refusals, []);
  });
}
