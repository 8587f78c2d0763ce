import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { DaemonSet } from 'kubernetes-types/apps/v1.d.ts';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { startEngine } from '../../api/api.ts';
import { silentLog } from '../../controller/log.ts';
import { hours, minutes, seconds } from '../../kube/duration.ts';
import { recordingEvents } from '../../kube/events.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES, POD_DISRUPTION_BUDGETS, PODS, resource } from '../../kube/resource.ts';
import { DESIRED_DRAIN, LAST_APPLIED_DRAIN } from '../../machine-config-api/names.ts';
import { noGauges } from '../metrics.ts';
import { TestCluster } from '../testing.ts';
import { DRAIN_STARTED, drainReconcile } from './controller.ts';

const DAEMON_SETS = resource<DaemonSet>('apps/v1', 'DaemonSet', 'daemonsets');

describe('drains on the API', () => {
  let cluster: TestCluster;
  let stopController: () => Promise<void>;
  const request = (value: string) =>
    cluster.kube.patch(
      NODES,
      { name: 'n' },
      { type: 'merge', body: { metadata: { annotations: { [DESIRED_DRAIN]: value } } } },
    );
  const node = () => cluster.kube.get(NODES, { name: 'n' });
  const applied = async () => (await node()).metadata?.annotations?.[LAST_APPLIED_DRAIN];
  const podNames = async () =>
    (await cluster.kube.list(PODS, { namespace: 'default' })).items.map(({ metadata }) => metadata?.name ?? '').sort();
  const addPod = (name: string, metadata: Pod['metadata'] = {}) =>
    cluster.kube.create(PODS, {
      metadata: { namespace: 'default', name, ...metadata },
      spec: { nodeName: 'n', terminationGracePeriodSeconds: 0, containers: [{ name: 'c', image: 'i' }] },
    });
  const setReady = async (name: string) => {
    const pod = await cluster.kube.get(PODS, { namespace: 'default', name });
    await cluster.kube.updateStatus(PODS, {
      ...pod,
      status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] },
    });
  };

  before(async () => {
    cluster = await TestCluster.create(clock => startEngine({ clock }));
    await cluster.addNode('n', {});
    stopController = cluster.startController();
    await cluster.pass(seconds(10));
  });
  after(() => cluster.stop());

  test('evicts what should go, keeps what should stay, and says that it is done', async () => {
    const labels = { app: 'agent' };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'c', image: 'i' }] } };
    const daemonSet = await cluster.kube.create(DAEMON_SETS, {
      metadata: { namespace: 'default', name: 'agent' },
      spec: { selector: { matchLabels: labels }, template },
    });
    const owner = (kind: string, name: string, uid = 'gone') => ({
      ownerReferences: [{ apiVersion: 'apps/v1', kind, name, uid, controller: true }],
    });
    await addPod('of-daemonset', owner('DaemonSet', 'agent', daemonSet.metadata?.uid));
    await addPod('static', { annotations: { 'kubernetes.io/config.mirror': 'x' } });
    await addPod('critical', { annotations: { 'scheduler.alpha.kubernetes.io/critical-pod': '' } });
    await addPod('alone');
    await request('drain-rendered-1');
    await cluster.pass(seconds(30));
    assert.deepEqual(await podNames(), ['critical', 'of-daemonset', 'static']);
    assert.equal((await node()).spec?.unschedulable, true);
    assert.equal(await applied(), 'drain-rendered-1');
    assert.equal((await node()).metadata?.annotations?.[DRAIN_STARTED], undefined);
    await request('uncordon-rendered-1');
    await cluster.pass(seconds(30));
    assert.equal((await node()).spec?.unschedulable, undefined);
    assert.equal(await applied(), 'uncordon-rendered-1');
    for (const name of await podNames())
      await cluster.kube.delete(PODS, { namespace: 'default', name: name ?? '' }, { gracePeriodSeconds: 0 });
  });

  test('respects disruption budgets, retries, tells how long it takes, and remembers that over a restart', async () => {
    await addPod('guarded', { labels: { app: 'guarded' } });
    await setReady('guarded');
    await cluster.kube.create(POD_DISRUPTION_BUDGETS, {
      metadata: { namespace: 'default', name: 'guard' },
      spec: { minAvailable: 1, selector: { matchLabels: { app: 'guarded' } } },
    });
    await request('drain-rendered-2');
    await cluster.pass(minutes(5));
    assert.deepEqual(await podNames(), ['guarded']);
    assert.notEqual(await applied(), 'drain-rendered-2');
    assert.ok(
      cluster.events.some(({ reason, message }) => reason === 'FailedToDrain' && message.includes('default/guarded')),
    );
    const started = (await node()).metadata?.annotations?.[DRAIN_STARTED];
    await stopController();
    stopController = cluster.startController();
    await cluster.pass(hours(1));
    assert.equal((await node()).metadata?.annotations?.[DRAIN_STARTED], started);
    assert.ok(cluster.events.some(({ reason }) => reason === 'DrainThresholdExceeded'));
    await cluster.kube.delete(POD_DISRUPTION_BUDGETS, { namespace: 'default', name: 'guard' });
    await cluster.pass(minutes(6));
    assert.deepEqual(await podNames(), []);
    assert.equal(await applied(), 'drain-rendered-2');
  });

  test('an uncordon counts as applied only once the node takes pods again (DR-1)', async () => {
    let isUndone = true;
    const meddled = new Proxy<Kube>(cluster.kube, {
      get(target, name) {
        if (name !== 'patch') return Reflect.get(target, name).bind(target);
        return async (...args: Parameters<Kube['patch']>) => {
          const patched = await target.patch(...args);
          const body = { spec: { unschedulable: true } };
          if (isUndone) await target.patch(NODES, { name: 'n' }, { type: 'merge', body });
          return patched;
        };
      },
    });
    await stopController();
    await request('uncordon-rendered-2');
    const overdue: boolean[] = [];
    const reconcile = drainReconcile({
      kube: meddled,
      caches: { nodes: { get: () => ({ metadata: { name: 'n' } }) } as never },
      eventsAbout: () => recordingEvents(),
      gauges: { ...noGauges, drainOverdue: (_node, isOverdue) => overdue.push(isOverdue) },
    });
    const { clock } = cluster;
    const attempt = async () => {
      const { signal } = new AbortController();
      let outcome: 'done' | 'failed' | undefined;
      Promise.resolve(
        reconcile('n', { signal, clock, events: recordingEvents(), log: silentLog, enqueue: () => {} }),
      ).then(
        () => (outcome = 'done'),
        () => (outcome = 'failed'),
      );
      await cluster.pass(minutes(5));
      return outcome;
    };
    assert.equal(await attempt(), 'failed');
    assert.equal(await applied(), 'drain-rendered-2');
    isUndone = false;
    assert.equal(await attempt(), 'done');
    assert.equal((await node()).spec?.unschedulable, undefined);
    assert.equal(await applied(), 'uncordon-rendered-2');
    assert.deepEqual(overdue, [false]);
  });
});
