import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ContainerState, Pod } from 'kubernetes-types/core/v1.d.ts';
import { type ContainerSnapshot, phaseOf, podStatus } from './pod-status.ts';
import { isRestarted, restartPauseMs, restartsInARow } from './restart-policy.ts';

const WAITING: ContainerState = { waiting: { reason: 'ContainerCreating' } };
const RUNNING: ContainerState = { running: { startedAt: '2026-01-01T00:00:00Z' } };
const ended = (exitCode: number): ContainerState => ({ terminated: { exitCode } });
const container = (state: ContainerState, changes: Partial<ContainerSnapshot> = {}): ContainerSnapshot => ({
  name: 'c',
  image: 'i',
  state,
  restartCount: 0,
  started: true,
  ready: state.running !== undefined,
  id: '',
  ...changes,
});
const podWith = (restartPolicy: string): Pod => ({ spec: { restartPolicy, containers: [] } });
const facts = (main: ContainerSnapshot[], init: ContainerSnapshot[] = [], isStopped = false) => ({
  init,
  main,
  address: '127.0.0.1',
  startTime: new Date('2026-01-01T00:00:00Z'),
  now: new Date('2026-01-01T00:01:00Z'),
  isStopped,
});

test('the phase of a pod', () => {
  const cases: [string, string, ReturnType<typeof facts>, string][] = [
    ['nothing has started', 'Always', facts([container(WAITING)]), 'Pending'],
    ['initialising', 'Always', facts([container(WAITING)], [container(RUNNING)]), 'Pending'],
    [
      'an init container failed and will be tried again',
      'Always',
      facts([container(WAITING)], [container(ended(1))]),
      'Pending',
    ],
    ['an init container failed for good', 'Never', facts([container(WAITING)], [container(ended(1))]), 'Failed'],
    ['running', 'Always', facts([container(RUNNING)], [container(ended(0))]), 'Running'],
    ['one runs, one has ended', 'Never', facts([container(RUNNING), container(ended(1))]), 'Running'],
    ['waits for its next start', 'Always', facts([container(WAITING, { lastState: ended(1) })]), 'Running'],
    ['has ended and is started again', 'Always', facts([container(ended(0))]), 'Running'],
    ['has failed and is started again', 'OnFailure', facts([container(ended(1))]), 'Running'],
    ['all have ended well', 'OnFailure', facts([container(ended(0)), container(ended(0))]), 'Succeeded'],
    ['all have ended, one badly', 'Never', facts([container(ended(0)), container(ended(3))]), 'Failed'],
    ['stopped for good', 'Always', facts([container(ended(0))], [], true), 'Succeeded'],
    ['stopped for good with a failure', 'Always', facts([container(ended(143))], [], true), 'Failed'],
    ['being stopped', 'Always', facts([container(RUNNING)], [], true), 'Running'],
  ];
  for (const [name, policy, given, expected] of cases) assert.equal(phaseOf(podWith(policy), given), expected, name);
});

test('conditions change their time only when they change', () => {
  const first = podStatus(
    podWith('Always'),
    facts([container(RUNNING, { ready: false, name: 'b' }), container(RUNNING, { name: 'a' })]),
  );
  const ready = (status: typeof first) => status.conditions?.find(({ type }) => type === 'Ready');
  assert.deepEqual(ready(first), {
    type: 'Ready',
    status: 'False',
    reason: 'ContainersNotReady',
    message: 'containers with unready status: [b]',
    lastTransitionTime: '2026-01-01T00:01:00Z',
  });
  assert.deepEqual(
    first.containerStatuses?.map(({ name }) => name),
    ['a', 'b'],
    'sorted by name, as a kubelet does',
  );
  const later = { ...facts([container(RUNNING)]), now: new Date('2026-01-01T00:02:00Z') };
  const other = { type: 'DisruptionTarget', status: 'True' } as const;
  const second = podStatus(podWith('Always'), later, {
    ...first,
    qosClass: 'BestEffort',
    conditions: [...(first.conditions ?? []), other],
  });
  assert.equal(ready(second)?.lastTransitionTime, '2026-01-01T00:02:00Z');
  assert.equal(second.qosClass, 'BestEffort');
  assert.deepEqual(second.conditions?.at(-1), other, 'what others wrote stays');
  const third = podStatus(podWith('Always'), { ...later, now: new Date('2026-01-01T00:03:00Z') }, second);
  assert.deepEqual(third, second);
});

test('restarts: at once, then a second, doubled up to five minutes; a long run is a fresh start', () => {
  assert.deepEqual(
    [1, 2, 3, 4, 5, 10, 11, 100].map(restartPauseMs),
    [0, 1, 2, 4, 8, 256, 300, 300].map(s => s * 1000),
  );
  assert.equal(restartsInARow(5, 60_000), 6);
  assert.equal(restartsInARow(5, 600_000), 1);
  assert.deepEqual(
    [isRestarted('Always', 0), isRestarted('OnFailure', 0), isRestarted('OnFailure', 1), isRestarted('Never', 1)],
    [true, false, true, false],
  );
});
