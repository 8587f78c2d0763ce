import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { days, hours, minutes, seconds } from '../../kube/duration.ts';
import { SECRETS } from '../../kube/resource.ts';
import type { ModelCluster } from '../../kubeadm/operator/model-cluster.ts';
import { accountFacts } from './account-facts.ts';
import { accountPlanText } from './account-plan.ts';
import { accountRequest } from './account-request.ts';
import { accountSceneOf, secretsOf } from './account-scene.ts';
import type { Aim } from './aim.ts';
import { lookAtTokens, renewSecretTokens } from './renew-tokens.ts';
import { type Request, write } from './request.ts';
import { secretTokens } from './secret-tokens.ts';
import { adopted, patching, sceneOf } from './testing.ts';

async function requestOf(cluster: ModelCluster, aim: Aim, pods: readonly Pod[] = []): Promise<Request> {
  const scene = await sceneOf(cluster);
  const tokens = secretsOf(scene, (await cluster.kube.list(SECRETS)).items);
  return accountRequest(aim, scene, accountSceneOf(scene, pods, tokens));
}

async function ask(cluster: ModelCluster, aim: Aim): Promise<string> {
  const request = await requestOf(cluster, aim);
  assert.equal(request.is, 'asked', JSON.stringify(request));
  if (request.is !== 'asked') return '';
  await write(patching(cluster), request);
  return request.says;
}

const factsOf = async (cluster: ModelCluster, aim: Aim) => accountFacts(aim, await sceneOf(cluster))?.join('\n');

test('the plan says what restarts where, who keeps the key before, and fits 80 columns', async () => {
  const cluster = await adopted();
  await cluster.tokens.makeSecret('ci');
  await cluster.settle(minutes(20));
  const scene = await sceneOf(cluster);
  const tokens = secretsOf(scene, (await cluster.kube.list(SECRETS)).items);
  const text = accountPlanText(scene, accountSceneOf(scene, [], tokens));
  assert.ok(
    text.split('\n').every(line => line.length <= 80),
    text,
  );
  const flat = text.replaceAll(/\s+/g, ' ');
  for (const part of [
    'on 3 control-plane nodes. No token that is good is refused',
    '1 Copy sa.key and sa.pub are copied into Secret rotunda-pki/service-account-keys. Nothing restarts.',
    '2 Distribute sa.pub gets the next public key beside the one in use. Restarts kube-apiserver on each control-plane node.',
    '3 Sign once every kube-apiserver has begun with both',
    '4 Retire the public key before is accepted for 365 days more (--service-account-extend-token-expiration, which is on)',
    'in this order: cp-0, cp-1, cp-2.',
    'shop/ci (no use noted). With --retire they get other tokens',
    'about 9 min.',
    'Point of no return: Retire.',
  ])
    assert.ok(flat.includes(part), `${part}\n${text}`);
});

test('asked for, followed to the end, retired: each answer says what is so', async () => {
  const cluster = await adopted();
  assert.match(JSON.stringify(await requestOf(cluster, 'retire')), /nothing to retire/);
  await ask(cluster, 'rotate');
  assert.equal((await requestOf(cluster, 'rotate')).is, 'there');
  assert.equal(await factsOf(cluster, 'rotate'), undefined);
  await cluster.settle(minutes(20));
  assert.match(
    (await factsOf(cluster, 'rotate')) ?? '',
    /^tokens are signed with the key [0-9a-f]{12} on every.*\nit signed .* after it was made\n.* still accepted, until 2027-.* or rotunda rotate sa --retire$/,
  );
  const says = await requestOf(cluster, 'retire', [olderPod('web')]);
  assert.match(JSON.stringify(says), /good until 2027-.*not before 2026-01-01T.*1 pods began before .*shop\/web/);
  const { notes } = await lookAtTokens(cluster.kube);
  const request = await requestOf(cluster, 'retire');
  assert.ok(request.is === 'asked');
  await write(patching(cluster), { ...request, notes: { ...request.notes, ...notes } });
  await cluster.tokens.giveUp();
  assert.equal(await factsOf(cluster, 'retire'), undefined);
  await cluster.settle(minutes(20));
  // Pods have not been brought other tokens yet, whoever asks.
  assert.equal(cluster.node('cp-1').serviceAccount.accepts.length, 2);
  await cluster.settle(hours(1));
  assert.match((await factsOf(cluster, 'retire')) ?? '', /\nno other public key is in any sa\.pub/);
});

