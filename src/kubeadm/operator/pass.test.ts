import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { nextKey, previousKey } from '../../hand-over/family.ts';
import { days, hours, minutes } from '../../kube/duration.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { encodeReport } from '../report.ts';
import { ModelCluster } from './model-cluster.ts';
import { signerKey } from './names.ts';

const adopted = async (options: Parameters<typeof ModelCluster.make>[0] = {}) => {
  const cluster = await ModelCluster.make(options);
  await cluster.settle(hours(1));
  assert.equal((await cluster.status())?.adopted, true);
  return cluster;
};

test('adoption copies the CAs, and asks for nothing else', async () => {
  const cluster = await ModelCluster.make();
  const sight = () => [...cluster.nodes.values()].map(node => encodeReport({ ...node.report(), done: undefined }));
  const before = sight();
  await cluster.settle(hours(1));
  for (const name of ['ca', 'front-proxy-ca', 'etcd-ca'] as const) assert.ok(await cluster.secret(signerKey(name)));
  assert.ok(sight().every((text, i) => text === before[i]));
  assert.match((await cluster.status())?.message ?? '', /as it has to be; the next leaf is due at 2026-09-01T/);
});

test('nodes that differ are named, and nothing is changed', async () => {
  const cluster = await ModelCluster.make();
  cluster.node('cp-1').serviceAccount = { signs: 'b'.repeat(64), accepts: ['b'.repeat(64)] };
  await cluster.settle(days(1));
  const status = await cluster.status();
  assert.equal(status?.adopted, false);
  assert.match(status?.differences.join() ?? '', /cp-1/);
  assert.equal(await cluster.wanted('cp-0'), undefined);
});

test('leaves are made anew at two thirds of their life, node by node, and not again', async () => {
  const cluster = await adopted();
  const before = new Map([...cluster.node('cp-1').leaves].map(([name, { digest }]) => [name, digest]));
  await cluster.settle(days(250));
  for (const [name, { digest }] of cluster.node('cp-1').leaves) {
    assert.equal(digest === before.get(name), name === 'kubelet.conf', name);
  }
  const orders = cluster.story.filter(line => line.includes('ConfigMap node-cp-') && line.includes('Z '));
  assert.equal(orders.length, 1 + 3, orders.join('\n'));
});

test('a leaf that somebody else made anew in the meantime is taken as it is', async () => {
  const cluster = await adopted();
  await cluster.settle(days(240));
  cluster.node('cp-2').renew('apiserver', cluster.now());
  const mine = cluster.node('cp-2').leaves.get('apiserver')?.digest;
  await cluster.settle(days(30));
  assert.equal(cluster.node('cp-2').leaves.get('apiserver')?.digest, mine);
});

test('a node that does not finish stops the others, and is named', async () => {
  const cluster = await adopted();
  await cluster.settle(days(242));
  cluster.node('cp-0').problem = 'etcd does not answer';
  const before = cluster.node('cp-1').leaves.get('apiserver')?.digest;
  await cluster.settle(days(1));
  await cluster.settle(hours(6));
  assert.equal(cluster.node('cp-1').leaves.get('apiserver')?.digest, before);
  const status = await cluster.status();
  assert.deepEqual(
    status?.waitingFor.map(({ who, why }) => [who, why]),
    [['node/cp-0', 'etcd does not answer']],
  );
  cluster.node('cp-0').problem = undefined;
  await cluster.settle(days(1));
  assert.notEqual(cluster.node('cp-1').leaves.get('apiserver')?.digest, before);
});

for (const name of ['ca', 'front-proxy-ca', 'etcd-ca'] as const) {
  test(`${name} is handed over: nobody refuses anybody, and the one before stays until it is retired`, async () => {
    const cluster = await adopted();
    const old = cluster.ca(name);
    await cluster.rotate(name);
    await cluster.settle(hours(6));
    const status = await cluster.status();
    assert.equal(status?.families[name]?.phase, 'Retiring', JSON.stringify(status));
    const current = await cluster.current(name);
    assert.match(current?.subject.commonName ?? '', new RegExp(`^${old.subject.commonName}@\\d+$`));
    assert.deepEqual(cluster.trusted('cp-2', name), [current?.subject.commonName, old.subject.commonName]);
    assert.equal(cluster.node('cp-2').isSeparate, name === 'ca');
    assert.equal(await cluster.secret(nextKey(signerKey(name))), undefined);
    assert.ok(await cluster.secret(previousKey(signerKey(name))));
    await cluster.retire(name);
    await cluster.settle(hours(6));
    assert.deepEqual(cluster.trusted('cp-2', name), [current?.subject.commonName]);
    assert.equal(cluster.node('cp-2').isSeparate, false);
    assert.equal(await cluster.secret(previousKey(signerKey(name))), undefined);
    assert.equal((await cluster.status())?.families[name]?.phase, 'Steady');
  });
}

