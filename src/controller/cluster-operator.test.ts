import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../kube/clock.ts';
import { minutes, seconds } from '../kube/duration.ts';
import { KubeError } from '../kube/error.ts';
import { recordingEvents } from '../kube/events.ts';
import { MemoryKube } from '../kube/memory.ts';
import type { Kube } from '../kube/port.ts';
import { clusterOperatorReconcile, VersionRecorder } from './cluster-operator.ts';
import {
  CLUSTER_OPERATORS,
  type ClusterOperatorStatus,
  isProbe,
  type OperatorState,
  statusDifference,
} from './cluster-operator-status.ts';
import type { Condition } from './condition.ts';
import { inertiaOf, nextUnionChange, unionOfConditions } from './condition-union.ts';
import { silentLog } from './log.ts';

const START = '2026-01-01T00:00:00Z';
const degraded = (status: Condition['status'], lastTransitionTime = START): Condition => ({
  type: 'ADegraded',
  status,
  reason: 'Broken',
  message: 'it broke',
  lastTransitionTime,
});

function world(state: OperatorState | undefined, kube: Kube = new MemoryKube()) {
  const clock = new VirtualClock(START);
  const events = recordingEvents();
  const current = { state };
  const relatedObjects = [{ group: '', resource: 'namespaces', name: 'openshift-etcd' }];
  const reconcile = clusterOperatorReconcile({
    name: 'etcd',
    kube,
    policy: { inertia: inertiaOf(), relatedObjects },
    operator: async () => current.state,
  });
  const context = { signal: new AbortController().signal, clock, events, log: silentLog, enqueue: () => {} };
  return {
    clock,
    events,
    kube,
    current,
    pass: () => reconcile('key', context),
    read: async () => (await kube.get(CLUSTER_OPERATORS, { name: 'etcd' })).status ?? {},
    condition: async (type: string) =>
      (await kube.get(CLUSTER_OPERATORS, { name: 'etcd' })).status?.conditions?.find(c => c.type === type),
  };
}

const healthy: OperatorState = {
  conditions: [degraded('False'), { type: 'AAvailable', status: 'True' }],
  versions: { operator: '1' },
};

describe('ClusterOperator (spec 30, section 20)', () => {
  it('is created, filled, and then left alone', async () => {
    const { pass, read, events } = world(healthy);
    await pass();
    const status = await read();
    assert.deepEqual(status.versions, [{ name: 'operator', version: '1' }]);
    assert.equal(status.relatedObjects?.length, 1);
    assert.deepEqual(
      events.events.map(event => event.reason),
      ['OperatorVersionChanged', 'OperatorStatusChanged'],
    );
    assert.equal(events.events[0]?.message, 'clusteroperator/etcd version "operator" changed from "" to "1"');
    assert.match(
      events.events[1]?.message ?? '',
      /^Status for clusteroperator\/etcd changed: Degraded set to False \("ADegraded: it broke"\),Progressing set to Unknown \(""\),/,
    );
    await pass();
    assert.equal(events.events.length, 2);
    assert.deepEqual(await read(), status);
  });

  it('a failure counts after two minutes, and the pass says when (20.6, 20.7)', async () => {
    const { pass, clock, condition } = world({ ...healthy, conditions: [degraded('True')] });
    const result = await pass();
    assert.deepEqual(result, { againAt: new Date(Date.parse(START) + minutes(2) + 1) });
    const young = await condition('Degraded');
    assert.deepEqual([young?.status, young?.message], ['False', 'ADegraded: it broke']);
    await clock.advance(minutes(2));
    await pass();
    assert.equal((await condition('Degraded'))?.status, 'False');
    await clock.advance(1);
    assert.deepEqual(await pass(), { againAt: undefined });
    const elder = await condition('Degraded');
    assert.deepEqual(
      [elder?.status, elder?.reason, elder?.lastTransitionTime],
      ['True', 'A_Broken', '2026-01-01T00:02:00Z'],
    );
  });

  it('unmanaged: unknown, and nothing else changes (20.3)', async () => {
    const { pass, read, current, events } = world(healthy);
    await pass();
    current.state = { ...healthy, managementState: 'Unmanaged', versions: { operator: '2' } };
    await pass();
    const status = await read();
    assert.ok(
      status.conditions?.every(condition => condition.status === 'Unknown' && condition.reason === 'Unmanaged'),
    );
    assert.deepEqual(status.versions, [{ name: 'operator', version: '1' }]);
    assert.match(events.events.at(-1)?.message ?? '', /^Status for operator etcd changed: /);
  });

  it('without the operator resource it goes away (20.1)', async () => {
    const { pass, current, kube, events } = world(healthy);
    await pass();
    current.state = undefined;
    await pass();
    await pass();
    await assert.rejects(kube.get(CLUSTER_OPERATORS, { name: 'etcd' }), { code: 404 });
    assert.deepEqual(
      events.events.slice(-2).map(({ type, reason }) => [type, reason]),
      [
        ['Warning', 'StatusNotFound'],
        ['Warning', 'StatusNotFound'],
      ],
    );
  });

  const failing = (over: Partial<Record<'get' | 'create', KubeError>>): Kube => {
    const kube = new MemoryKube();
    for (const [verb, error] of Object.entries(over)) {
      kube[verb as 'get' | 'create'] = async () => {
        throw error;
      };
    }
    return kube;
  };

  it('an API that does not know ClusterOperators is waited for (20.2)', async () => {
    const { pass, events } = world(
      healthy,
      failing({ create: new KubeError(404, 'NotFound', 'the server could not find the requested resource') }),
    );
    assert.deepEqual(await pass(), { retry: true });
    assert.deepEqual(events.events, []);
  });

  it('other failures are told (20.2)', async () => {
    const unreadable = world(healthy, failing({ get: new KubeError(500, 'InternalError', 'boom') }));
    await assert.rejects(unreadable.pass(), { message: 'boom' });
    assert.equal(unreadable.events.events[0]?.reason, 'StatusFailed');
    const uncreatable = world(healthy, failing({ create: new KubeError(403, 'Forbidden', 'no') }));
    await assert.rejects(uncreatable.pass(), { message: 'no' });
    assert.equal(uncreatable.events.events[0]?.reason, 'StatusCreateFailed');
  });

  it('a conflict is tried again against the newest state', async () => {
    const kube = new MemoryKube();
    const { pass, read, clock, current } = world(healthy, kube);
    await pass();
    current.state = { ...healthy, versions: { operator: '2' } };
    const update = kube.updateStatus.bind(kube);
    let conflicts = 0;
    kube.updateStatus = async (resource, object) => {
      conflicts += 1;
      if (conflicts === 1) throw new KubeError(409, 'Conflict', 'changed');
      return update(resource, object);
    };
    const done = pass();
    await clock.advance(seconds(1));
    await done;
    assert.deepEqual((await read()).versions, [{ name: 'operator', version: '2' }]);
  });
});

