import assert from 'node:assert/strict';
import { type TestContext, test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { startEngine } from '../api/api.ts';
import { runAll } from '../controller/controller.ts';
import { silentLog } from '../controller/log.ts';
import { sleep, VirtualClock } from '../kube/clock.ts';
import { minutes, seconds } from '../kube/duration.ts';
import { getIfPresent } from '../kube/get.ts';
import { Informer } from '../kube/informer.ts';
import { PODS, SECRETS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { seededKeys } from '../pki/keys.ts';
import { etcdCaches, informersOfEtcd } from './caches.ts';
import { noExpirationMetrics } from './metrics.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE } from './names.ts';
import { etcdOperator } from './operator.ts';
import { profileLater } from './profile.ts';
import { NOW, TestEtcd } from './testing.ts';

/** The whole operator over an API in memory, with a kubelet that takes five seconds for everything. */
async function startOperator(t: TestContext) {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  const { kube } = engine;
  const etcd = await TestEtcd.create({ kube, clock });
  const caches = etcdCaches(kube, { clock });
  for (const informer of informersOfEtcd(caches)) informer.start();
  const operator = etcdOperator({
    kube,
    caches,
    clock,
    // Made at once: a machine that is busy must not let the clock run ahead of them.
    keys: seededKeys('operator'),
    keyAlgorithm: 'P-256',
    events: etcd.context.events,
    log: silentLog,
    profile: profileLater(),
    members: etcd.members,
    membership: { addLearner: async () => {}, promote: async () => {}, remove: async () => {} },
    expiration: noExpirationMetrics,
    operand: {
      image: 'etcd',
      operatorImage: 'rotunda',
      command: ['rotunda'],
      listenOn: 'all',
      withMetricsProxy: true,
      version: '1',
    },
  });
  const installs: string[] = [];
  const pods = new Informer(kube, PODS, { selection: { namespace: ETCD_NAMESPACE }, clock }).start();
  const kubelet = async (pod: Pod) => {
    if (
      pod.metadata?.labels?.app !== 'installer' ||
      pod.status?.phase === 'Succeeded' ||
      installs.includes(pod.metadata.name ?? '')
    )
      return;
    installs.push(pod.metadata.name ?? '');
    await sleep(clock, seconds(5));
    const revision =
      (pod.spec?.containers[0]?.args ?? []).find(arg => arg.startsWith('--revision='))?.slice('--revision='.length) ??
      '';
    const key = { namespace: ETCD_NAMESPACE, name: `etcd-${pod.spec?.nodeName}` };
    const before = await getIfPresent(kube, PODS, key);
    if (before !== undefined) await kube.delete(PODS, key, { gracePeriodSeconds: 0 });
    const labels = { app: 'etcd', 'k8s-app': 'etcd', etcd: 'true', revision };
    const mirror = await kube.create(PODS, {
      metadata: { ...key, labels },
      spec: { containers: [{ name: 'etcd', image: 'etcd' }] },
    });
    const ready = { type: 'Ready', status: 'True', lastTransitionTime: formatRfc3339(clock.now()) };
    await kube.updateStatus(PODS, { ...mirror, status: { phase: 'Running', conditions: [ready] } });
    const current = await kube.get(PODS, { namespace: ETCD_NAMESPACE, name: pod.metadata.name ?? '' });
    await kube.updateStatus(PODS, { ...current, status: { phase: 'Succeeded' } });
  };
  const ignoreStop = (work: Promise<void>) => void work.catch(() => {});
  pods.subscribe({ add: pod => ignoreStop(kubelet(pod)), update: (_, pod) => ignoreStop(kubelet(pod)) });
  const stop = new AbortController();
  const running = runAll(operator.controllers, stop.signal);
  t.after(async () => {
    stop.abort();
    await clock.advance(minutes(1));
    await running;
    await Promise.all([pods.stop(), ...informersOfEtcd(caches).map(informer => informer.stop())]);
    await engine.close();
  });
  return { etcd, clock, operator, installs };
}

/** Lets the controllers work, a little at a time, until `look` finds something. */
async function until<T>(clock: VirtualClock, what: string, look: () => Promise<T | undefined | false>): Promise<T> {
  for (let turn = 0; turn < 600; turn++) {
    const found = await look().catch(() => undefined);
    if (found !== undefined && found !== false) return found;
    await clock.advance(seconds(1));
  }
  throw new Error(`waited in vain for ${what}`);
}

async function settledRevision(etcd: TestEtcd): Promise<number | undefined> {
  const { latestAvailableRevision: latest = 0, nodeStatuses = [] } = await etcd.status();
  const isDone =
    nodeStatuses.length === 3 && nodeStatuses.every(node => node.currentRevision === latest && !node.targetRevision);
  return isDone && latest > 0 ? latest : undefined;
}

test('a forced rotation runs through all controllers; a member lost on the way stops it until it is back', async t => {
  const { etcd, clock, operator, installs } = await startOperator(t);
  const stable = async () => {
    const revision = await settledRevision(etcd);
    const isQuiet =
      (await etcd.secret('etcd-all-certs')).data !== undefined &&
      (await etcd.configMap('etcd-endpoints')).data?.['1'] === '10.0.0.1';
    return isQuiet && revision;
  };
  await until(clock, 'the first rollouts', stable);
  await clock.advance(minutes(2));
  const revision = await until(clock, 'a settled cluster', stable);
  assert.equal(
    (await etcd.secret('etcd-client', CONFIG_NAMESPACE)).data?.['tls.crt'],
    (await etcd.secret('etcd-client')).data?.['tls.crt'],
  );
  assert.equal(
    (await etcd.configMap('etcd-serving-ca', CONFIG_NAMESPACE)).data?.['ca-bundle.crt'],
    (await etcd.configMap('etcd-ca-bundle')).data?.['ca-bundle.crt'],
  );
  assert.equal((await etcd.condition('EtcdMembersAvailable'))?.reason, 'EtcdQuorate');
  assert.deepEqual(operator.liveness.stuck(), []);

  const leaves = (await etcd.secret('etcd-all-certs')).data;
  installs.length = 0;
  await etcd.forget('etcd-signer');
  await until(clock, 'the first node with the new bundle', async () => installs.length === 1);
  etcd.members.set('master-2', false);
  await clock.advance(minutes(10));
  assert.ok(installs.length <= 2, `nodes went on: ${installs.join()}`);
  const atPause = installs.length;
  assert.ok(
    etcd.events.some(
      ({ reason, message }) => reason === 'NodeRolloutPaused' && /healthy members left and needs 2/.test(message),
    ),
  );
  assert.deepEqual((await etcd.secret('etcd-all-certs')).data, leaves, 'no leaf moves either');
  assert.deepEqual(await etcd.refusals(), []);

  etcd.members.set('master-2', true);
  const isDone = async () =>
    (await settledRevision(etcd)) === revision + 2 && (await etcd.secret('etcd-all-certs')).data !== leaves;
  await until(clock, 'the rest of the rotation', isDone);
  assert.ok(installs.length > atPause);
  assert.equal(installs.length, 6, `two restarts of each member: ${installs.join()}`);
  const signer = await etcd.certificate('etcd-signer');
  for (const node of ['master-0', 'master-1', 'master-2']) {
    assert.deepEqual((await etcd.certificate(`etcd-peer-${node}`)).authorityKeyId, signer.subjectKeyId);
  }
  assert.deepEqual(await etcd.refusals(), []);
  assert.equal((await etcd.condition())?.status, 'False');
  await clock.advance(minutes(5));
  assert.equal(await settledRevision(etcd), revision + 2, 'and then there is peace');
  const { items } = await etcd.kube.list(SECRETS, { namespace: ETCD_NAMESPACE });
  assert.ok(items.length > 0);
});
