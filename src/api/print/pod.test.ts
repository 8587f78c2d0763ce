import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Pod, PodStatus } from 'kubernetes-types/core/v1.d.ts';
import { podPrinter } from './pod.ts';

const now = new Date('2026-06-01T12:00:00Z');
const metadata = { name: 'x', namespace: 'n', creationTimestamp: '2026-06-01T11:00:00Z' };

describe('pods', () => {
  const running = { running: { startedAt: '2026-06-01T11:00:00Z' } };
  const container = (name: string, status: object) => ({
    name,
    image: '',
    imageID: '',
    ready: false,
    restartCount: 0,
    ...status,
  });
  const spec = { containers: [{ name: 'a' }, { name: 'b' }] };
  const cases: [rule: string, pod: Partial<Pod>, ready: string, status: string, restarts: string][] = [
    ['pending', { spec, status: { phase: 'Pending' } }, '0/2', 'Pending', '0'],
    ['reason of the pod', { spec, status: { phase: 'Failed', reason: 'Evicted' } }, '0/2', 'Evicted', '0'],
    [
      'scheduling gated',
      {
        spec,
        status: {
          phase: 'Pending',
          conditions: [{ type: 'PodScheduled', status: 'False', reason: 'SchedulingGated' }],
        },
      },
      '0/2',
      'SchedulingGated',
      '0',
    ],
    [
      'running, one restarted',
      {
        spec,
        status: {
          phase: 'Running',
          containerStatuses: [
            container('a', {
              ready: true,
              state: running,
              restartCount: 2,
              lastState: { terminated: { exitCode: 1, finishedAt: '2026-06-01T11:55:00Z' } },
            }),
            container('b', { ready: true, state: running }),
          ],
        },
      },
      '2/2',
      'Running',
      '2 (5m ago)',
    ],
    [
      'crash loop of the first',
      {
        spec,
        status: {
          phase: 'Running',
          containerStatuses: [
            container('a', { state: { waiting: { reason: 'CrashLoopBackOff' } } }),
            container('b', { ready: true, state: running }),
          ],
        },
      },
      '1/2',
      'CrashLoopBackOff',
      '0',
    ],
    [
      'exit code',
      {
        spec,
        status: { phase: 'Failed', containerStatuses: [container('a', { state: { terminated: { exitCode: 3 } } })] },
      },
      '0/2',
      'ExitCode:3',
      '0',
    ],
    [
      'signal',
      {
        spec,
        status: {
          phase: 'Failed',
          containerStatuses: [container('a', { state: { terminated: { exitCode: 137, signal: 9 } } })],
        },
      },
      '0/2',
      'Signal:9',
      '0',
    ],
    [
      'completed beside running and ready',
      {
        spec,
        status: {
          phase: 'Running',
          conditions: [{ type: 'Ready', status: 'True' }],
          containerStatuses: [
            container('a', { state: { terminated: { exitCode: 0, reason: 'Completed' } } }),
            container('b', { ready: true, state: running }),
          ],
        },
      },
      '1/2',
      'Running',
      '0',
    ],
    [
      'completed beside running, not ready',
      {
        spec,
        status: {
          phase: 'Running',
          containerStatuses: [
            container('a', { state: { terminated: { exitCode: 0, reason: 'Completed' } } }),
            container('b', { ready: true, state: running }),
          ],
        },
      },
      '1/2',
      'NotReady',
      '0',
    ],
    [
      'second init container',
      {
        spec: { ...spec, initContainers: [{ name: 'i' }, { name: 'j' }] },
        status: {
          phase: 'Pending',
          initContainerStatuses: [
            container('i', { state: { terminated: { exitCode: 0 } } }),
            container('j', { state: { waiting: { reason: 'PodInitializing' } }, restartCount: 1 }),
          ],
        },
      },
      '0/2',
      'Init:1/2',
      '1',
    ],
    [
      'failing init container',
      {
        spec: { ...spec, initContainers: [{ name: 'i' }] },
        status: {
          phase: 'Pending',
          initContainerStatuses: [container('i', { state: { terminated: { exitCode: 1, reason: 'Error' } } })],
        },
      },
      '0/2',
      'Init:Error',
      '0',
    ],
    [
      'sidecar counts',
      {
        spec: { ...spec, initContainers: [{ name: 's', restartPolicy: 'Always' }] },
        status: {
          phase: 'Running',
          initContainerStatuses: [container('s', { ready: true, started: true, state: running, restartCount: 1 })],
          containerStatuses: [
            container('a', { ready: true, state: running }),
            container('b', { ready: true, state: running }),
          ],
        },
      },
      '3/3',
      'Running',
      '1',
    ],
    [
      'terminating',
      { metadata: { ...metadata, deletionTimestamp: '2026-06-01T11:59:00Z' }, spec, status: { phase: 'Running' } },
      '0/2',
      'Terminating',
      '0',
    ],
    [
      'lost node',
      {
        metadata: { ...metadata, deletionTimestamp: '2026-06-01T11:59:00Z' },
        spec,
        status: { phase: 'Running', reason: 'NodeLost' },
      },
      '0/2',
      'Unknown',
      '0',
    ],
  ];
  for (const [rule, pod, ready, status, restarts] of cases) {
    it(rule, () => {
      const cells = podPrinter.cells({ metadata, ...pod }, now);
      assert.deepEqual(cells.slice(0, 5), ['x', ready, status, restarts, '60m']);
    });
  }

  it('wide columns', () => {
    const status = {
      phase: 'Running',
      podIPs: [{ ip: '10.0.0.1' }],
      conditions: [{ type: 'gate', status: 'True' }],
    } as PodStatus;
    const pod: Pod = {
      metadata,
      spec: { ...spec, nodeName: 'n', readinessGates: [{ conditionType: 'gate' }, { conditionType: 'other' }] },
      status,
    };
    assert.deepEqual(podPrinter.cells(pod, now).slice(5), ['10.0.0.1', 'n', '<none>', '1/2']);
  });
});
