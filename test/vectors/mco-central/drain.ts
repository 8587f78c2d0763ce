import assert from 'node:assert/strict';
import type { Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { startEngine } from '../../../src/api/api.ts';
import { silentLog } from '../../../src/controller/log.ts';
import type { Result } from '../../../src/controller/reconcile.ts';
import { VirtualClock } from '../../../src/kube/clock.ts';
import { KubeError } from '../../../src/kube/error.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import type { Kube } from '../../../src/kube/port.ts';
import { NAMESPACES, NODES, PODS } from '../../../src/kube/resource.ts';
import { formatRfc3339 } from '../../../src/kube/time.ts';
import { DRAIN_STARTED, drainReconcile } from '../../../src/machine-config/drain/controller.ts';
import { drainRequest, isDrainEvent } from '../../../src/machine-config/drain/decide.ts';
import { evictPods } from '../../../src/machine-config/drain/evict.ts';
import { drainVerdict } from '../../../src/machine-config/drain/filter.ts';
import { noGauges } from '../../../src/machine-config/metrics.ts';
import { LAST_APPLIED_DRAIN } from '../../../src/machine-config-api/names.ts';
import { notCompared } from '../run-case.ts';
import { type Adapter, type Json, NOW } from './case.ts';

const DELAY_SECONDS = 5;
const REASONS: Record<number, string> = { 403: 'Forbidden', 404: 'NotFound', 429: 'TooManyRequests' };

export const drainAdapters: Record<string, Adapter> = {
  async drain(given, expected) {
    if (given.event !== undefined) {
      const node = (annotations: Json): Node => ({ metadata: { name: 'n', annotations } });
      const isEnqueued = isDrainEvent(given.event === 'add' ? undefined : node(given.old), node(given.new));
      if (expected.enqueued !== undefined) assert.equal(isEnqueued, expected.enqueued);
      if (expected.enqueuedAfterSeconds !== undefined) assert.equal(isEnqueued && DELAY_SECONDS, expected.enqueuedAfterSeconds);
      return;
    }
    if (expected.error) {
      const request = drainRequest({ metadata: { name: 'n', annotations: given.annotations } });
      if (request.verb !== 'unknown') await assert.rejects(drainOnce(given));
      else if (expected.error !== true) assert.equal(request.error, expected.error);
      return;
    }
    const { actions, result, lastApplied, isOverdue } = await drainOnce(given);
    if (given.cordonResult !== undefined) {
      // 4.16 swallows the failure and never tries again (9.2): ours does.
      assert.deepEqual(actions, ['cordon', 'cordon', 'cordon', 'cordon', 'cordon']);
      assert.ok(result?.againAt);
      notCompared(expected, 'actions', 'requeueAfterSeconds', 'syncError');
      return;
    }
    // Where 4.16 does not notice that somebody let pods back in, later releases do, and ours.
    const wanted = expected.after416 ?? expected;
    if (expected.after416 !== undefined) notCompared(expected, 'actions', 'lastAppliedDrain', 'requeueAfterSeconds', 'metric', 'after416');
    assert.deepEqual(actions, wanted.actions);
    if (wanted.lastAppliedDrain !== undefined) assert.equal(lastApplied ?? '', wanted.lastAppliedDrain);
    if (expected.requeueAfterSeconds !== undefined) {
      const seconds = result?.againAt === undefined ? null : (result.againAt.getTime() - NOW.getTime()) / 1000;
      assert.equal(seconds, expected.requeueAfterSeconds);
    }
    if (expected.metric !== undefined) assert.equal(Number(isOverdue), expected.metric.mcc_drain_err ?? 0);
  },

  async 'drain-filter'(given, expected) {
    if (given.evictionResponses !== undefined) return evictionCase(given, expected);
    const { ownerKind, daemonSetExists, phase, annotations, priorityClassName, emptyDir, volumes, namespace = 'ns', labels } = given.pod;
    const pod: Pod = {
      metadata: {
        namespace,
        name: 'p',
        ...(annotations && { annotations }),
        ...(labels && { labels }),
        ...(ownerKind && { ownerReferences: [{ apiVersion: 'apps/v1', kind: ownerKind, name: 'owner', uid: 'u', controller: true }] }),
      },
      spec: { containers: [], ...(priorityClassName && { priorityClassName }), ...((emptyDir ?? volumes) && { volumes: volumes ?? [{ name: 'v', emptyDir: {} }] }) },
      status: { ...(phase && { phase }) },
    };
    const verdict = drainVerdict(pod, () => daemonSetExists ?? true);
    if (annotations?.['scheduler.alpha.kubernetes.io/critical-pod'] !== undefined || labels?.['k8s-app'] === 'machine-config-daemon') {
      // A promise of seed 003 that 4.16 broke: critical pods and the agent stay.
      assert.equal(verdict.evict, false);
      return;
    }
    assert.equal(verdict.evict, expected.evict);
    const word = verdict.evict ? (verdict.warning === undefined ? 'okay' : 'warning') : verdict.kind;
    if (expected.result !== undefined) assert.equal(word, expected.result);
  },
};

/** One pass over a node, on the API, with what the case says about evictions and cordons. */
async function drainOnce(given: Json) {
  const clock = new VirtualClock(NOW);
  const engine = await startEngine({ clock });
  try {
    const { kube } = engine;
    const request = given.annotations['machineconfiguration.openshift.io/desiredDrain'];
    const isOngoing = given.ongoingForSeconds !== undefined;
    const started = formatRfc3339(new Date(NOW.getTime() - (given.ongoingForSeconds ?? 0) * 1000));
    const annotations = { ...given.annotations, ...(isOngoing && { [DRAIN_STARTED]: `${started} ${request}` }) };
    await kube.create(NODES, { metadata: { name: 'n', annotations }, spec: { unschedulable: given.unschedulable ?? isOngoing } });
    const actions: string[] = [];
    let isOverdue = false;
    const watched = new Proxy<Kube>(kube, {
      get(target, name) {
        if (name === 'list') {
          return async (...args: Parameters<Kube['list']>) => {
            if (args[0].plural !== 'pods') return target.list(...args);
            actions.push('evict');
            if (given.drainResult === 'error') throw new KubeError(500, 'InternalError', 'no pods today');
            if (given.externallyUncordonedDuringDrain) await target.patch(NODES, { name: 'n' }, { type: 'merge', body: { spec: { unschedulable: null } } });
            return { items: [], metadata: {} };
          };
        }
        if (name === 'patch') {
          return async (...args: Parameters<Kube['patch']>) => {
            const body = args[2].body as Json;
            if (body.spec?.unschedulable === true) actions.push('cordon');
            if (body.spec?.unschedulable === null) actions.push('uncordon');
            if (given.cordonResult !== undefined || given.uncordonResult !== undefined) throw new KubeError(500, 'InternalError', 'no cordons today');
            if (body.metadata?.annotations?.[LAST_APPLIED_DRAIN] !== undefined) actions.push('annotate');
            return target.patch(...args);
          };
        }
        return Reflect.get(target, name).bind(target);
      },
    });
    const reconcile = drainReconcile({
      kube: watched,
      caches: { nodes: { get: () => ({ metadata: { name: 'n' } }) } as never },
      eventsAbout: () => recordingEvents(),
      gauges: { ...noGauges, drainOverdue: (_node, overdue) => (isOverdue ||= overdue) },
    });
    const { signal } = new AbortController();
    const pass = reconcile('n', { signal, clock, events: recordingEvents(), log: silentLog, enqueue: () => {} });
    const result = (await throughPauses(clock, pass)) as Result | undefined;
    const node = await kube.get(NODES, { name: 'n' });
    return { actions, result, lastApplied: node.metadata?.annotations?.[LAST_APPLIED_DRAIN], isOverdue };
  } finally {
    await engine.close();
  }
}

async function evictionCase(given: Json, expected: Json): Promise<void> {
  const clock = new VirtualClock(NOW);
  const responses = [...given.evictionResponses];
  const asked: number[] = [];
  const kube = {
    async evict() {
      asked.push(clock.now().getTime());
      const response = responses.shift() ?? 'ok';
      const code = Number.parseInt(String(response), 10);
      if (!Number.isNaN(code)) throw new KubeError(code, REASONS[code] ?? 'InternalError', `answered ${response}`);
    },
    async get(resource: Json) {
      if (resource === NAMESPACES) return { metadata: { deletionTimestamp: /terminating/i.test(JSON.stringify(given)) ? '2026-01-01T00:00:00Z' : undefined } };
      assert.equal(resource, PODS);
      throw new KubeError(404, 'NotFound', 'gone');
    },
  } as unknown as Kube;
  const failures = await throughPauses(clock, evictPods(kube, [{ metadata: { namespace: 'ns', name: 'p', uid: 'u' } }], clock));
  assert.equal(failures.length === 0 ? 'evicted' : 'failed', expected.result === 'evicted' ? 'evicted' : 'failed');
  if (expected.retriesAfterSeconds) assert.deepEqual(asked.slice(1).map((at, index) => (at - asked[index]!) / 1000), expected.retriesAfterSeconds);
}

/** Lets every pause inside end at once. */
async function throughPauses<T>(clock: VirtualClock, work: Promise<T>): Promise<T> {
  let isOver = false;
  const over = () => (isOver = true);
  work.then(over, over);
  while (!isOver) {
    const next = clock.nextWait();
    if (next === undefined) await new Promise(resolve => setImmediate(resolve));
    else await clock.advanceTo(next);
  }
  return work;
}
