import assert from 'node:assert/strict';
import { test } from 'node:test';
import { hours, minutes, seconds } from '../../kube/duration.ts';
import { ConnectionError, KubeError } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import type { SignerName } from '../../kubeadm/chains.ts';
import { ModelCluster } from '../../kubeadm/operator/model-cluster.ts';
import { factsOf, follow } from './follow.ts';
import { planText } from './plan.ts';
import { type Request, retireRequest, rotationRequest, takeBackRequest } from './request.ts';
import { adopted, sceneOf } from './testing.ts';

async function ask(
  cluster: ModelCluster,
  of: (name: SignerName, scene: Awaited<ReturnType<typeof sceneOf>>) => Request,
  name: SignerName = 'ca',
) {
  const request = of(name, await sceneOf(cluster));
  assert.equal(request.is, 'asked', JSON.stringify(request));
  if (request.is !== 'asked') return;
  const notes = Object.entries(request.notes).map(([key, value]) => [key, value ?? undefined] as const);
  await cluster.note({ namespace: request.key.namespace ?? '', name: request.key.name }, Object.fromEntries(notes));
}

test('the plan says first what becomes of whom, and fits 80 columns', async () => {
  const cluster = await adopted();
  const text = planText('ca', await sceneOf(cluster), [
    { namespace: 'shop', name: 'web-1', node: 'worker-0', owner: { kind: 'ReplicaSet', name: 'web' } },
  ]);
  const [first = ''] = text.split('\n');
  assert.match(first, /^Another ca: "kubernetes" \(ends 2035-12-\d\d\) is followed by/);
  assert.ok(
    text.split('\n').every(line => line.length <= 80),
    text,
  );
  const flat = text.replaceAll(/\s+/g, ' ');
  for (const part of [
    '1 Separate kube-controller-manager restarts on each control-plane node',
    '2 Distribute ca.crt gets the next CA beside the one in use. Restarts kube-controller-manager, kube-scheduler, kubelet on each control-plane node; kubelet on each worker.',
    '(--pods wait): shop/replicaset/web.',
    'in this order: cp-0, cp-1, cp-2, worker-0.',
    'Expected duration until it signs everywhere: about 15 min',
    'from Sign on they refuse kube-apiserver.',
    'Point of no return: Retire.',
  ]) {
    assert.ok(flat.includes(part), `${part}\n${text}`);
  }
  assert.match(planText('front-proxy-ca', await sceneOf(cluster), []), /Nothing\s+restarts/);
  assert.match(
    planText('etcd-ca', await sceneOf(cluster), []),
    /Restarts\s+etcd,\s+kube-apiserver\s+on\s+each\s+control-plane\s+node/,
  );
});

test('asked for, followed to the end, retired: each answer says what is so', async () => {
  const cluster = await adopted();
  const retireEarly = retireRequest('ca', await sceneOf(cluster));
  assert.deepEqual(retireEarly.is, 'refused');
  assert.equal(factsOf('ca', 'rotate', await sceneOf(cluster)), undefined);
  await ask(cluster, rotationRequest);
  assert.equal(factsOf('ca', 'rotate', await sceneOf(cluster)), undefined);
  assert.equal(rotationRequest('ca', await sceneOf(cluster)).is, 'there');
  await cluster.settle(hours(2));
  const facts = factsOf('ca', 'rotate', await sceneOf(cluster))?.join('\n') ?? '';
  assert.match(facts, /^"kubernetes@\d+" signs on every control-plane node, until 203/);
  assert.match(facts, /"kubernetes" is still trusted, until its end or rotunda rotate ca --retire/);
  const retire = retireRequest('ca', await sceneOf(cluster));
  assert.match('says' in retire ? retire.says : '', /every file and cluster-info\. .* admin\.conf, is refused/);
  await ask(cluster, retireRequest);
  // It leaves the bundle first; then the operator has not said yet that it will leave files, where it still is.
  const isInBundle = async () => (await sceneOf(cluster)).families[0]?.question.retiring.length !== 0;
  for (let passes = 0; passes < 10 && (await isInBundle()); passes++) await cluster.pass(1);
  assert.equal(await isInBundle(), false);
  assert.equal(factsOf('ca', 'retire', await sceneOf(cluster)), undefined);
  await cluster.settle(hours(2));
  assert.match(factsOf('ca', 'retire', await sceneOf(cluster))?.join() ?? '', /no older ca is in any file/);
});

