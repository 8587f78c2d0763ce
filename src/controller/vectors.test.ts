/** Runs the cases of staticpod-vectors.json that speak of this folder, through the functions the operators use. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { hardened, knownWord, runGroup } from '../../test/vectors/run-case.ts';
import { VirtualClock } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { KubeError } from '../kube/error.ts';
import { recordingEvents } from '../kube/events.ts';
import { MemoryKube } from '../kube/memory.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { clusterOperatorReconcile } from './cluster-operator.ts';
import {
  CLUSTER_OPERATORS,
  type ClusterOperatorStatus,
  isProbe,
  mergedVersions,
  type ObjectReference,
  relatedObjects,
  statusDifference,
} from './cluster-operator-status.ts';
import { type Condition, removeCondition, setCondition } from './condition.ts';
import { inertiaOf, unionOfConditions } from './condition-union.ts';
import { reportingDegraded } from './degraded.ts';
import { silentLog } from './log.ts';
import { isManaged } from './management-state.ts';
import { retryPauseMs } from './rate-limit.ts';
import { RetryRequest } from './reconcile.ts';
import { updateStatus } from './status.ts';
import { namespaceIn, objectKey, onChange } from './trigger.ts';

// biome-ignore lint/suspicious/noExplicitAny: the cases are data without a schema
type Json = any; // oxlint-disable-line typescript/no-explicit-any
interface Case {
  readonly id: string;
  readonly kind: string;
  readonly given: Json;
  readonly expected: Json;
  readonly expectedHardened?: Json;
}

const now = new Date('2026-01-01T00:00:00Z');
const file = new URL('../../test/vectors/staticpod-vectors.json', import.meta.url);
const { cases } = JSON.parse(readFileSync(file, 'utf8')) as { cases: Case[] };

const checks: Record<string, (given: Json, expected: Json) => void | Promise<void>> = {
  'status.union'({ conditionType, defaultStatus, inertia, conditions }, expected) {
    const of =
      inertia === null
        ? undefined
        : inertiaOf(
            inertia.overrides.map(({ match, seconds: s }: Json) => ({ match: new RegExp(match), ms: seconds(s) })),
            seconds(inertia.defaultSeconds),
          );
    assert.deepEqual(unionOfConditions(conditionType, defaultStatus, conditions.map(aged), now, of), expected);
  },
  'status.relatedObjects'({ hasDynamicFunction, static: fixed, dynamic, existing }, { relatedObjectsUnordered }) {
    const reference = (name: string): ObjectReference => ({ group: 'g', resource: 'r', name });
    const policy = {
      relatedObjects: fixed.map(reference),
      ...(hasDynamicFunction && { dynamicRelatedObjects: () => dynamic?.map(reference) }),
    };
    const names = relatedObjects(policy, existing.map(reference)).map(({ name }) => name);
    assert.deepEqual(new Set(names), new Set(relatedObjectsUnordered));
  },
  'status.versions'({ allowRemoval, existing, recorded }, { versionsUnordered }) {
    const byName = (a: Json, b: Json) => (a.name < b.name ? -1 : 1);
    assert.deepEqual(
      [...mergedVersions(existing, recorded, allowRemoval)].sort(byName),
      [...versionsUnordered].sort(byName),
    );
  },
  'status.skipChangedEvent'({ original, updated }, { skip }) {
    assert.equal(isProbe(original, updated), skip);
  },
  'status.diff'({ old, new: next }, { diff }) {
    assert.equal(statusDifference(old, next), diff);
  },
  async 'status.sync'(
    { managementState, conditions, clusterOperatorExists = false },
    { clusterOperatorConditions, clusterOperatorCreated = !clusterOperatorExists, versionsTouched },
  ) {
    const kube = new MemoryKube();
    if (clusterOperatorExists) await kube.create(CLUSTER_OPERATORS, { metadata: { name: 'etcd' } });
    const before = (await kube.list(CLUSTER_OPERATORS)).items.length;
    const reconcile = clusterOperatorReconcile({
      name: 'etcd',
      kube,
      policy: { inertia: inertiaOf(), relatedObjects: [] },
      operator: async () => ({ managementState, conditions: conditions.map(aged), versions: { operator: '4.16' } }),
    });
    await reconcile('key', contextOf());
    const { status } = await kube.get(CLUSTER_OPERATORS, { name: 'etcd' });
    const found = Object.fromEntries(
      (status?.conditions ?? []).map(({ type, status: is, reason }) => [type, { status: is, reason }]),
    );
    assert.deepEqual(found, clusterOperatorConditions);
    assert.equal(before === 0, clusterOperatorCreated);
    assert.equal((status?.versions ?? []).length > 0, versionsTouched ?? managementState !== 'Unmanaged');
  },
  'conditions.set'({ conditions, set }, { conditions: expected, transitionTime }) {
    const before: Condition[] = conditions.map(aged);
    const after = setCondition(before, set, now);
    assert.deepEqual(
      after.map(condition => withoutTime(condition)),
      expected,
    );
    for (const [type, when] of Object.entries(transitionTime)) {
      const [old, fresh] = [before, after].map(
        list => list.find(condition => condition.type === type)?.lastTransitionTime,
      );
      assert.equal(fresh, when === 'now' ? formatRfc3339(now) : old);
    }
  },
  'conditions.remove'({ conditions, remove }, { conditions: expected }) {
    assert.deepEqual(removeCondition(conditions, remove), expected);
  },
  async 'status.updateWithRetry'({ attempts }, expected) {
    const reads: string[] = [];
    const clock = new VirtualClock(now);
    let writes = 0;
    const at = (version: string) => ({
      metadata: { name: 'etcd', resourceVersion: version },
      status: {} as ClusterOperatorStatus,
    });
    const kube = {
      get: async () => {
        reads.push('live');
        return at('live') as Json;
      },
      updateStatus: async (_: unknown, object: Json) => {
        const { writeResult } = attempts[writes];
        writes += 1;
        if (writeResult === 'conflict') throw new KubeError(409, 'Conflict', 'conflict');
        if (writeResult !== 'ok') throw new KubeError(500, 'InternalError', writeResult);
        return object;
      },
    };
    const start = clock.now().getTime();
    const pauses: number[] = [];
    const outcome = updateStatus(
      kube,
      CLUSTER_OPERATORS,
      { name: 'etcd' },
      object => ({ ...object, status: { extension: 'new' } }),
      {
        clock,
        random: () => 0,
        cached: () => {
          reads.push('cache');
          pauses.push(clock.now().getTime() - start);
          return at(attempts[writes].cacheRV);
        },
      },
    ).then(
      ({ updated }) => ({ updated, error: null }),
      (error: Error) => ({ updated: false, error: error.message }),
    );
    await clock.advance(seconds(1));
    const { updated, error } = await outcome;
    assert.deepEqual([reads, writes, updated], [expected.readsUsed, expected.writes, expected.updated]);
    if ('error' in expected) assert.equal(error, expected.error);
    if ('sleepSecondsApprox' in expected) {
      const slept = pauses.slice(1).map((at, index) => (at - (pauses[index] as number)) / 1000);
      assert.deepEqual(slept, expected.sleepSecondsApprox);
    }
  },
  'management.isManaged'({ state, alwaysManaged, notRemovable }, { managed }) {
    assert.equal(isManaged(state, { alwaysManaged, notRemovable }), managed);
  },
  async 'factory.reconcile'({ controllerName, degradedOnError, syncError, synthetic }, { condition, error, requeue }) {
    // A controller that reports nothing has no such wrapper.
    assert.equal(degradedOnError, true);
    const { written, thrown } = await conditionsOf(controllerName, () => {
      if (synthetic) throw new RetryRequest();
      if (syncError !== null) throw new Error(syncError);
    });
    assert.deepEqual(written, condition === 'unchanged' ? [] : [condition]);
    if (error !== undefined) assert.equal(thrown?.message ?? null, error);
    // Whatever a reconcile throws is tried again after a pause that grows.
    if (requeue !== undefined) assert.deepEqual([thrown !== undefined, requeue], [true, 'rateLimited']);
  },
  async 'factory.panic'({ controllerName, degradedOnError, panicValue }, { condition, processTerminates }) {
    assert.equal(degradedOnError, true);
    const { written } = await conditionsOf(controllerName, () => {
      throw panicValue;
    });
    assert.deepEqual(written, [condition]);
    // A process of Node goes on after what is thrown here; that it may be wrong about its state is what crashes are for in Go.
    knownWord(processTerminates, undefined, true);
  },
  'factory.rateLimit'({ previousFailures }, { delaySeconds }) {
    assert.equal(retryPauseMs(previousFailures), seconds(delaySeconds));
  },
  'factory.enqueue'(
    { keyFunction, namespaceFilter, events, sameInformerRegisteredTwice },
    { keys, handlersRegistered },
  ) {
    const found = new Set<string>();
    const trigger = () =>
      onChange<Json>(
        {
          synced: Promise.resolve(),
          subscribe(handlers) {
            for (const [act, wrapped] of events) {
              const { namespace, name } = wrapped.tombstoneOf ?? wrapped;
              const object = { metadata: namespace === undefined ? { name } : { namespace, name } };
              if (act === 'update') handlers.update(object, object);
              else handlers[act as 'add' | 'delete'](object);
            }
            return () => {};
          },
        },
        {
          ...(namespaceFilter && { when: namespaceIn(namespaceFilter) }),
          ...(keyFunction && { keys: objectKey }),
        },
      );
    // Twice the same is in the queue once, however many tell of it.
    for (let times = 0; times < (sameInformerRegisteredTwice ? 2 : 1); times++) trigger().start(key => found.add(key));
    assert.deepEqual(found, new Set(keys));
    if (handlersRegistered !== undefined) assert.equal(found.size, handlersRegistered);
  },
  'factory.namespaceFilter'({ object, namespaces }, { interesting }) {
    const { name } = object.tombstoneOf ?? object;
    assert.equal(namespaceIn(namespaces)({ metadata: { name } }), interesting);
  },
};

/** Tested word by word in controller.test.ts: time-outs and tickers need a running controller. */
const ELSEWHERE = new Set(['factory.cacheSync', 'factory.resync']);
const OURS = /^(?:status|conditions|management|factory)\./;

