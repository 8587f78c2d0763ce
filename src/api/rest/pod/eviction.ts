import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { DeleteOptions, Status } from 'kubernetes-types/meta/v1.d.ts';
import type { Eviction, PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import { isConflict, KubeError } from '../../../kube/error.ts';
import type { KubeObject } from '../../../kube/resource.ts';
import { formatRfc3339 } from '../../../kube/time.ts';
import { type Fields, type Kind, pathOf } from '../../kinds/kind.ts';
import { matchesLabels } from '../../select/label.ts';
import { labelQueryOf } from '../../select/label-object.ts';
import { badRequest, forbidden, tooManyRequests } from '../../status.ts';
import { amend } from '../amend.ts';
import type { Call, Core } from '../core.ts';
import { type DeleteParameters, remove } from '../delete.ts';
import { deleteParameters } from '../delete-options.ts';
import { get } from '../read.ts';
import { isReady, withCondition } from './condition.ts';
import { withDisruptionCondition } from './disruption.ts';

const SUCCESS: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };

/** Deletes a pod unless a disruption budget forbids it now: 429, try again later. */
export async function evict(core: Core, call: Call, body: KubeObject, dryRun: boolean): Promise<Status> {
  const { metadata, deleteOptions } = body as Eviction & { deleteOptions?: DeleteOptions };
  if (metadata?.name !== call.name) throw badRequest('name in URL does not match name in Eviction object');
  const parameters = deleteParameters({ ...deleteOptions, ...(dryRun ? { dryRun: ['All'] } : {}) });
  const { object } = get(core, call);
  const pod = object as Pod;
  const budgets = needsNoBudget(pod) ? [] : budgetsOf(core, pod);
  const verdict = decideEviction(pod, budgets);
  switch (verdict.decision) {
    case 'refuse':
      throw verdict.error;
    case 'charge':
      await charge(core, call, verdict.budget, parameters.dryRun);
      await removeEvicted(core, call, parameters);
      break;
    case 'allow':
      await removeUnchanged(core, call, pod, parameters, verdict.budget);
      break;
  }
  return SUCCESS;
}

type Verdict =
  /** The pod may go; if a budget watches over it, only while it stays unready. */
  | { readonly decision: 'allow'; readonly budget: string | undefined }
  /** The pod may go, and uses up one disruption of the budget. */
  | { readonly decision: 'charge'; readonly budget: PodDisruptionBudget }
  | { readonly decision: 'refuse'; readonly error: KubeError };

const MANY_BUDGETS = 'This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.';

/** Whether a pod may be evicted, as far as its budgets go. */
export function decideEviction(pod: Pod, budgets: readonly PodDisruptionBudget[]): Verdict {
  const [budget, other] = budgets;
  if (budget === undefined) return { decision: 'allow', budget: undefined };
  if (other !== undefined) return { decision: 'refuse', error: new KubeError(500, '', MANY_BUDGETS) };
  const { currentHealthy = 0, desiredHealthy = 0 } = budget.status ?? {};
  if (!isReady(pod)) {
    const always = budget.spec?.unhealthyPodEvictionPolicy === 'AlwaysAllow';
    const spare = desiredHealthy > 0 && currentHealthy >= desiredHealthy;
    if (always || spare) return { decision: 'allow', budget: budget.metadata?.name };
  }
  const error = budgetError(budget);
  return error === undefined ? { decision: 'charge', budget } : { decision: 'refuse', error };
}

const MAX_DISRUPTED_PODS = 2000;
const WOULD_VIOLATE = "Cannot evict pod as it would violate the pod's disruption budget.";

/** Why a budget allows no further disruption at the moment. */
function budgetError({ metadata, status }: PodDisruptionBudget): KubeError | undefined {
  const { name = '', generation = 0 } = metadata ?? {};
  const { observedGeneration = 0, disruptionsAllowed = 0, desiredHealthy = 0, currentHealthy = 0 } = status ?? {};
  if (observedGeneration < generation) return stillProcessed(name);
  if (Object.keys(status?.disruptedPods ?? {}).length > MAX_DISRUPTED_PODS) {
    const why = 'DisruptedPods map too big - too many evictions not confirmed by PDB controller';
    return forbidden({ group: 'policy', plural: 'poddisruptionbudget' }, name, why);
  }
  if (disruptionsAllowed > 0) return undefined;
  const message = `The disruption budget ${name} needs ${desiredHealthy} healthy pods and has ${currentHealthy} currently`;
  return tooManyRequests(WOULD_VIOLATE, { causes: [{ reason: 'DisruptionBudget', message }] });
}