test('who follows is not put off by a kube-apiserver that starts, and knows no roles yet', async () => {
  const cluster = await adopted();
  await ask(cluster, rotationRequest);
  await cluster.settle(hours(2));
  await sceneOf(cluster);
  const failures = [
    new ConnectionError('ECONNREFUSED', 'nobody listens'),
    new KubeError(403, 'Forbidden', 'RBAC: clusterrole "cluster-admin" not found'),
  ];
  const kube = new Proxy<Kube>(cluster.kube, {
    get: (target, name) => async (resource: never, key: never) => {
      const failure = failures.shift();
      if (failure !== undefined) throw failure;
      return target[name as 'get'](resource, key);
    },
  });
  const printed: string[] = [];
  let isOver = false;
  const following = follow('ca', 'rotate', { kube, clock: cluster.clock, print: line => printed.push(line) });
  void following.finally(() => (isOver = true)).catch(() => {});
  while (!isOver) await cluster.clock.advance(seconds(1));
  await following;
  assert.deepEqual(failures, []);
  assert.match(printed.join('\n'), /nobody listens\n.*again in a moment: RBAC: .*\n"kubernetes@\d+" signs/);
});

test('taken back before anything is made, while it is made known, and once it signs', async () => {
  const cluster = await adopted();
  assert.equal(takeBackRequest('ca', await sceneOf(cluster)).is, 'refused');
  await ask(cluster, rotationRequest);
  await ask(cluster, takeBackRequest);
  await cluster.settle(minutes(10));
  assert.match(factsOf('ca', 'take-back', await sceneOf(cluster))?.join() ?? '', /^"kubernetes" signs .*no other ca/);
  cluster.node('worker-0').isUp = false;
  await ask(cluster, rotationRequest);
  await cluster.settle(minutes(10));
  await ask(cluster, takeBackRequest);
  cluster.node('worker-0').isUp = true;
  await cluster.settle(minutes(10));
  assert.match(factsOf('ca', 'take-back', await sceneOf(cluster))?.join() ?? '', /^"kubernetes" signs .*no other ca/);
  await ask(cluster, rotationRequest);
  await cluster.settle(hours(2));
  await ask(cluster, takeBackRequest);
  await cluster.settle(hours(2));
  assert.match(
    factsOf('ca', 'take-back', await sceneOf(cluster))?.join() ?? '',
    /^"kubernetes" signs .*"kubernetes@\d+" is still/,
  );
});

test('refused with a sentence where it cannot be', async () => {
  const keyless = await adopted({ keysOnNodes: true });
  const refused = rotationRequest('ca', await sceneOf(keyless));
  assert.match(refused.is === 'refused' ? refused.why : '', /--keys-on-nodes/);
  const strange = await ModelCluster.make();
  strange.node('cp-1').problem = 'etcd does not answer';
  await strange.settle(minutes(1));
  const differs = rotationRequest('ca', await sceneOf(strange));
  assert.match(differs.is === 'refused' ? differs.why : '', /not adopted: cp-1 has a problem/);
  await strange.kube.delete(CONFIG_MAPS, { namespace: 'rotunda-pki', name: 'kubeadm' });
  await assert.rejects(sceneOf(strange), /run rotunda adopt kubeadm first/);
  assert.equal((await strange.kube.list(SECRETS)).items.length, 0);
});
