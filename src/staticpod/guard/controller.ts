import type { Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import { errorText, listText } from '../../controller/aggregate-error.ts';
import type { Reconcile, ReconcileContext } from '../../controller/reconcile.ts';
import { type ApplyContext, applyPod, applyPodDisruptionBudget, deleteObject } from '../../kube/apply.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { keyOf, NODES, POD_DISRUPTION_BUDGETS, PODS } from '../../kube/resource.ts';
import type { GuardConfig, StaticPodOperatorConfig } from '../config.ts';
import { CONTROL_PLANE_LABELS } from '../nodes.ts';
import { compareText, type Objects } from '../objects.ts';
import { GUARD_LABELS, guardBudget, guardBudgetName, guardPod, isOutdatedGuard } from './pod.ts';

export interface GuardControllerOptions {
  readonly config: Pick<StaticPodOperatorConfig, 'operandNamespace' | 'operandLabels' | 'staticPodName'> & {
    readonly guard: GuardConfig;
    readonly installer: Pick<StaticPodOperatorConfig['installer'], 'image'>;
  };
  readonly kube: Kube;
  readonly cached: Objects;
}

/** Keeps a guard beside every operand, and a budget over them (spec 30, section 18). */
export function guardReconcile(options: GuardControllerOptions): Reconcile {
  const { config, kube } = options;
  return async (_key, { events, signal }: ReconcileContext) => {
    const wanted = await isWanted(config.guard);
    if (wanted === undefined) return;
    const apply = { kube, events, signal };
    if (wanted) await ensureGuards(options, apply);
    else await removeGuards(options, apply);
  };
}

async function isWanted({ wanted }: GuardConfig): Promise<boolean | undefined> {
  try {
    return await wanted();
  } catch (error) {
    throw new Error(`createConditionalFunc returns an error: ${errorText(error)}`, { cause: error });
  }
}

async function removeGuards({ config, cached }: GuardControllerOptions, apply: ApplyContext): Promise<void> {
  const namespace = config.operandNamespace;
  const budget = { namespace, name: guardBudgetName(config.staticPodName) };
  const hasBudget = (await cached.get(POD_DISRUPTION_BUDGETS, budget)) !== undefined;
  const guards = await cached.list(PODS, { namespace, labels: GUARD_LABELS });
  await tryAll([
    ...(hasBudget ? [() => deleteObject(apply, POD_DISRUPTION_BUDGETS, budget)] : []),
    ...guards.map(
      ({ metadata }) =>
        () =>
          deleteObject(apply, PODS, { namespace, name: metadata?.name ?? '' }),
    ),
  ]);
}

/** One step that fails does not stop the others; the errors come as one, in order (spec 30, 18.6). */
async function tryAll(steps: readonly (() => Promise<unknown>)[]): Promise<void> {
  const errors: string[] = [];
  for (const step of steps) {
    try {
      await step();
    } catch (error) {
      errors.push(errorText(error));
    }
  }
  if (errors.length > 0) throw new Error(listText(errors.sort(compareText)));
}

async function ensureGuards({ config, cached }: GuardControllerOptions, apply: ApplyContext): Promise<void> {
  const { operandNamespace: namespace, operandLabels: labels, staticPodName: prefix, guard, installer } = config;
  const nodes = await cached.list(NODES, { labels: CONTROL_PLANE_LABELS });
  const operands = await cached.list(PODS, { namespace, labels });
  const budget = guardBudget(namespace, prefix, nodes.length, guard.evictionPolicy);
  await ensureBudget(cached, apply, budget);
  await tryAll(
    nodes.map(node => async () => {
      const operand = operands.find(({ spec }) => spec?.nodeName === node.metadata?.name);
      const operandIP = whatToGuard(node, operand);
      if (operandIP === undefined) return;
      const nodeName = node.metadata?.name ?? '';
      await ensureGuard(
        cached,
        apply,
        guardPod({ namespace, prefix, nodeName, operandIP, image: installer.image, guard }),
      );
    }),
  );
}

/** The budget is written when one of the two values that are ours differs, and then as a whole (spec 30, 18.3). */
async function ensureBudget(cached: Objects, apply: ApplyContext, wanted: PodDisruptionBudget): Promise<void> {
  const known = await cached.get(POD_DISRUPTION_BUDGETS, keyOf(wanted));
  if (known !== undefined && hasSameTerms(known, wanted)) return;
  await applyPodDisruptionBudget(apply, wanted);
}

function hasSameTerms({ spec: a }: PodDisruptionBudget, { spec: b }: PodDisruptionBudget): boolean {
  return a?.minAvailable === b?.minAvailable && a?.unhealthyPodEvictionPolicy === b?.unhealthyPodEvictionPolicy;
}

/** The address of the operand on a node; undefined: there is none, and that is all right (spec 30, 18.4). */
function whatToGuard({ metadata, spec, status }: Node, operand: Pod | undefined): string | undefined {
  const isCordoned = (spec?.taints ?? []).some(
    ({ key, effect }) => key === 'node.kubernetes.io/unschedulable' && effect === 'NoSchedule',
  );
  if (isCordoned) return undefined;
  if (operand === undefined) {
    const isReady = status?.conditions?.find(({ type }) => type === 'Ready')?.status === 'True';
    if (isReady) throw new Error(`Missing operand on node ${metadata?.name}`);
    return undefined;
  }
  const { podIP = '' } = operand.status ?? {};
  if (podIP === '') throw new Error(`Missing PodIP in operand ${operand.metadata?.name} on node ${metadata?.name}`);
  return podIP;
}

async function ensureGuard(cached: Objects, apply: ApplyContext, wanted: Pod): Promise<void> {
  const { kube, signal } = apply;
  const key = { namespace: wanted.metadata?.namespace, name: wanted.metadata?.name ?? '' };
  const known = await cached.get(PODS, key);
  if (known !== undefined && !isOutdatedGuard(known, wanted)) return;
  const existing = await getIfPresent(kube, PODS, key, { signal });
  if (existing !== undefined && isOutdatedGuard(existing, wanted)) {
    if (existing.metadata?.deletionTimestamp === undefined) await deleteObject(apply, PODS, key);
    // While it is still going away, the end of it brings the next pass.
    if ((await getIfPresent(kube, PODS, key, { signal })) !== undefined) return;
  }
  await applyPod(apply, wanted);
}
