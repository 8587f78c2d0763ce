import assert from 'node:assert/strict';
import { test } from 'node:test';
import { annotationsOf } from '../../certrotation/secret.ts';
import { days, hours, minutes } from '../../kube/duration.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { CLUSTER_RECORD } from '../cluster-record.ts';
import { encodeReport } from '../report.ts';
import { SERVICE_ACCOUNT_KEYS } from '../service-account-keys.ts';
import { ModelCluster } from './model-cluster.ts';
import { KEYS_REQUESTED_AT, NO_SECRET_TOKENS, TOKENS_END, TOKENS_SINCE } from './names.ts';

const adopted = async (options: Parameters<typeof ModelCluster.make>[0] = {}) => {
  const cluster = await ModelCluster.make(options);
  await cluster.settle(hours(1));
  return cluster;
};
const filesOf = (cluster: ModelCluster) =>
  [...cluster.nodes.values()]
    .map(node => encodeReport({ ...node.report(), done: undefined, leaves: {}, signers: {}, processes: {} }))
    .join('\n');
const until = (cluster: ModelCluster, phase: string) =>
  cluster.settle(hours(1), async () => (await phaseOf(cluster))?.phase === phase);
const phaseOf = async (cluster: ModelCluster) => (await cluster.status())?.serviceAccount;
const keysOn = (cluster: ModelCluster, node = 'cp-1') => cluster.node(node).serviceAccount;

test('nobody has asked: no Secret, no word, and files stay as they are', async () => {
  const cluster = await adopted();
  const before = keysOn(cluster);
  await cluster.settle(days(1));
  assert.equal(await cluster.secret(SERVICE_ACCOUNT_KEYS), undefined);
  assert.equal(await phaseOf(cluster), undefined);
  assert.deepEqual(keysOn(cluster), before);
});

test('asked for: everybody accepts another key, then it signs, and the one before stays accepted for a year', async () => {
  const cluster = await adopted();
  const before = keysOn(cluster).signs;
  await cluster.tokens.rotate();
  await cluster.settle(hours(6));
  const status = await phaseOf(cluster);
  assert.equal(status?.phase, 'Retiring', JSON.stringify(await cluster.status()));
  assert.match(status?.because ?? '', /good until 2027-01-01T.*rotunda rotate sa --retire/);
  for (const node of ['cp-0', 'cp-1', 'cp-2']) {
    const { signs, accepts } = keysOn(cluster, node);
    assert.notEqual(signs, before);
    assert.deepEqual(accepts, [signs, before]);
  }
  assert.equal(
    (await cluster.kube.get(CONFIG_MAPS, CLUSTER_RECORD)).metadata?.annotations?.[KEYS_REQUESTED_AT],
    undefined,
  );
  // Nothing else begins by itself, and once the last token has ended the key before leaves.
  await cluster.tokens.look();
  await cluster.settle(days(370));
  assert.equal((await phaseOf(cluster))?.phase, 'Steady');
  assert.equal(keysOn(cluster).accepts.length, 1);
  await cluster.assertAtRest();
});

test('every kube-apiserver accepts it before one signs with it', async () => {
  const cluster = await adopted();
  const before = keysOn(cluster).signs;
  await cluster.tokens.rotate();
  await cluster.settle(hours(1), async () => keysOn(cluster, 'cp-1').accepts.length === 2);
  cluster.node('cp-2').problem = 'its disk is full';
  await cluster.settle(hours(1));
  assert.equal((await phaseOf(cluster))?.phase, 'Distributing');
  assert.deepEqual([keysOn(cluster).signs, keysOn(cluster).accepts.length], [before, 2]);
  assert.ok((await phaseOf(cluster))?.waitingFor?.some(who => /cp-2/.test(who)));
  const waiting = (await cluster.status())?.waitingFor ?? [];
  assert.ok(
    waiting.some(({ who, why }) => /cp-2/.test(who) && /disk is full/.test(why)),
    JSON.stringify(waiting),
  );
  cluster.node('cp-2').problem = undefined;
  await cluster.settle(hours(1));
  assert.equal((await phaseOf(cluster))?.phase, 'Retiring');
});

test('taken back before it signs, every file is as before; and so it is when nothing was made yet', async () => {
  const cluster = await adopted();
  const before = filesOf(cluster);
  await cluster.tokens.rotate();
  await until(cluster, 'Distributing');
  cluster.node('cp-2').problem = 'its disk is full';
  await cluster.settle(hours(1));
  assert.notEqual(filesOf(cluster), before);
  cluster.node('cp-2').problem = undefined;
  await cluster.tokens.takeBack();
  await cluster.settle(hours(1));
  assert.equal(filesOf(cluster), before);
  assert.equal((await phaseOf(cluster))?.phase, 'Steady');
});

test('turned round while the next one signs, the one before signs again, and then the other one leaves', async () => {
  const cluster = await adopted();
  const before = keysOn(cluster).signs;
  await cluster.tokens.rotate();
  await cluster.settle(hours(1));
  const next = keysOn(cluster).signs;
  await cluster.tokens.turnRound();
  await cluster.settle(hours(1));
  assert.deepEqual(keysOn(cluster), { signs: before, accepts: [before, next] });
  await cluster.tokens.look();
  await cluster.settle(days(370));
  assert.deepEqual(keysOn(cluster), { signs: before, accepts: [before] });
});

