import type { ContainerState, ContainerStatus, Pod } from 'kubernetes-types/core/v1.d.ts';
import { ageOf } from './age.ts';
import { AGE, NAME, printerOf, text, wideText } from './column.ts';
import type { RowCondition } from './table.ts';

export const podPrinter = printerOf<Pod>(
  [
    NAME,
    text('Ready', 'How many of the containers are ready.', pod => {
      const { ready, total } = summaryOf(pod);
      return `${ready}/${total}`;
    }),
    text('Status', 'What the pod is doing, or what keeps it from running.', pod => summaryOf(pod).status),
    text('Restarts', 'How often containers were restarted, and how long ago the last time.', restartsText),
    AGE,
    wideText('IP', 'The address of the pod.', pod => pod.status?.podIPs?.[0]?.ip || pod.status?.podIP || '<none>'),
    wideText('Node', 'The node the pod is on.', pod => pod.spec?.nodeName || '<none>'),
    wideText('Nominated Node', 'The node where room is being made.', pod => pod.status?.nominatedNodeName || '<none>'),
    wideText('Readiness Gates', 'How many of the extra conditions for readiness hold.', readinessGates),
  ],
  completion,
);

interface PodSummary {
  readonly ready: number;
  readonly total: number;
  readonly status: string;
  readonly restarts: number;
  readonly lastRestart: string | undefined;
}

/** What `kubectl get pods` says about a pod, worked out as the API server does it. */
function summaryOf(pod: Pod): PodSummary {
  const init = initSummary(pod);
  const total = (pod.spec?.containers.length ?? 0) + (pod.spec?.initContainers ?? []).filter(isSidecar).length;
  const gated = pod.status?.conditions?.some(
    ({ type, reason }) => type === 'PodScheduled' && reason === 'SchedulingGated',
  );
  const initial = gated ? 'SchedulingGated' : pod.status?.reason || pod.status?.phase || '';
  const initialized = pod.status?.conditions?.some(({ type, status }) => type === 'Initialized' && status === 'True');
  if (init.waiting !== undefined && !initialized) {
    const all = restartsOf(pod.status?.initContainerStatuses ?? []);
    return { ready: init.readySidecars, total, status: deletionStatus(pod) ?? init.waiting, ...all };
  }
  const statuses = pod.status?.containerStatuses ?? [];
  const sidecars = new Set((pod.spec?.initContainers ?? []).filter(isSidecar).map(container => container.name));
  const counted = [...(pod.status?.initContainerStatuses ?? []).filter(({ name }) => sidecars.has(name)), ...statuses];
  return {
    ready: init.readySidecars + statuses.filter(isReady).length,
    total,
    status: deletionStatus(pod) ?? runningStatus(pod, init.waiting ?? initial),
    ...restartsOf(counted),
  };
}

/** The first init container that is not done says what the pod waits for. */
function initSummary(pod: Pod): { waiting: string | undefined; readySidecars: number } {
  const containers = new Map((pod.spec?.initContainers ?? []).map(container => [container.name, container]));
  let readySidecars = 0;
  for (const [index, status] of (pod.status?.initContainerStatuses ?? []).entries()) {
    const { terminated, waiting } = status.state ?? {};
    const container = containers.get(status.name);
    if (terminated?.exitCode === 0) continue;
    if (container !== undefined && isSidecar(container) && status.started === true) {
      if (status.ready) readySidecars += 1;
      continue;
    }
    if (terminated !== undefined) return { waiting: `Init:${terminationReason(terminated)}`, readySidecars };
    const reason = waiting?.reason ?? '';
    const waitsFor = reason === '' || reason === 'PodInitializing' ? `${index}/${containers.size}` : reason;
    return { waiting: `Init:${waitsFor}`, readySidecars };
  }
  return { waiting: undefined, readySidecars };
}

/** The first container that is not running gives the reason; one still running outweighs others that completed. */
function runningStatus(pod: Pod, initial: string): string {
  let status = initial;
  let failure = '';
  for (const { state } of [...(pod.status?.containerStatuses ?? [])].reverse()) {
    if (state?.waiting?.reason) status = state.waiting.reason;
    else if (state?.terminated !== undefined) {
      status = terminationReason(state.terminated);
      if (state.terminated.exitCode !== 0) failure = status;
    }
  }
  if (status !== 'Completed') return status;
  const running = (pod.status?.containerStatuses ?? []).some(isReady);
  const ready = pod.status?.conditions?.some(condition => condition.type === 'Ready' && condition.status === 'True');
  if (running && ready) return 'Running';
  if (failure !== '') return failure;
  return running ? 'NotReady' : status;
}

function deletionStatus(pod: Pod): string | undefined {
  if (pod.metadata?.deletionTimestamp === undefined) return undefined;
  if (pod.status?.reason === 'NodeLost') return 'Unknown';
  return isOver(pod) ? undefined : 'Terminating';
}

function isOver(pod: Pod): boolean {
  return pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
}

function isReady({ ready, state }: ContainerStatus): boolean {
  return ready && state?.running !== undefined;
}

/** An init container that is restarted keeps running beside the others. */
function isSidecar(container: { restartPolicy?: string }): boolean {
  return container.restartPolicy === 'Always';
}

function terminationReason({ reason, signal, exitCode }: NonNullable<ContainerState['terminated']>): string {
  if (reason) return reason;
  return signal ? `Signal:${signal}` : `ExitCode:${exitCode}`;
}

function restartsOf(statuses: readonly ContainerStatus[]): Pick<PodSummary, 'restarts' | 'lastRestart'> {
  const times = statuses.flatMap(status => status.lastState?.terminated?.finishedAt ?? []);
  return {
    restarts: statuses.reduce((sum, status) => sum + status.restartCount, 0),
    lastRestart: times.sort().at(-1),
  };
}

function restartsText(pod: Pod, now: Date): string {
  const { restarts, lastRestart } = summaryOf(pod);
  if (restarts === 0 || lastRestart === undefined) return String(restarts);
  return `${restarts} (${ageOf(lastRestart, now)} ago)`;
}

function readinessGates(pod: Pod): string {
  const gates = pod.spec?.readinessGates ?? [];
  if (gates.length === 0) return '<none>';
  const holds = (type: string) => pod.status?.conditions?.find(condition => condition.type === type)?.status === 'True';
  return `${gates.filter(gate => holds(gate.conditionType)).length}/${gates.length}`;
}

function completion(pod: Pod): readonly RowCondition[] {
  if (!isOver(pod)) return [];
  const succeeded = pod.status?.phase === 'Succeeded';
  const message = succeeded ? 'The pod has completed successfully.' : 'The pod failed.';
  return [{ type: 'Completed', status: 'True', reason: succeeded ? 'Succeeded' : 'Failed', message }];
}