test('taken back before anything is made, before it signs, and after', async () => {
  const cluster = await adopted();
  assert.equal((await requestOf(cluster, 'take-back')).is, 'refused');
  await ask(cluster, 'rotate');
  assert.match(await ask(cluster, 'take-back'), /the request goes/);
  await cluster.settle(hours(1));
  assert.equal(await factsOf(cluster, 'take-back'), 'sa.key and sa.pub are as they were');
  await ask(cluster, 'rotate');
  await cluster.settle(hours(1), async () => cluster.node('cp-1').serviceAccount.accepts.length === 2);
  assert.match(await ask(cluster, 'take-back'), /has signed nothing/);
  await cluster.settle(hours(1));
  assert.match((await factsOf(cluster, 'take-back')) ?? '', /no other public key/);
  await ask(cluster, 'rotate');
  await cluster.settle(hours(1));
  const signed = cluster.node('cp-1').serviceAccount.signs;
  assert.match(await ask(cluster, 'take-back'), /the one before signs again/);
  await cluster.settle(hours(1));
  assert.match((await factsOf(cluster, 'take-back')) ?? '', /still accepted/);
  assert.notEqual(cluster.node('cp-1').serviceAccount.signs, signed);
});

test('refused with a sentence where it cannot be', async () => {
  const kept = await requestOf(await adopted({ keysOnNodes: true }), 'rotate');
  assert.match(kept.is === 'refused' ? kept.why : '', /--keys-on-nodes/);
  const cluster = await adopted();
  const scene = await sceneOf(cluster);
  const strange = accountRequest(
    'rotate',
    scene,
    accountSceneOf(scene, [apiServer('--service-account-key-file=/a.pub')], []),
  );
  assert.match(
    strange.is === 'refused' ? strange.why : '',
    /on cp-0 kube-apiserver must have --service-account-key-file=/,
  );
});

test('tokens in Secrets are signed anew one after the other, and then the operator is told that there are none', async () => {
  const cluster = await adopted();
  for (const name of ['ci', 'tool']) await cluster.tokens.makeSecret(name);
  await cluster.settle(minutes(20));
  await cluster.tokens.rotate();
  await cluster.settle(hours(1));
  const before = await lookAtTokens(cluster.kube);
  assert.deepEqual([before.older.map(({ name }) => name), before.notes], [['shop/ci', 'shop/tool'], {}]);
  const printed: string[] = [];
  let isOver = false;
  const kube = patching(cluster);
  const renewing = renewSecretTokens({ kube, clock: cluster.clock, print: line => printed.push(line) });
  void renewing.finally(() => (isOver = true)).catch(() => {});
  while (!isOver) {
    const empty = secretTokens((await cluster.kube.list(SECRETS)).items, { current: '', older: [] });
    assert.ok(empty.filter(({ is }) => is === 'empty').length <= 1, 'two Secrets are without a token at once');
    await cluster.tokens.fill(cluster.counted());
    await cluster.clock.advance(seconds(1));
  }
  await renewing;
  assert.deepEqual(printed, ['Secret shop/ci has another token', 'Secret shop/tool has another token']);
  const after = await lookAtTokens(cluster.kube);
  assert.deepEqual([after.older, Object.keys(after.notes)], [[], ['rotunda.dev/no-secret-tokens-before']]);
});

