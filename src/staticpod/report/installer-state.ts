import type { Event, Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Condition } from '../../controller/condition.ts';
import type { Reconcile } from '../../controller/reconcile.ts';
import { minutes } from '../../kube/duration.ts';
import { goQuote } from '../../kube/go-quote.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { EVENTS, PODS } from '../../kube/resource.ts';
import { condition } from '../condition.ts';
import type { StaticPodOperatorConfig } from '../config.ts';
import { timeOf } from '../installer/operand.ts';
import { INSTALLER_LABELS, revisionOfInstallerPod } from '../installer/pod-name.ts';
import { goTime } from '../nodes.ts';
import type { Objects } from '../objects.ts';
import type { StaticPodOperator } from '../operator.ts';
import { parseRevision } from '../revision/number.ts';

export interface InstallerStateOptions {
  readonly config: Pick<StaticPodOperatorConfig, 'operandNamespace'>;
  readonly operator: StaticPodOperator;
  readonly kube: Kube;
  readonly cached: Objects;
}

/** So long an installer may be waiting for its node. */
const PENDING_LIMIT_MS = minutes(5);

/** Says why installer pods do not get going (spec 30, section 15). */
export function installerStateReconcile({ config, operator, kube, cached }: InstallerStateOptions): Reconcile {
  let told = new Set<string>();
  return async (_key, { clock, events, signal }) => {
    const namespace = config.operandNamespace;
    const pods = await cached.list(PODS, { namespace, labels: INSTALLER_LABELS });
    const { stuck, nextAt } = stuckInstallers(pods, clock.now());
    const podEvents = stuck.length === 0 ? [] : (await listAll(kube, EVENTS, { namespace, signal })).items;
    const conditions = installerConditions(stuck, podEvents);
    const news = conditions.filter(({ status }) => status === 'True');
    for (const { reason = '', message = '' } of news) {
      if (!told.has(message)) events.event('Warning', reason, message);
    }
    told = new Set(news.map(({ message = '' }) => message));
    await operator.setConditions(conditions, signal);
    return { againAt: nextAt };
  };
}

/** Pods that have been pending for too long and are not overtaken by a later one on their node. */
export function stuckInstallers(pods: readonly Pod[], now: Date): { stuck: Pod[]; nextAt: Date | undefined } {
  const highest = new Map<string, number>();
  for (const pod of pods.filter(pod => pendingSince(pod) === undefined)) {
    const [node, revision] = [nodeOf(pod), revisionOfInstallerPod(pod.metadata?.name ?? '')];
    highest.set(node, Math.max(highest.get(node) ?? 0, revision));
  }
  const pending = pods
    .map(pod => ({ pod, since: pendingSince(pod) }))
    .filter(({ pod, since }) => {
      return since !== undefined && revisionIfNumbered(pod) >= (highest.get(nodeOf(pod)) ?? 0);
    });
  const dueAt = (since: Date | undefined) => (since?.getTime() ?? 0) + PENDING_LIMIT_MS;
  const later = pending.map(({ since }) => dueAt(since)).filter(time => time > now.getTime());
  return {
    stuck: pending.filter(({ since }) => dueAt(since) <= now.getTime()).map(({ pod }) => pod),
    nextAt: later.length === 0 ? undefined : new Date(Math.min(...later)),
  };
}

/** A pod that carries the label of installers and no number does not hide what is wrong with the others. */
function revisionIfNumbered({ metadata }: Pod): number {
  return parseRevision(metadata?.name?.split('-')[1] ?? '') ?? 0;
}

/** For each of the three conditions the first pod that has that problem. */
export function installerConditions(stuck: readonly Pod[], podEvents: readonly Event[]): Condition[] {
  const candidates = [
    ...stuck.flatMap(pendingConditions),
    ...podEvents.flatMap(event => networkingConditions(event, stuck)),
  ];
  const types = [
    'InstallerPodPendingDegraded',
    'InstallerPodContainerWaitingDegraded',
    'InstallerPodNetworkingDegraded',
  ];
  return types.map(type => candidates.find(found => found.type === type) ?? condition(type, 'False'));
}

function pendingConditions(pod: Pod): Condition[] {
  const { reason = '', message = '', startTime, containerStatuses = [] } = pod.status ?? {};
  const [where, since] = [`Pod "${pod.metadata?.name}" on node "${nodeOf(pod)}"`, goTime(startTime)];
  const waiting = containerStatuses
    .map(({ name, state }) => ({ name, reason: state?.waiting?.reason ?? '', message: state?.waiting?.message ?? '' }))
    .filter(container => container.reason !== '')
    .map(container => {
      const why = container.message === '' ? container.reason : goQuote(container.message);
      const text = `${where} container "${container.name}" is waiting since ${since} because ${why}`;
      return condition('InstallerPodContainerWaitingDegraded', 'True', container.reason, text);
    });
  if (reason === '') return waiting;
  const text = `${where} is Pending since ${since} because ${message}`;
  return [condition('InstallerPodPendingDegraded', 'True', reason, text), ...waiting];
}

function networkingConditions(
  { involvedObject, reason = '', message = '' }: Event,
  stuck: readonly Pod[],
): Condition[] {
  if (involvedObject.kind !== 'Pod' || !message.includes('failed to create pod network')) return [];
  return stuck
    .filter(pod => pod.metadata?.name === involvedObject.name)
    .map(pod => {
      const text = `Pod "${pod.metadata?.name}" on node "${nodeOf(pod)}" observed degraded networking: ${message}`;
      return condition('InstallerPodNetworkingDegraded', 'True', reason, text);
    });
}

function pendingSince({ status }: Pod): Date | undefined {
  return status?.phase === 'Pending' ? timeOf(status.startTime) : undefined;
}

function nodeOf({ spec }: Pod): string {
  return spec?.nodeName ?? '';
}
