import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Condition } from '../../controller/condition.ts';
import type { Reconcile } from '../../controller/reconcile.ts';
import { PODS } from '../../kube/resource.ts';
import { condition } from '../condition.ts';
import type { StaticPodOperatorConfig } from '../config.ts';
import { FALLBACK_FOR_REVISION, FALLBACK_MESSAGE, FALLBACK_REASON } from '../installer/operand.ts';
import type { Objects } from '../objects.ts';
import type { StaticPodOperator } from '../operator.ts';

export interface FallbackOptions {
  readonly config: Pick<StaticPodOperatorConfig, 'operandNamespace' | 'operandLabels' | 'startupMonitor'>;
  readonly operator: StaticPodOperator;
  readonly cached: Objects;
}

/** Says whether an operand runs an older revision because a newer one did not start (spec 30, 17.2). */
export function fallbackReconcile({ config, operator, cached }: FallbackOptions): Reconcile {
  return async (_key, { signal }) => {
    const isEnabled = (await config.startupMonitor?.()) ?? false;
    const selection = { namespace: config.operandNamespace, labels: config.operandLabels };
    const pods = isEnabled ? await cached.list(PODS, selection) : [];
    await operator.setConditions([fallbackCondition(pods)], signal);
  };
}

/** The revision named is the one that failed. */
export function fallbackCondition(pods: readonly Pod[]): Condition {
  const fallen = pods
    .map(({ metadata = {} }) => ({ name: metadata.name ?? '', annotations: metadata.annotations ?? {} }))
    .filter(({ annotations }) => annotations[FALLBACK_FOR_REVISION] !== undefined);
  const type = 'StaticPodFallbackRevisionDegraded';
  const [first] = fallen;
  if (first === undefined) return condition(type, 'False');
  const lines = fallen.map(({ name, annotations }) => {
    const [revision, message] = [annotations[FALLBACK_FOR_REVISION], annotations[FALLBACK_MESSAGE] ?? 'unknown'];
    return `a static pod ${name} was rolled back to revision ${revision} due to ${message}`;
  });
  return condition(type, 'True', first.annotations[FALLBACK_REASON] ?? 'Unknown', lines.join('\n'));
}