function stillProcessed(name: string): KubeError {
  const message = `The disruption budget ${name} is still being processed by the server.`;
  return tooManyRequests(WOULD_VIOLATE, { causes: [{ reason: 'DisruptionBudget', message }], retryAfterSeconds: 10 });
}

/** A pod that does not run, or is already going, disrupts nobody. */
function needsNoBudget({ status, metadata }: Pod): boolean {
  return metadata?.deletionTimestamp !== undefined || ['Succeeded', 'Failed', 'Pending'].includes(status?.phase ?? '');
}

function budgetsOf(core: Core, pod: Pod): PodDisruptionBudget[] {
  const { namespace = '', labels } = pod.metadata ?? {};
  const found: PodDisruptionBudget[] = [];
  for (const { object } of core.store.list(budgetKind(core).bucket, { prefix: `${namespace}/` })) {
    const budget = object as PodDisruptionBudget;
    if (matchesLabels(labelQueryOf(budget.spec?.selector), labels)) found.push(budget);
  }
  return found;
}

/** Takes one disruption off the budget. Checked again inside: another eviction may have been quicker. */
async function charge(core: Core, call: Call, { metadata }: PodDisruptionBudget, dryRun: boolean): Promise<void> {
  const now = core.clock.now();
  const path = pathOf(call.namespace, metadata?.name ?? '');
  const take = (object: Fields): Fields => {
    const budget = object as PodDisruptionBudget;
    const error = budgetError(budget);
    if (error !== undefined) throw error;
    const { status } = budget;
    const disruptedPods = { ...status?.disruptedPods, [call.name]: formatRfc3339(now) };
    const disruptionsAllowed = (status?.disruptionsAllowed ?? 0) - 1;
    const charged = { ...budget, status: { ...status, disruptedPods, disruptionsAllowed } } as PodDisruptionBudget;
    return withDisruptionCondition(charged, now) as Fields;
  };
  await amend(core, budgetKind(core), path, take, dryRun);
}

async function removeEvicted(core: Core, call: Call, parameters: DeleteParameters): Promise<void> {
  const pods = { ...call, subresource: '' };
  if (!parameters.dryRun) {
    const condition = {
      type: 'DisruptionTarget',
      status: 'True',
      reason: 'EvictionByEvictionAPI',
      message: 'Eviction API: evicting',
    };
    const marked = await amend(core, call.kind, pathOf(call.namespace, call.name), object => {
      checkVersion(call, object, parameters);
      return withCondition(object as Pod, condition, core.clock.now()) as Fields;
    });
    const version = parameters.resourceVersion === undefined ? undefined : String(marked.revision);
    await remove(core, pods, { ...parameters, resourceVersion: version });
    return;
  }
  await remove(core, pods, parameters);
}

/** An unready pod is let go only as long as it is the pod that was looked at. */
async function removeUnchanged(
  core: Core,
  call: Call,
  pod: Pod,
  parameters: DeleteParameters,
  budget: string | undefined,
): Promise<void> {
  if (budget === undefined) return removeEvicted(core, call, parameters);
  const resourceVersion = parameters.resourceVersion ?? pod.metadata?.resourceVersion;
  try {
    await removeEvicted(core, call, { ...parameters, resourceVersion });
  } catch (error) {
    throw isConflict(error) && parameters.resourceVersion === undefined ? stillProcessed(budget) : error;
  }
}

function checkVersion(call: Call, { metadata }: Fields, { uid, resourceVersion }: DeleteParameters): void {
  const other =
    (uid !== undefined && uid !== metadata?.uid) ||
    (resourceVersion !== undefined && resourceVersion !== metadata?.resourceVersion);
  if (other)
    throw new KubeError(
      409,
      'Conflict',
      `Operation cannot be fulfilled on Pod ${JSON.stringify(call.name)}: the object might have been modified`,
    );
}

function budgetKind(core: Core): Kind {
  return core.registry.find('policy', 'v1', 'poddisruptionbudgets') as Kind;
}
