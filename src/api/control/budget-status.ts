import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { PodDisruptionBudget, PodDisruptionBudgetStatus } from 'kubernetes-types/policy/v1.d.ts';
import { minutes } from '../../kube/duration.ts';
import { isReady } from '../rest/pod/condition.ts';
import { withBudgetCondition, withDisruptionCondition } from '../rest/pod/disruption.ts';

/** An evicted pod that is still there after this long is counted as staying. */
const EVICTION_TIMEOUT_MS = minutes(2);

export interface BudgetAnswer {
  readonly budget: PodDisruptionBudget;
  /** When an eviction that was not followed by a deletion stops counting. */
  readonly lookAgainAt?: Date | undefined;
}

/** How many replicas the controllers of some pods are meant to have; a string says why that cannot be told. */
export type ExpectedScale = (pods: readonly Pod[]) => number | string;

/** The budget with the status that follows from the pods it covers. */
export function budgetStatus(
  budget: PodDisruptionBudget,
  pods: readonly Pod[],
  expectedScale: ExpectedScale,
  now: Date,
): BudgetAnswer {
  const expected = expectation(budget, pods, expectedScale);
  if (typeof expected === 'string') {
    const closed = { ...budget, status: { ...emptyStatus(budget), ...budget.status, disruptionsAllowed: 0 } };
    return { budget: withBudgetCondition(closed, 'False', 'SyncFailed', expected, now) };
  }
  const { disruptedPods, lookAgainAt } = pendingEvictions(budget, pods, now);
  const currentHealthy = pods.filter(
    pod =>
      pod.metadata?.deletionTimestamp === undefined &&
      !Object.hasOwn(disruptedPods, pod.metadata?.name ?? '') &&
      isReady(pod),
  ).length;
  const { expectedPods, desiredHealthy } = expected;
  const disruptionsAllowed = expectedPods <= 0 ? 0 : Math.max(0, currentHealthy - desiredHealthy);
  const status: PodDisruptionBudgetStatus = {
    ...(budget.status?.conditions === undefined ? {} : { conditions: budget.status.conditions }),
    currentHealthy,
    desiredHealthy,
    expectedPods,
    disruptionsAllowed,
    ...(Object.keys(disruptedPods).length === 0 ? {} : { disruptedPods }),
    observedGeneration: budget.metadata?.generation ?? 0,
  };
  return { budget: withDisruptionCondition({ ...budget, status }, now), lookAgainAt };
}

function expectation(
  { spec }: PodDisruptionBudget,
  pods: readonly Pod[],
  expectedScale: ExpectedScale,
): { expectedPods: number; desiredHealthy: number } | string {
  const { maxUnavailable, minAvailable } = spec ?? {};
  if (maxUnavailable === undefined && typeof minAvailable === 'number') {
    return { expectedPods: pods.length, desiredHealthy: minAvailable };
  }
  if (maxUnavailable === undefined && minAvailable === undefined) return { expectedPods: 0, desiredHealthy: 0 };
  const expectedPods = expectedScale(pods);
  if (typeof expectedPods === 'string') return expectedPods;
  if (maxUnavailable !== undefined) {
    return { expectedPods, desiredHealthy: Math.max(0, expectedPods - share(maxUnavailable, expectedPods)) };
  }
  return { expectedPods, desiredHealthy: share(minAvailable ?? 0, expectedPods) };
}

/** A number, or a percentage of the whole, rounded up. */
function share(value: number | string, whole: number): number {
  if (typeof value === 'number') return value;
  return Math.ceil((Number.parseInt(value, 10) * whole) / 100);
}

function pendingEvictions(
  { status }: PodDisruptionBudget,
  pods: readonly Pod[],
  now: Date,
): { disruptedPods: Record<string, string>; lookAgainAt: Date | undefined } {
  const disruptedPods: Record<string, string> = {};
  let lookAgainAt: Date | undefined;
  for (const { metadata } of pods) {
    const time = status?.disruptedPods?.[metadata?.name ?? ''];
    if (time === undefined || metadata?.deletionTimestamp !== undefined) continue;
    const until = new Date(new Date(time).getTime() + EVICTION_TIMEOUT_MS);
    if (until <= now) continue;
    disruptedPods[metadata?.name ?? ''] = time;
    if (lookAgainAt === undefined || until < lookAgainAt) lookAgainAt = until;
  }
  return { disruptedPods, lookAgainAt };
}

function emptyStatus({ metadata }: PodDisruptionBudget): PodDisruptionBudgetStatus {
  return {
    currentHealthy: 0,
    desiredHealthy: 0,
    expectedPods: 0,
    disruptionsAllowed: 0,
    observedGeneration: metadata?.generation ?? 0,
  };
}
