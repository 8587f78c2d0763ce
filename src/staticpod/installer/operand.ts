import type { Pod } from 'kubernetes-types/core/v1.d.ts';

/** The operand on one node, as its mirror pod shows it (spec 30, 9.2). */
export interface Operand {
  readonly state: OperandState;
  /** The revision the state is about: the label's, or after a fallback the one that failed. */
  readonly revision: string;
  readonly reason: string;
  readonly errors: readonly string[];
  /** When the state began; it stays the same as long as the state does. */
  readonly since: Date;
  /** When the pod became ready, if it is; also that of a fallback. */
  readonly readySince: Date | undefined;
}

export type OperandState = 'ready' | 'pending' | 'failed' | 'fallback';

/** Written by the startup monitor into the manifest it falls back to (spec 30, 17.1). */
export const FALLBACK_FOR_REVISION = 'startup-monitor.static-pods.openshift.io/fallback-for-revision';
export const FALLBACK_REASON = 'startup-monitor.static-pods.openshift.io/fallback-reason';
export const FALLBACK_MESSAGE = 'startup-monitor.static-pods.openshift.io/fallback-message';
export const REVISION_LABEL = 'revision';

export function operandOf(pod: Pod, now: Date): Operand {
  const { labels = {}, annotations = {}, creationTimestamp } = pod.metadata ?? {};
  const { phase = '', message = '', startTime } = pod.status ?? {};
  const label = labels[REVISION_LABEL] ?? '';
  const created = timeOf(creationTimestamp) ?? new Date(0);
  const ready = pod.status?.conditions?.find(({ type }) => type === 'Ready');
  const transition = timeOf(ready?.lastTransitionTime);
  const isUp = phase === 'Running' || phase === 'Succeeded';
  const readySince = isUp && ready?.status === 'True' ? (transition ?? created) : undefined;

  const failedRevision = annotations[FALLBACK_FOR_REVISION];
  if (failedRevision !== undefined) {
    const [why, what] = [annotations[FALLBACK_REASON] ?? 'Unknown', annotations[FALLBACK_MESSAGE] ?? 'unknown'];
    return {
      state: 'fallback',
      revision: failedRevision,
      reason: `static pod for ${failedRevision} did not launch and last-known-good revision ${label} has been started`,
      errors: [`fallback to last-known-good revision ${label} took place after: ${what} (${why})`],
      since: created,
      readySince,
    };
  }
  const common = { revision: label, errors: [], readySince };
  if (readySince !== undefined) return { ...common, state: 'ready', reason: 'static pod is ready', since: readySince };
  if (isUp) {
    const since = transition ?? timeOf(startTime) ?? created;
    return { ...common, state: 'pending', reason: 'static pod is not ready', since };
  }
  if (phase === 'Failed') {
    const since = lastTermination(pod, created);
    return { ...common, state: 'failed', reason: 'static pod has failed', errors: [message], since };
  }
  return { ...common, state: 'pending', reason: `static pod has unknown phase: ${phase}`, since: now };
}

function lastTermination({ status = {} }: Pod, created: Date): Date {
  const { initContainerStatuses = [], containerStatuses = [] } = status;
  const times = [...initContainerStatuses, ...containerStatuses]
    .map(({ lastState }) => timeOf(lastState?.terminated?.finishedAt))
    .filter(time => time !== undefined);
  return times.reduce((latest, time) => (time > latest ? time : latest), created);
}

/** A time of the API; undefined when there is none. */
export function timeOf(text: string | null | undefined): Date | undefined {
  const time = new Date(text ?? '');
  return Number.isNaN(time.getTime()) ? undefined : time;
}
