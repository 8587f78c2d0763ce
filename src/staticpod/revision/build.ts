import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import { RetryRequest } from '../../controller/reconcile.ts';
import type { ApplyContext } from '../../kube/apply.ts';
import { isAlreadyExists, isConflict } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import { CONFIG_MAPS, type Resource, SECRETS } from '../../kube/resource.ts';
import { syncConfigMap, syncSecret } from '../../kube/sync-copy.ts';
import type { ObjectLists } from '../config.ts';
import type { ContentCheck } from '../loadable.ts';
import { notFound } from '../objects.ts';
import { copyName, isReadyRevision, READY_ANNOTATION, revisionStatusName } from './number.ts';

export interface RevisionPlan {
  readonly namespace: string;
  readonly revision: number;
  readonly reason: string;
  readonly revisioned: ObjectLists;
  /** Where the last good content is, for sources that no process could load: the revision before. */
  readonly before: number;
  readonly check?: ContentCheck | undefined;
  /** Asked when all copies are there; false: not yet. */
  readonly isReady?: ((revision: number) => Promise<boolean>) | undefined;
}

export type BuildOutcome = 'built' | 'built by somebody else' | 'not ready yet';

/**
 * Makes all copies of a revision, or goes on where somebody stopped (spec 30, 8.4). The status object is written first,
 * saying that the revision is not ready, and last, saying that it is.
 */
export async function buildRevision(context: ApplyContext, plan: RevisionPlan): Promise<BuildOutcome> {
  const { namespace, revision, revisioned, isReady } = plan;
  const status = await beginRevision(context, plan);
  if (isReadyRevision(status)) return 'built by somebody else';
  const ownerReferences = [ownerOf(status)];
  for (const { name, optional } of revisioned.configMaps) {
    const target = { namespace, name: copyName(name, revision) };
    const source = await goodSource(context, CONFIG_MAPS, name, plan);
    const { object } = await syncConfigMap(context, source, target, { ownerReferences });
    requireLoadable(object, source.name === name, CONFIG_MAPS, plan);
    if (object === undefined && !optional) throw notFound(CONFIG_MAPS, name);
  }
  for (const { name, optional } of revisioned.secrets) {
    const target = { namespace, name: copyName(name, revision) };
    const source = await goodSource(context, SECRETS, name, plan);
    const { object } = await syncSecret(context, source, target, { ownerReferences });
    requireLoadable(object, source.name === name, SECRETS, plan);
    if (object === undefined && !optional) throw notFound(SECRETS, name);
  }
  if (isReady !== undefined && !(await askReady(isReady, revision))) return 'not ready yet';
  await finishRevision(context, plan, status);
  return 'built';
}

/** The object itself, or its copy in the revision before where no process could load it. */
async function goodSource(
  { kube, signal }: ApplyContext,
  resource: Resource<ConfigMap | Secret>,
  name: string,
  { namespace, before, check }: RevisionPlan,
): Promise<{ namespace: string; name: string }> {
  const source = check && (await getIfPresent(kube, resource, { namespace, name }, { signal }));
  const isGood = source === undefined || check?.(source, kindOf(resource)) === undefined;
  return { namespace, name: isGood ? name : copyName(name, before) };
}

/** It may have changed between the look and the copy. */
function requireLoadable(
  copy: ConfigMap | Secret | undefined,
  isFromSource: boolean,
  resource: Resource<ConfigMap | Secret>,
  { check }: RevisionPlan,
): void {
  const problem = copy && isFromSource ? check?.(copy, kindOf(resource)) : undefined;
  if (problem !== undefined) throw new RetryRequest(`${copy?.metadata?.name} cannot be loaded: ${problem}`);
}

function kindOf(resource: Resource<ConfigMap | Secret>): 'secret' | 'configmap' {
  return resource.kind === SECRETS.kind ? 'secret' : 'configmap';
}

/** The reference that makes something go away together with a revision. */
export function ownerOf({ metadata }: ConfigMap): OwnerReference {
  return { apiVersion: 'v1', kind: 'ConfigMap', name: metadata?.name ?? '', uid: metadata?.uid ?? '' };
}

async function beginRevision({ kube, signal }: ApplyContext, plan: RevisionPlan): Promise<ConfigMap> {
  const key = { namespace: plan.namespace, name: revisionStatusName(plan.revision) };
  const fresh: ConfigMap = {
    metadata: { ...key, annotations: { [READY_ANNOTATION]: 'false' } },
    data: contentOf(plan),
  };
  try {
    return await kube.create(CONFIG_MAPS, fresh, { signal });
  } catch (error) {
    if (!isAlreadyExists(error)) throw error;
  }
  const existing = await getIfPresent(kube, CONFIG_MAPS, key, { signal });
  if (existing === undefined) throw new RetryRequest(`configmap ${key.name} was there and is gone`);
  return existing;
}

async function askReady(isReady: (revision: number) => Promise<boolean>, revision: number): Promise<boolean> {
  try {
    return await isReady(revision);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new Error(`revision readiness check failed for revision ${revision}: ${message}`, { cause: error });
  }
}

/** Conflicts come from people and garbage collectors that touch the object; the copies are not affected (spec 30, T22). */
const FINISH_ATTEMPTS = 5;

async function finishRevision({ kube, signal }: ApplyContext, plan: RevisionPlan, begun: ConfigMap): Promise<void> {
  let status = begun;
  for (let attempt = 1; ; attempt++) {
    const annotations = { ...status.metadata?.annotations, [READY_ANNOTATION]: 'true' };
    const ready = {
      ...status,
      metadata: { ...status.metadata, annotations },
      // One that was begun before keeps what it said then (spec 30, 8.4.2).
      data: { ...contentOf(plan), ...status.data },
    };
    try {
      await kube.update(CONFIG_MAPS, ready, { signal });
      return;
    } catch (error) {
      if (!isConflict(error) || attempt === FINISH_ATTEMPTS) throw error;
    }
    const key = { namespace: plan.namespace, name: revisionStatusName(plan.revision) };
    status = await kube.get(CONFIG_MAPS, key, { signal });
    // Another object of that name does not own the copies that were made.
    if (status.metadata?.uid !== begun.metadata?.uid) throw new RetryRequest(`configmap ${key.name} was replaced`);
  }
}

function contentOf({ revision, reason }: RevisionPlan): Record<string, string> {
  return { revision: String(revision), reason };
}
