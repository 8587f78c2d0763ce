import type { Condition } from 'kubernetes-types/meta/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import { formatRfc3339 } from '../../../kube/time.ts';

const TYPE = 'DisruptionAllowed';

/** The budget with its condition brought in line with the number of disruptions it allows. */
export function withDisruptionCondition(budget: PodDisruptionBudget, now: Date): PodDisruptionBudget {
  const allowed = (budget.status?.disruptionsAllowed ?? 0) > 0;
  return withBudgetCondition(
    budget,
    allowed ? 'True' : 'False',
    allowed ? 'SufficientPods' : 'InsufficientPods',
    '',
    now,
  );
}

export function withBudgetCondition(
  budget: PodDisruptionBudget,
  status: 'True' | 'False',
  reason: string,
  message: string,
  now: Date,
): PodDisruptionBudget {
  const conditions = budget.status?.conditions ?? [];
  const before = conditions.find(({ type }) => type === TYPE);
  const condition: Condition = {
    type: TYPE,
    status,
    reason,
    message,
    observedGeneration: budget.metadata?.generation ?? 0,
    lastTransitionTime: before?.status === status ? before.lastTransitionTime : formatRfc3339(now),
  };
  const others = conditions.filter(({ type }) => type !== TYPE);
  return {
    ...budget,
    status: { ...budget.status, conditions: [...others, condition] } as PodDisruptionBudget['status'] & object,
  };
}
