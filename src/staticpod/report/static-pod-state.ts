import type { Container, ContainerStatus, Pod, Probe } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import type { Condition } from '../../controller/condition.ts';
import { isManaged } from '../../controller/management-state.ts';
import type { Reconcile } from '../../controller/reconcile.ts';
import { seconds } from '../../kube/duration.ts';
import { PODS } from '../../kube/resource.ts';
import { condition } from '../condition.ts';
import { mirrorPodName, type StaticPodOperatorConfig } from '../config.ts';
import { timeOf } from '../installer/operand.ts';
import { goTime } from '../nodes.ts';
import { compareText, type Objects } from '../objects.ts';
import type { StaticPodOperator } from '../operator.ts';

export interface StaticPodStateOptions {
  readonly config: Pick<StaticPodOperatorConfig, 'operandName' | 'operandNamespace' | 'staticPodName' | 'versions'>;
  readonly operator: StaticPodOperator;
  readonly cached: Objects;
  readonly versions: { record(operand: string, version: string): void };
}

/** Says what is wrong with the operand's containers, and which version runs (spec 30, section 13). */
export function staticPodStateReconcile({ config, operator, cached, versions }: StaticPodStateOptions): Reconcile {
  return async (_key, { clock, events, signal }) => {
    const { spec = {}, status = {} } = await operator.read(signal);
    if (!isManaged(spec.managementState)) return undefined;
    const found: (Pod | { readonly error: unknown })[] = [];
    for (const { nodeName } of status.nodeStatuses ?? []) {
      const key = { namespace: config.operandNamespace, name: mirrorPodName(config, nodeName) };
      const pod = await cached.get(PODS, key).catch((error: unknown) => ({ error }));
      if (pod !== undefined) found.push(pod);
    }
    const report = describePods(found, clock.now());
    reportVersion(report.images, config, versions, events);
    await operator.setConditions([report.condition], signal);
    return { againAt: report.changesAt };
  };
}

export interface PodReport {
  readonly condition: Condition;
  /** What the first containers run, each once; undefined when there are no pods. */
  readonly images: readonly string[] | undefined;
  /** When a container that is starting will have taken too long. */
  readonly changesAt: Date | undefined;
}

export function describePods(found: readonly (Pod | { readonly error: unknown })[], now: Date): PodReport {
  const findings: Finding[] = [];
  const images = new Set<string>();
  for (const pod of found) {
    if ('error' in pod) {
      findings.push({ text: errorText(pod.error), fails: true });
      continue;
    }
    const image = pod.spec?.containers[0]?.image ?? '';
    if (image !== '') images.add(image);
    for (const container of pod.status?.containerStatuses ?? []) {
      // By name: statuses are sorted, containers are not (T12).
      const spec = pod.spec?.containers.find(({ name }) => name === container.name);
      findings.push(...describeContainer(pod.metadata?.name ?? '', container, spec, now));
    }
  }
  const texts = findings.filter(({ text }) => text !== undefined);
  const fails = findings.some(finding => finding.fails);
  const due = findings.map(({ dueAt }) => dueAt?.getTime()).filter(time => time !== undefined);
  return {
    condition: condition(
      'StaticPodsDegraded',
      fails ? 'True' : 'False',
      texts.length === 0 ? '' : 'Error',
      texts.map(({ text }) => text).join('\n'),
    ),
    images: found.some(pod => !('error' in pod)) ? [...images].sort(compareText) : undefined,
    changesAt: due.length === 0 ? undefined : new Date(Math.min(...due)),
  };
}

interface Finding {
  readonly text?: string;
  readonly fails?: boolean;
  readonly dueAt?: Date;
}

function describeContainer(
  podName: string,
  container: ContainerStatus,
  spec: Container | undefined,
  now: Date,
): Finding[] {
  const what = `pod/${podName} container "${container.name}"`;
  const { waiting, running, terminated } = container.state ?? {};
  if (waiting !== undefined) {
    if (waiting.reason === 'PodInitializing') return [];
    const text = `${what} is waiting: ${waiting.reason ?? ''}: ${waiting.message ?? ''}`;
    return [{ text, fails: true }, ...lastWords(what, container)];
  }
  if (terminated !== undefined) {
    const text = `${what} is terminated: ${terminated.reason ?? ''}: ${terminated.message ?? ''}`;
    return [{ text, fails: terminated.exitCode !== 0 }];
  }
  if (running === undefined || container.ready) return [];
  const started = timeOf(running.startedAt) ?? new Date(0);
  const dueAt = new Date(started.getTime() + startupAllowanceMs(spec) + 1);
  if (now < dueAt) return [{ dueAt }];
  return [{ text: `${what} started at ${goTime(running.startedAt)} is still not ready` }];
}

/** Beyond 4.16: a container that keeps ending waits most of the time, and the waiting does not say what is wrong with it. */
function lastWords(what: string, { lastState }: ContainerStatus): Finding[] {
  const { exitCode, message = '' } = lastState?.terminated ?? {};
  return message === '' ? [] : [{ text: `${what} ended with exit code ${exitCode}: ${message.trim()}` }];
}

const WITHOUT_LIVENESS_MS = seconds(30);
const GRACE_MS = seconds(10);

/** How long a container may take to become ready (spec 30, 13.3). */
function startupAllowanceMs(spec: Container | undefined): number {
  const liveMs = spec?.livenessProbe === undefined ? WITHOUT_LIVENESS_MS : probeMs(spec.livenessProbe);
  return Math.max(liveMs, probeMs(spec?.readinessProbe)) + probeMs(spec?.startupProbe) + GRACE_MS;
}

/** The API has filled the defaults in; what is still absent is 0. */
function probeMs({ initialDelaySeconds = 0, failureThreshold = 0, periodSeconds = 0 }: Probe = {}): number {
  return seconds(initialDelaySeconds + failureThreshold * periodSeconds);
}

function reportVersion(
  images: readonly string[] | undefined,
  { operandName, versions }: StaticPodStateOptions['config'],
  recorder: StaticPodStateOptions['versions'],
  events: { event(type: 'Normal' | 'Warning', reason: string, message: string): void },
): void {
  if (images === undefined) return;
  if (images.length === 0) events.event('Warning', 'MissingVersion', 'no image found for operand pod');
  else if (images.length > 1) {
    const message = `multiple versions found, probably in transition: ${images.join(',')}`;
    events.event('Normal', 'MultipleVersions', message);
  } else if (versions !== undefined && images[0] === versions.operandImage) {
    recorder.record(operandName, versions.operand);
    recorder.record('operator', versions.operator);
  }
}
