import { removeCondition } from '../controller/condition.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import type { StaticPodOperator } from './operator.ts';

/** Removes conditions that nobody writes any more, and that would otherwise be reported for ever (spec 30, section 23). */
export function staleConditionsReconcile(operator: StaticPodOperator, types: readonly string[]): Reconcile {
  return async (_key, { signal }) => {
    await operator.update(
      status => ({ ...status, conditions: types.reduce(removeCondition, [...(status.conditions ?? [])]) }),
      signal,
    );
  };
}
