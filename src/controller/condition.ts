import { formatRfc3339 } from '../kube/time.ts';

/** A condition of an operator's status. */
export interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason?: string | undefined;
  readonly message?: string | undefined;
  readonly lastTransitionTime?: string | undefined;
}

/**
 * The conditions with this one in place; its transition time moves only with its status (spec 30, 5.1). One that says the
 * same already stays as it is stored.
 */
export function setCondition(conditions: readonly Condition[], wanted: Condition, now: Date): Condition[] {
  const { lastTransitionTime: _ignored, ...condition } = wanted;
  const existing = conditions.find(({ type }) => type === wanted.type);
  if (existing === undefined) return [...conditions, { ...condition, lastTransitionTime: formatRfc3339(now) }];
  if (saysTheSame(existing, wanted)) return [...conditions];
  const lastTransitionTime = existing.status === wanted.status ? existing.lastTransitionTime : formatRfc3339(now);
  return conditions.map(other => (other === existing ? { ...condition, lastTransitionTime } : other));
}

/** Upstream leaves empty texts out when it writes, so an absent one is an empty one. */
function saysTheSame(a: Condition, b: Condition): boolean {
  return a.status === b.status && (a.reason ?? '') === (b.reason ?? '') && (a.message ?? '') === (b.message ?? '');
}

/** The conditions without this type, in their order. */
export function removeCondition(conditions: readonly Condition[], type: string): Condition[] {
  return conditions.filter(condition => condition.type !== type);
}
