import type { Pod, PodCondition } from 'kubernetes-types/core/v1.d.ts';
import { formatRfc3339 } from '../../../kube/time.ts';

export function isReady({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: value }) => type === 'Ready' && value === 'True') === true;
}

/** The pod with a condition set; its transition time changes only with its status. */
export function withCondition(pod: Pod, condition: Omit<PodCondition, 'lastTransitionTime'>, now: Date): Pod {
  const conditions = pod.status?.conditions ?? [];
  const before = conditions.find(({ type }) => type === condition.type);
  const since = before?.status === condition.status ? before.lastTransitionTime : undefined;
  const next: PodCondition = { ...condition, lastTransitionTime: since ?? formatRfc3339(now) };
  const others = conditions.filter(({ type }) => type !== condition.type);
  return { ...pod, status: { ...pod.status, conditions: [...others, next] } };
}