const ours = cases.filter(({ kind }) => OURS.test(kind) && !ELSEWHERE.has(kind));
for (const [kind, group] of Map.groupBy(ours, vector => vector.kind)) {
  const check = checks[kind] ?? (() => assert.fail(`no check for ${kind}`));
  runGroup(
    kind,
    group.map(({ id, given, expected, expectedHardened }) => ({
      name: `${id} ${kind}`,
      given,
      expected: hardened(expected, expectedHardened),
      run: check,
    })),
  );
}

function withoutTime({ type, status, reason, message }: Condition): Condition {
  return { type, status, reason, message };
}

function aged({ ageSeconds, ...condition }: Json): Condition {
  if (ageSeconds === undefined) return condition;
  return { ...condition, lastTransitionTime: formatRfc3339(new Date(now.getTime() - seconds(ageSeconds))) };
}

function contextOf() {
  return {
    signal: new AbortController().signal,
    clock: new VirtualClock(now),
    events: recordingEvents(),
    log: silentLog,
    enqueue: () => {},
  };
}

async function conditionsOf(
  name: string,
  act: () => void,
): Promise<{ written: Condition[]; thrown: Error | undefined }> {
  const written: Condition[] = [];
  const write = async (condition: Condition) => written.push(condition);
  const wrapped = reportingDegraded(async () => act(), { name, write });
  const thrown = await Promise.resolve(wrapped('key', contextOf())).then(
    () => undefined,
    (error: Error) => error,
  );
  return { written, thrown };
}
