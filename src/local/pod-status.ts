import type { ContainerState, ContainerStatus, Pod, PodCondition, PodStatus } from 'kubernetes-types/core/v1.d.ts';
import { formatRfc3339 } from '../kube/time.ts';

/** What is known of one container at a moment. */
export interface ContainerSnapshot {
  readonly name: string;
  readonly image: string;
  readonly state: ContainerState;
  readonly lastState?: ContainerState | undefined;
  readonly restartCount: number;
  /** Its startup probe has succeeded, or it has none. */
  readonly started: boolean;
  readonly ready: boolean;
  readonly id: string;
}

export interface PodFacts {
  readonly init: readonly ContainerSnapshot[];
  readonly main: readonly ContainerSnapshot[];
  readonly address: string;
  readonly startTime: Date;
  readonly now: Date;
  /** The pod has been stopped and will not be started again. */
  readonly isStopped: boolean;
  /** Something keeps the whole pod from running. */
  readonly trouble?: { readonly reason: string; readonly message: string } | undefined;
}

/** The status of a pod, made of what its containers do. Conditions that others wrote stay. */
export function podStatus(pod: Pod, facts: PodFacts, previous: PodStatus = {}): PodStatus {
  const { init, main, address, startTime, now, trouble } = facts;
  const phase = phaseOf(pod, facts);
  const isTerminal = phase === 'Succeeded' || phase === 'Failed';
  const unready = main.filter(({ ready }) => !ready).map(({ name }) => name);
  const isInitialized = init.every(({ state }) => state.terminated?.exitCode === 0);
  const notReady = isTerminal
    ? { reason: phase === 'Succeeded' ? 'PodCompleted' : 'PodFailed', message: '' }
    : { reason: 'ContainersNotReady', message: `containers with unready status: [${unready.join(' ')}]` };
  const isReady = !isTerminal && unready.length === 0 && main.length > 0;
  const wanted: [string, boolean, { reason: string; message: string }][] = [
    [
      'Initialized',
      isInitialized,
      { reason: 'ContainersNotInitialized', message: 'containers with incomplete status' },
    ],
    ['Ready', isReady, notReady],
    ['ContainersReady', isReady, notReady],
    ['PodScheduled', true, { reason: '', message: '' }],
  ];
  const others = (previous.conditions ?? []).filter(({ type }) => !wanted.some(([known]) => known === type));
  return {
    ...(previous.qosClass === undefined ? {} : { qosClass: previous.qosClass }),
    ...(trouble === undefined ? {} : trouble),
    phase,
    conditions: [...wanted.map(([type, isTrue, why]) => condition(type, isTrue, why, previous, now)), ...others],
    hostIP: address,
    podIP: address,
    podIPs: [{ ip: address }],
    startTime: formatRfc3339(startTime),
    ...(init.length === 0 ? {} : { initContainerStatuses: init.map(containerStatus) }),
    containerStatuses: [...main].sort((a, b) => (a.name < b.name ? -1 : 1)).map(containerStatus),
  };
}

/** Kubernetes' rule for the phase of a pod. */
export function phaseOf({ spec }: Pod, { init, main, isStopped }: PodFacts): NonNullable<PodStatus['phase']> {
  const policy = spec?.restartPolicy ?? 'Always';
  const hasFailed = ({ state }: ContainerSnapshot) => state.terminated !== undefined && state.terminated.exitCode !== 0;
  if (policy === 'Never' && init.some(hasFailed)) return 'Failed';
  const isOver = main.every(({ state }) => state.terminated !== undefined);
  if (isStopped && [...init, ...main].every(({ state }) => state.running === undefined)) {
    return isOver && !main.some(hasFailed) ? 'Succeeded' : 'Failed';
  }
  if (init.some(({ state }) => state.terminated?.exitCode !== 0)) return 'Pending';
  if (main.some(({ state, lastState }) => state.waiting !== undefined && lastState === undefined)) return 'Pending';
  if (!isOver || policy === 'Always') return 'Running';
  if (!main.some(hasFailed)) return 'Succeeded';
  return policy === 'Never' ? 'Failed' : 'Running';
}

function condition(
  type: string,
  isTrue: boolean,
  why: { reason: string; message: string },
  previous: PodStatus,
  now: Date,
): PodCondition {
  const status = isTrue ? 'True' : 'False';
  const before = previous.conditions?.find(other => other.type === type);
  const lastTransitionTime = before?.status === status ? before.lastTransitionTime : undefined;
  return {
    type,
    status,
    ...(isTrue || why.reason === '' ? {} : { reason: why.reason }),
    ...(isTrue || why.message === '' ? {} : { message: why.message }),
    lastTransitionTime: lastTransitionTime ?? formatRfc3339(now),
  };
}

function containerStatus(container: ContainerSnapshot): ContainerStatus {
  const { name, image, state, lastState = {}, restartCount, started, ready, id } = container;
  return { name, image, imageID: image, containerID: id, state, lastState, restartCount, started, ready };
}
