import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Condition } from '../../controller/condition.ts';
import type { Reconcile } from '../../controller/reconcile.ts';
import { formatGoDuration, minutes } from '../../kube/duration.ts';
import { PODS } from '../../kube/resource.ts';
import { condition } from '../condition.ts';
import type { StaticPodOperatorConfig } from '../config.ts';
import { timeOf } from '../installer/operand.ts';
import { readNodeStatus, type StoredNodeStatus } from '../node-status.ts';
import { goTime } from '../nodes.ts';
import type { Objects } from '../objects.ts';
import type { StaticPodOperator } from '../operator.ts';

export interface StartupMonitorConditionOptions {
  readonly config: Pick<StaticPodOperatorConfig, 'operandNamespace' | 'staticPodName' | 'startupMonitor'>;
  readonly operator: StaticPodOperator;
  readonly cached: Objects;
}

/** Says whether the pod that watches a new revision has trouble of its own (spec 30, 17.3). */
export function startupMonitorConditionReconcile(options: StartupMonitorConditionOptions): Reconcile {
  const { config, operator, cached } = options;
  return async (_key, { clock, signal }) => {
    const { status = {} } = await operator.read(signal);
    const isEnabled = (await config.startupMonitor?.()) ?? false;
    const name = isEnabled ? monitorPodName(config.staticPodName, status.nodeStatuses ?? []) : undefined;
    const pod = name === undefined ? undefined : await cached.get(PODS, { namespace: config.operandNamespace, name });
    await operator.setConditions(startupMonitorConditions(pod, clock.now()), signal);
    const started = pod?.status?.phase === 'Pending' ? timeOf(pod.status.startTime) : undefined;
    const dueAt = started === undefined ? undefined : new Date(started.getTime() + PENDING_LIMIT_MS);
    return { againAt: dueAt !== undefined && dueAt > clock.now() ? dueAt : undefined };
  };
}

/** The monitor's pod on the node that is in transition. */
export function monitorPodName(staticPodName: string, nodes: readonly StoredNodeStatus[]): string | undefined {
  const node = nodes.map(readNodeStatus).find(({ targetRevision }) => targetRevision > 0);
  return node && `${staticPodName}-startup-monitor-${node.nodeName}`;
}

const PENDING_LIMIT_MS = minutes(2);
const MOST_RESTARTS = 2;

export function startupMonitorConditions(pod: Pod | undefined, now: Date): Condition[] {
  return [
    (pod && (pendingTooLong(pod, now) ?? failed(pod))) ?? condition('StartupMonitorPodDegraded', 'False'),
    (pod && restartsTooOften(pod)) ?? condition('StartupMonitorPodContainerExcessiveRestartsDegraded', 'False'),
  ];
}

function pendingTooLong({ metadata, status = {} }: Pod, now: Date): Condition | undefined {
  const started = timeOf(status.startTime);
  if (status.phase !== 'Pending' || started === undefined) return undefined;
  if (now.getTime() - started.getTime() < PENDING_LIMIT_MS) return undefined;
  const limit = formatGoDuration(PENDING_LIMIT_MS);
  const podMessage = status.message || 'unknown';
  let reason = status.reason || 'Unknown';
  let message = `the pod ${metadata?.name} has been in Pending phase for more than max tolerated time (${limit}) due to ${podMessage}`;
  const container = status.containerStatuses?.find(({ state }) => state?.waiting !== undefined);
  const waiting = container?.state?.waiting;
  if (waiting?.reason) reason = waiting.reason;
  if (waiting?.message) {
    const line = `at least one container ${container?.name} is waiting since ${goTime(status.startTime)} due to ${waiting.message}`;
    message = podMessage === 'unknown' ? line : `${message}\n${line}`;
  }
  return condition('StartupMonitorPodDegraded', 'True', reason, message);
}

function failed({ metadata, status = {} }: Pod): Condition | undefined {
  if (status.phase !== 'Failed') return undefined;
  const container = status.containerStatuses?.find(({ state }) => (state?.terminated?.exitCode ?? 0) !== 0);
  const terminated = container?.state?.terminated;
  if (terminated === undefined) return condition('StartupMonitorPodDegraded', 'True', 'Unknown', 'unknown');
  const what = `at least one container ${container?.name} in ${metadata?.name} pod exited with ${terminated.exitCode}`;
  const message = `${what} (expected nonzero exit code), due to ${terminated.message || 'unknown'}`;
  return condition('StartupMonitorPodDegraded', 'True', terminated.reason || 'Unknown', message);
}

function restartsTooOften({ metadata, status = {} }: Pod): Condition | undefined {
  const container = status.containerStatuses?.find(({ restartCount }) => restartCount >= MOST_RESTARTS);
  if (container === undefined) return undefined;
  const what = `at least one container ${container.name} in ${metadata?.name} pod has restarted ${container.restartCount} times`;
  const type = 'StartupMonitorPodContainerExcessiveRestartsDegraded';
  return condition(type, 'True', 'ExcessiveRestarts', `${what}, max allowed is ${MOST_RESTARTS}`);
}