test('taken back while it is made known, everything is as before', async () => {
  const cluster = await adopted();
  const files = () =>
    [...cluster.nodes.keys()].map(node => [cluster.trusted(node, 'ca'), cluster.node(node).isSeparate]);
  const before = files();
  await cluster.rotate('ca');
  cluster.node('worker-0').isUp = false;
  await cluster.settle(minutes(10));
  const status = await cluster.status();
  assert.equal(status?.families.ca?.phase, 'Distributing');
  assert.ok(
    status?.waitingFor.some(({ who }) => who.includes('worker-0')),
    JSON.stringify(status),
  );
  assert.ok(status?.families.ca?.waitingFor?.some(who => who.includes('worker-0')));
  assert.deepEqual(status?.families['etcd-ca'], { phase: 'Steady', because: 'the signer is good' });
  assert.equal(cluster.trusted('cp-0', 'ca').length, 2);
  await cluster.takeBack('ca');
  await cluster.settle(hours(1));
  cluster.node('worker-0').isUp = true;
  await cluster.settle(hours(1));
  assert.deepEqual(files(), before);
  assert.equal((await cluster.status())?.families.ca?.phase, 'Steady');
});

test('turned round while it signs, the one before signs again', async () => {
  const cluster = await adopted();
  await cluster.rotate('etcd-ca');
  await cluster.settle(hours(6));
  await cluster.turnRound('etcd-ca');
  await cluster.settle(hours(6));
  assert.ok((await cluster.current('etcd-ca'))?.der.equals(cluster.ca('etcd-ca').der));
  for (const { issuer } of [cluster.node('cp-1').leaves.get('etcd-peer')].filter(leaf => leaf !== undefined))
    assert.ok(issuer.der.equals(cluster.ca('etcd-ca').der));
});

test('two families are never in the middle of it at once', async () => {
  const cluster = await adopted();
  await cluster.rotate('ca');
  await cluster.rotate('etcd-ca');
  await cluster.settle(hours(12));
  const status = await cluster.status();
  assert.deepEqual([status?.families.ca?.phase, status?.families['etcd-ca']?.phase], ['Retiring', 'Retiring']);
  const next = cluster.story.filter(line => /(?:create|delete) Secret .*-next/.test(line)).map(line => line.slice(25));
  assert.deepEqual(next.length, 4, next.join('\n'));
  assert.match(`${next[0]} ${next[1]}`, /create Secret (\S+)-next delete Secret \1-next/);
});

test('with keys on nodes another CA is refused, and leaves go on', async () => {
  const cluster = await adopted({ keysOnNodes: true });
  await cluster.rotate('ca');
  await cluster.settle(hours(1));
  assert.match((await cluster.status())?.families.ca?.because ?? '', /--keys-on-nodes/);
  const before = cluster.node('cp-0').leaves.get('apiserver')?.digest;
  await cluster.settle(days(260));
  assert.notEqual(cluster.node('cp-0').leaves.get('apiserver')?.digest, before);
});

test('a node that joins in the middle gets the files of the phase before it counts', async () => {
  const cluster = await adopted();
  await cluster.rotate('ca');
  cluster.node('worker-0').isUp = false;
  await cluster.settle(minutes(10));
  cluster.join('cp-9', 'control-plane');
  await cluster.settle(hours(1));
  assert.equal(cluster.trusted('cp-9', 'ca').length, 2);
  cluster.node('worker-0').isUp = true;
  await cluster.settle(hours(6));
  assert.equal((await cluster.status())?.families.ca?.phase, 'Retiring');
});

test('pods that hold the next CA are not waited for again when files change their order', async () => {
  const cluster = await adopted();
  const begin = () => {
    cluster.pods = [podSince(formatRfc3339(cluster.now()))];
  };
  begin();
  await cluster.settle(minutes(10));
  await cluster.rotate('ca');
  await cluster.settle(hours(1));
  const waiting = (await cluster.status())?.waitingFor.map(({ who, why }) => `${who}: ${why}`);
  assert.deepEqual(waiting, ['pods on worker-0: shop/web began before it']);
  begin();
  await cluster.settle(hours(1));
  await cluster.assertAtRest();
  const [now] = [await cluster.current('ca')];
  assert.notEqual(now?.subject.commonName, 'kubernetes');
  await cluster.turnRound('ca');
  await cluster.settle(hours(1));
  await cluster.assertAtRest();
  assert.equal((await cluster.current('ca'))?.subject.commonName, 'kubernetes');
});

function podSince(startedAt: string): Pod {
  return {
    metadata: { namespace: 'shop', name: 'web' },
    spec: {
      nodeName: 'worker-0',
      containers: [{ name: 'web', image: 'registry/web:1' }],
      volumes: [{ name: 'token', projected: { sources: [{ configMap: { name: 'kube-root-ca.crt' } }] } }],
    },
    status: { phase: 'Running', containerStatuses: [{ name: 'web', state: { running: { startedAt } } } as never] },
  };
}
