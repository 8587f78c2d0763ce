import type { FailureReason } from '../../../src/staticpod/node-status.ts';
import type { Random } from '../random.ts';

/** All static-pod inputs are of this moment. */
export const NOW = new Date('2026-06-01T12:00:00Z');

export interface NodeStatus {
  nodeName: string;
  currentRevision: number;
  targetRevision?: number;
  lastFailedRevision?: number;
  lastFailedTime?: string;
  lastFailedReason?: FailureReason;
  lastFailedCount?: number;
  lastFallbackCount?: number;
  lastFailedRevisionErrors?: string[];
}

/** Within the last twenty-five minutes. */
export const recently = (r: Random): string => text(new Date(NOW.getTime() - r.int(1500) * 1000));

const TEN_MINUTES_AGO = '2026-06-01T11:50:00Z';
const text = (time: Date): string => time.toISOString().replace('.000Z', 'Z');

export function nodeStatus(r: Random, index: number, inTransition = false): NodeStatus {
  const current = r.int(6);
  return {
    nodeName: `n${index}`,
    currentRevision: current,
    ...(inTransition ? { targetRevision: current + 1 + r.int(3) } : r.chance(0.2) && { targetRevision: r.int(8) }),
    ...(r.chance(0.35) && { lastFailedRevision: r.int(9) }),
    ...(r.chance(0.3) && { lastFailedTime: r.pick([recently(r), TEN_MINUTES_AGO]) }),
    ...(r.chance(0.3) && {
      lastFailedReason: r.pick<FailureReason>(['InstallerFailed', 'OperandFailed', 'OperandFailedFallback']),
    }),
    ...(r.chance(0.3) && { lastFailedCount: r.int(4) }),
    ...(r.chance(0.2) && { lastFallbackCount: r.int(3) }),
    ...(r.chance(0.3) && { lastFailedRevisionErrors: r.some(['e1', 'e2']) }),
  };
}

export const REVISIONS = ['1', '2', '3', '4', '5', '6', '7'] as const;
export const ODD_REVISIONS = ['x', '', '-1', '+3', '03', '99999999999999999999', '1.5', ' 2'] as const;

const MONITOR = 'startup-monitor.static-pods.openshift.io';

/** The mirror pod of an operand, as the kubelet may have left it. */
export function operandPod(r: Random, node: string, revisions: readonly string[]) {
  const terminated = () => ({ ...(r.chance(0.5) && { terminated: { exitCode: 1, finishedAt: recently(r) } }) });
  const condition = (type: string, statuses: readonly string[]) => ({
    type,
    status: r.pick(statuses),
    lastTransitionTime: recently(r),
  });
  return {
    metadata: {
      name: `op-${node}`,
      namespace: 'ns',
      creationTimestamp: r.pick([recently(r), TEN_MINUTES_AGO]),
      labels: { ...(r.chance(0.97) && { revision: r.pick(revisions) }) },
      annotations: {
        ...(r.chance(0.12) && {
          [`${MONITOR}/fallback-for-revision`]: r.pick(revisions),
          ...(r.chance(0.7) && { [`${MONITOR}/fallback-reason`]: 'R' }),
          ...(r.chance(0.7) && { [`${MONITOR}/fallback-message`]: 'M' }),
        }),
      },
    },
    status: {
      phase: r.pick(['Running', 'Running', 'Running', 'Pending', 'Failed', 'Succeeded', 'Unknown', '']),
      ...(r.chance(0.5) && { message: r.pick(['boom', '']) }),
      ...(r.chance(0.5) && { startTime: recently(r) }),
      conditions: r.some(
        [condition('Initialized', ['True']), condition('Ready', ['True', 'True', 'False', 'Unknown'])],
        0.8,
      ),
      initContainerStatuses: r.list(1, () => ({ name: 'i', lastState: terminated() })),
      containerStatuses: r.list(2, () => ({ name: 'c', lastState: terminated() })),
    },
  };
}

export type OperandPod = ReturnType<typeof operandPod>;
