import type { Condition } from '../controller/condition.ts';
import { formatRfc3339 } from '../kube/time.ts';

/** Which change of a condition is one: pools count the message too, ControllerConfig does not (spec 50, ND-44, CS-2). */
export type Comparison = 'with-message' | 'without-message';

/**
 * The conditions with this one in place. Nothing changes when it is there already; a changed one moves to the end, and its
 * transition time moves only with its status.
 */
export function placeCondition(
  conditions: readonly Condition[],
  wanted: Condition,
  now: Date,
  comparison: Comparison,
): readonly Condition[] {
  const current = conditions.findLast(({ type }) => type === wanted.type);
  const isSame = (field: 'status' | 'reason' | 'message') => (current?.[field] ?? '') === (wanted[field] ?? '');
  const isMessageSame = comparison === 'without-message' || isSame('message');
  if (current !== undefined && isSame('status') && isSame('reason') && isMessageSame) return conditions;
  const hasTime = current !== undefined && isSame('status') && current.lastTransitionTime !== undefined;
  const lastTransitionTime = hasTime ? current.lastTransitionTime : formatRfc3339(now);
  const { type, status, reason = '', message = '' } = wanted;
  return [...conditions.filter(other => other.type !== type), { type, status, lastTransitionTime, reason, message }];
}

/** Whether a condition is there and says so; of several of one type the first one counts. */
export function conditionIs(
  conditions: readonly Condition[] | undefined,
  type: string,
  status: Condition['status'],
): boolean {
  return conditions?.find(condition => condition.type === type)?.status === status;
}