test('what was seen of tokens of one key says nothing once another one signs', async () => {
  const cluster = await adopted();
  await cluster.tokens.rotate();
  await cluster.settle(hours(1));
  await cluster.tokens.look();
  const seen = annotationsOf((await cluster.secret(SERVICE_ACCOUNT_KEYS))!);
  assert.equal(seen[NO_SECRET_TOKENS], seen[TOKENS_SINCE]);
  await cluster.tokens.turnRound();
  await until(cluster, 'Signing');
  const notes = annotationsOf((await cluster.secret(SERVICE_ACCOUNT_KEYS))!);
  assert.deepEqual(
    [notes[NO_SECRET_TOKENS], notes[TOKENS_SINCE], notes[TOKENS_END]],
    [undefined, undefined, undefined],
  );
});

test('a second rotation within the year keeps all keys whose tokens are good', async () => {
  const cluster = await adopted();
  for (let count = 0; count < 2; count++) {
    await cluster.tokens.rotate();
    await cluster.settle(hours(6));
  }
  assert.equal(keysOn(cluster).accepts.length, 3);
  const { phase, since, leavesAt } = (await phaseOf(cluster)) ?? {};
  assert.equal(phase, 'Retiring');
  assert.ok(Date.parse(since ?? '') < cluster.now().getTime() - hours(1), 'since it began, not since it was looked at');
  const notes = annotationsOf((await cluster.secret(SERVICE_ACCOUNT_KEYS)) ?? {});
  assert.equal(Date.parse(leavesAt ?? ''), Date.parse(notes[TOKENS_END] ?? ''));
  await cluster.tokens.turnRound();
  await cluster.settle(hours(6));
  assert.equal(keysOn(cluster).accepts.length, 3);
  await cluster.tokens.retire(cluster.counted());
  await cluster.settle(hours(6));
  assert.equal(keysOn(cluster).accepts.length, 1);
});

test('tokens in Secrets keep the key before, until somebody has them signed anew', async () => {
  const cluster = await adopted();
  await cluster.tokens.makeSecret('ci');
  await cluster.tokens.makeSecret('tool');
  await cluster.settle(minutes(20));
  const before = keysOn(cluster).signs;
  await cluster.tokens.rotate();
  await cluster.settle(days(400));
  await cluster.tokens.look();
  assert.match(
    (await phaseOf(cluster))?.because ?? '',
    /whether Secrets hold tokens of the key before.*rotate sa --retire/,
  );
  assert.ok(keysOn(cluster).accepts.includes(before));
  await cluster.tokens.retire(cluster.counted());
  await cluster.settle(hours(1));
  assert.equal((await phaseOf(cluster))?.phase, 'Steady');
  assert.deepEqual(keysOn(cluster).accepts, [keysOn(cluster).signs]);
});

test('with --retire the key before leaves at once', async () => {
  const cluster = await adopted();
  await cluster.tokens.rotate();
  await cluster.settle(hours(1));
  await cluster.tokens.retire(cluster.counted());
  await cluster.settle(hours(1));
  assert.equal(keysOn(cluster).accepts.length, 1);
  assert.equal(annotationsOf((await cluster.secret(SERVICE_ACCOUNT_KEYS)) ?? {})[TOKENS_END], undefined);
});

test('a node that joins with files from before makes the wait for its tokens begin anew', async () => {
  const cluster = await adopted();
  const before = keysOn(cluster);
  await cluster.tokens.rotate();
  await cluster.settle(hours(1));
  await cluster.settle(days(100));
  cluster.join('cp-9', 'control-plane');
  cluster.node('cp-9').serviceAccount = before;
  for (const process of ['kube-apiserver', 'kube-controller-manager'])
    cluster.node('cp-9').start(process, cluster.now());
  await cluster.settle(hours(1));
  assert.deepEqual(keysOn(cluster, 'cp-9'), keysOn(cluster));
  assert.match((await phaseOf(cluster))?.because ?? '', /good until 2027-04-/);
});

test('it waits for the hand-over of a CA, and that for it', async () => {
  const cluster = await adopted();
  await cluster.rotate('etcd-ca');
  await cluster.settle(minutes(1), async () => (await cluster.status())?.families['etcd-ca']?.phase === 'Distributing');
  await cluster.tokens.rotate();
  await cluster.sight();
  for (let count = 0; count < 5; count++) await cluster.pass();
  assert.match((await phaseOf(cluster))?.because ?? '', /it waits for the hand-over of etcd-ca/);
  await cluster.settle(hours(6));
  assert.equal((await phaseOf(cluster))?.phase, 'Retiring');
  assert.equal((await cluster.status())?.families['etcd-ca']?.phase, 'Retiring');
});

test('with keys on nodes, or two keys in sa.pub, nothing is written, and it is said why', async () => {
  const kept = await adopted({ keysOnNodes: true });
  await kept.tokens.rotate();
  await kept.settle(hours(1));
  assert.match((await phaseOf(kept))?.because ?? '', /--keys-on-nodes/);
  assert.equal(await kept.secret(SERVICE_ACCOUNT_KEYS), undefined);
  const strange = await adopted();
  const { signs, accepts } = keysOn(strange);
  strange.node('cp-1').serviceAccount = { signs, accepts: [...accepts, 'b'.repeat(64)] };
  strange.node('cp-1').start('kube-apiserver', strange.now());
  await strange.tokens.rotate();
  await strange.settle(hours(1));
  assert.match((await phaseOf(strange))?.because ?? '', /sa.pub on cp-1 holds 2 public keys/);
  assert.equal(await strange.secret(SERVICE_ACCOUNT_KEYS), undefined);
});