describe('union of conditions (20.6)', () => {
  const now = new Date(START);
  it('all is well', () => {
    assert.deepEqual(unionOfConditions('Degraded', 'False', [{ type: 'ADegraded', status: 'False' }], now), {
      type: 'Degraded',
      status: 'False',
      reason: 'AsExpected',
      message: 'All is well',
    });
  });

  it('a condition of the bare type yields a leading underscore', () => {
    assert.equal(
      unionOfConditions('Degraded', 'False', [{ type: 'Degraded', status: 'True', reason: 'R' }], now).reason,
      '_R',
    );
  });

  it('exactly at the inertia is still young; without a time it is old', () => {
    const inertia = inertiaOf([{ match: /^B/, ms: seconds(10) }]);
    const at = (type: string, ago: number): Condition => ({
      type,
      status: 'True',
      lastTransitionTime: new Date(now.getTime() - ago).toISOString(),
    });
    const status = (condition: Condition) => unionOfConditions('Degraded', 'False', [condition], now, inertia).status;
    assert.deepEqual([status(at('ADegraded', minutes(2))), status(at('ADegraded', minutes(2) + 1))], ['False', 'True']);
    assert.deepEqual([status(at('BDegraded', seconds(10))), status(at('BDegraded', seconds(11)))], ['False', 'True']);
    assert.equal(status({ type: 'ADegraded', status: 'True' }), 'True');
    assert.deepEqual(
      nextUnionChange('Degraded', 'False', [at('ADegraded', 0), at('BDegraded', 0)], now, inertia),
      new Date(now.getTime() + seconds(10) + 1),
    );
    assert.equal(nextUnionChange('Degraded', 'False', [at('ADegraded', minutes(3))], now, inertia), undefined);
  });
});

describe('what changed, in words (20.11, 20.12)', () => {
  const status = (conditions: Condition[], over: object = {}): ClusterOperatorStatus => ({ conditions, ...over });
  const cases: [rule: string, before: ClusterOperatorStatus, after: ClusterOperatorStatus, text: string][] = [
    [
      'message',
      status([{ type: 'A', status: 'True', message: 'x' }]),
      status([{ type: 'A', status: 'True', message: 'y"' }]),
      'A message changed from "x" to "y\\""',
    ],
    [
      'messages are compared and quoted as they are',
      status([{ type: 'A', status: 'True', message: '\ufeffx\u0001' }]),
      status([{ type: 'A', status: 'True', message: 'x\u200b' }]),
      'A message changed from "\\ufeffx\\x01" to "x\\u200b"',
    ],
    [
      'a reason alone',
      status([{ type: 'A', status: 'True', reason: 'Old', message: 'x' }]),
      status([{ type: 'A', status: 'True', reason: 'New', message: 'x' }]),
      'A reason changed from "Old" to "New"',
    ],
    [
      'a reason that changes with its message is not told',
      status([{ type: 'A', status: 'True', reason: 'Old', message: 'x' }]),
      status([{ type: 'A', status: 'True', reason: 'New', message: 'y' }]),
      'A message changed from "x" to "y"',
    ],
    ['removed', status([{ type: 'A', status: 'True' }]), status([]), 'A was removed'],
    [
      'versions',
      status([], { versions: [] }),
      status([], { versions: [{ name: 'a', version: '1' }] }),
      'status.versions changed from [] to [{"name":"a","version":"1"}]',
    ],
  ];
  for (const [rule, before, after, text] of cases) {
    it(rule, () => {
      assert.equal(statusDifference(before, after), text);
    });
  }

  it('no mark, no probe', () => {
    assert.equal(
      isProbe(
        status([{ type: 'Available', status: 'True', message: 'x' }]),
        status([{ type: 'Available', status: 'True', message: 'x' }]),
      ),
      false,
    );
  });
});

it('versions are remembered, and only changes are told', () => {
  let changes = 0;
  const recorder = new VersionRecorder(() => {
    changes += 1;
  });
  recorder.record('operator', '1');
  recorder.record('operator', '1');
  recorder.record('operator', '2');
  assert.deepEqual([recorder.versions, changes], [{ operator: '2' }, 2]);
});
