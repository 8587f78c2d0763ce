import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { type NodeStatus, readNodeStatus } from '../node-status.ts';
import { type Operand, timeOf } from './operand.ts';
import { installerPodName } from './pod-name.ts';

export interface TransitionState {
  /** A node on its way to another revision. */
  readonly node: NodeStatus;
  readonly published: number;
  readonly installerPod: Pod | undefined;
  readonly operand: Operand | undefined;
  /** Somebody else promotes what is ready and takes back what is not (spec 30, section 17). */
  readonly hasStartupMonitor: boolean;
  readonly now: Date;
}

export interface Transition {
  readonly node: NodeStatus;
  readonly reason: string;
  readonly installerFailed: boolean;
  /** What the installer's containers said when they failed. */
  readonly installerErrors: readonly string[];
  /** The installer of an outdated revision is to be stopped. */
  readonly deletesInstaller: boolean;
}

/** What becomes of a node in transition (spec 30, 9.6.5). */
export function nextNodeState(state: TransitionState): Transition {
  const { node, published, installerPod } = state;
  const phase = installerPod?.status?.phase ?? 'Pending';
  if (published > node.targetRevision) {
    const isRunning = installerPod !== undefined && phase !== 'Succeeded' && phase !== 'Failed';
    const next = { ...node, targetRevision: published };
    return { ...same(next, 'new revision pending'), deletesInstaller: isRunning };
  }
  if (installerPod === undefined) {
    return { ...same(node, `pod ${installerPodName(node)} disappeared`), installerFailed: true };
  }
  if (phase === 'Succeeded') return afterInstallation(state);
  if (phase === 'Failed') return installerFailed(node, installerPod, state.now);
  const message = installerPod.status?.message ?? '';
  const detail = message === '' ? `, but in ${phase} phase` : `: ${message}`;
  return same(node, `installer is not finished${detail}`);
}

function afterInstallation({ node, operand, hasStartupMonitor }: TransitionState): Transition {
  if (operand === undefined) return same(node, 'static pod is pending');
  if (operand.revision !== String(node.targetRevision)) {
    const found = operand.revision === '' ? '' : `, found ${operand.revision}`;
    return same(node, `waiting for static pod of revision ${node.targetRevision}${found}`);
  }
  switch (operand.state) {
    case 'failed':
      return operandFailed(node, operand, hasStartupMonitor);
    case 'ready':
      if (hasStartupMonitor) return same(node, operand.reason);
      return same({ ...node, currentRevision: node.targetRevision, targetRevision: 0 }, operand.reason);
    case 'fallback':
      return same(fellBack(node, operand), operand.reason);
    default:
      return same(node, 'static pod is pending');
  }
}

function operandFailed(node: NodeStatus, operand: Operand, hasStartupMonitor: boolean): Transition {
  const reason = `operand pod failed: ${operand.errors.join('\n')}`;
  const failed: NodeStatus = {
    ...withoutOlderFailure(node),
    lastFailedRevision: node.targetRevision,
    lastFailedReason: 'OperandFailed',
    lastFailedRevisionErrors: operand.errors,
  };
  if (hasStartupMonitor) {
    const errors = [...operand.errors, 'falling back to last-known-good revision, might take up to 5 min'];
    return same({ ...failed, lastFailedRevisionErrors: errors }, reason);
  }
  const counted = isRecorded(failed, operand.since)
    ? failed
    : { ...failed, lastFailedTime: formatRfc3339(operand.since), lastFailedCount: failed.lastFailedCount + 1 };
  return same({ ...counted, targetRevision: 0 }, reason);
}

/** One fallback is counted once: it is known by the time its pod was made. */
function fellBack(node: NodeStatus, operand: Operand): NodeStatus {
  const before = withoutOlderFailure(node);
  if (isRecorded(before, operand.since)) return before;
  return {
    ...before,
    lastFailedTime: formatRfc3339(operand.since),
    lastFailedRevision: node.targetRevision,
    lastFailedReason: 'OperandFailedFallback',
    lastFailedRevisionErrors: operand.errors,
    lastFallbackCount: before.lastFallbackCount + 1,
  };
}

function installerFailed(node: NodeStatus, pod: Pod, now: Date): Transition {
  const installerErrors = (pod.status?.containerStatuses ?? [])
    .map(({ name, state }) => ({ name, message: state?.terminated?.message ?? '' }))
    .filter(({ message }) => message !== '')
    .map(({ name, message }) => `${name}: ${message}`);
  const { namespace, name } = pod.metadata ?? {};
  const nothing = `no detailed termination message, see \`oc get -oyaml -n "${namespace}" pods "${name}"\``;
  const errors = installerErrors.length === 0 ? [nothing] : installerErrors;
  const before = withoutOlderFailure(node);
  const next: NodeStatus = {
    ...before,
    lastFailedRevision: node.targetRevision,
    lastFailedTime: formatRfc3339(now),
    lastFailedReason: 'InstallerFailed',
    lastFailedCount: before.lastFailedCount + 1,
    lastFailedRevisionErrors: errors,
  };
  return { ...same(next, `installer pod failed: ${errors.join('\n')}`), installerFailed: true, installerErrors };
}

/** Counters are about one revision: those of another one are dropped when the next failure is recorded. */
function withoutOlderFailure(node: NodeStatus): NodeStatus {
  const { nodeName, nodeUID, currentRevision, targetRevision, lastFailedRevision } = node;
  if (targetRevision !== 0 && targetRevision === lastFailedRevision) return node;
  return readNodeStatus({ nodeName, nodeUID, currentRevision, targetRevision });
}

function isRecorded({ lastFailedTime }: NodeStatus, time: Date): boolean {
  return timeOf(lastFailedTime) !== undefined && lastFailedTime === formatRfc3339(time);
}

function same(node: NodeStatus, reason: string): Transition {
  return { node, reason, installerFailed: false, installerErrors: [], deletesInstaller: false };
}