test('a Secret that cannot be changed stops it, and so does a kube-controller-manager that does nothing', async () => {
  const cluster = await adopted();
  await cluster.tokens.makeSecret('ci');
  await cluster.settle(minutes(20));
  await cluster.tokens.rotate();
  await cluster.settle(hours(1));
  const { older } = await lookAtTokens(cluster.kube);
  const [ci] = older;
  assert.ok(ci !== undefined);
  await cluster.kube.update(SECRETS, { ...ci.secret, immutable: true });
  const options = { kube: patching(cluster), clock: cluster.clock, print: () => {} };
  await assert.rejects(renewSecretTokens(options), /shop\/ci is immutable/);
  const { metadata, data, type } = ci.secret;
  await cluster.kube.update(SECRETS, { metadata: { ...metadata, resourceVersion: undefined }, data, type } as never);
  const waiting = assert.rejects(
    renewSecretTokens(options),
    /kube-controller-manager has not put another token into Secret shop\/ci/,
  );
  let isOver = false;
  void waiting.finally(() => (isOver = true)).catch(() => {});
  while (!isOver) await cluster.clock.advance(seconds(10));
  await waiting;
});

test('which key a token is of is read from its header; one that says nothing may be of an older one', () => {
  const [current, old] = ['a', 'b'].map(letter => letter.repeat(64)) as [string, string];
  const kid = (digest: string) => Buffer.from(digest, 'hex').toString('base64url');
  const header = (fields: object) => Buffer.from(JSON.stringify(fields)).toString('base64url');
  const cases: [string, string | undefined][] = [
    [`${header({ alg: 'RS256', kid: kid(current) })}.x.y`, 'of-current'],
    [`${header({ alg: 'RS256', kid: kid(old) })}.x.y`, 'older'],
    [`${header({ alg: 'RS256', kid: kid('c'.repeat(64)) })}.x.y`, 'of-others'],
    [`${header({ alg: 'RS256' })}.x.y`, 'older'],
    ['no token at all', 'older'],
    ['', 'empty'],
  ];
  for (const [token, expected] of cases) {
    const secret = {
      metadata: { namespace: 'a', name: 'b', annotations: { 'kubernetes.io/service-account.name': 'x' } },
      type: 'kubernetes.io/service-account-token',
      data: { token: Buffer.from(token).toString('base64') },
    };
    assert.deepEqual(
      secretTokens([secret, { ...secret, type: 'Opaque' }], { current, older: [old] }).map(({ is }) => is),
      [expected],
      token,
    );
  }
});

test('without a limit tokens are good for a year; flags and pods say otherwise', async () => {
  const cluster = await adopted();
  const scene = await sceneOf(cluster);
  const life = (pods: readonly Pod[]) => accountSceneOf(scene, pods, []).life.ms;
  assert.equal(life([]), days(365));
  const off = '--service-account-extend-token-expiration=false';
  assert.equal(life([apiServer(off)]), seconds(3607));
  assert.equal(life([apiServer(off), olderPod('web', 86_400)]), days(1));
  assert.equal(life([apiServer(off, '--service-account-max-token-expiration=4h'), olderPod('web', 86_400)]), hours(4));
  assert.equal(life([apiServer('--service-account-max-token-expiration=9000h')]), hours(9000));
});

function apiServer(...flags: string[]): Pod {
  const command = ['kube-apiserver', ...flags];
  return {
    metadata: {
      namespace: 'kube-system',
      name: 'kube-apiserver-cp-0',
      labels: { tier: 'control-plane', component: 'kube-apiserver' },
    },
    spec: { nodeName: 'cp-0', containers: [{ name: 'kube-apiserver', image: '', command }] },
  };
}

function olderPod(name: string, expirationSeconds = 3607): Pod {
  const sources = [{ serviceAccountToken: { path: 'token', expirationSeconds } }];
  const startedAt = '2026-01-01T00:00:00Z' as never;
  return {
    metadata: { namespace: 'shop', name },
    spec: {
      nodeName: 'worker-0',
      containers: [{ name, image: '' }],
      volumes: [{ name: 'token', projected: { sources } }],
    },
    status: { phase: 'Running', containerStatuses: [{ name, state: { running: { startedAt } } } as never] },
  };
}
