import type { ConfigMap, Pod } from 'kubernetes-types/core/v1.d.ts';
import { lineText } from '../../controller/aggregate-error.ts';
import { isManaged } from '../../controller/management-state.ts';
import { earlier, type Reconcile, type ReconcileContext } from '../../controller/reconcile.ts';
import { applyPod, deleteObject } from '../../kube/apply.ts';
import { seconds } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, PODS } from '../../kube/resource.ts';
import { RESOURCE_DIRECTORY, type StaticPodOperatorConfig } from '../config.ts';
import { timeOf } from '../installer/operand.ts';
import { nodePod } from '../node-pod.ts';
import { readNodeStatus } from '../node-status.ts';
import type { Objects } from '../objects.ts';
import type { StaticPodOperator } from '../operator.ts';
import { ownerOf } from '../revision/build.ts';
import { isRevisionStatus, revisionOfStatus, revisionStatusName } from '../revision/number.ts';
import { protectedRevisions } from './protect.ts';

export type PruneConfig = Pick<StaticPodOperatorConfig, 'operandNamespace' | 'unrevisioned' | 'pruner'> & {
  readonly installer: Pick<StaticPodOperatorConfig['installer'], 'image'>;
};

export interface PruneControllerOptions {
  readonly config: PruneConfig;
  readonly operator: StaticPodOperator;
  readonly kube: Kube;
  readonly cached: Objects;
}

export const PRUNER_LABELS = { app: 'pruner' } as const;

/** A pruner that failed, on a full disk perhaps or because its node was restarted, is tried again after this time. */
const RETRY_MS = seconds(30);

/** Removes what no node needs any more: from the nodes' disks and from the API (spec 30, 14.1). */
export function pruneReconcile(options: PruneControllerOptions): Reconcile {
  const { config, operator, cached } = options;
  return async (_key, context) => {
    const { spec = {}, status = {} } = await operator.read(context.signal);
    // Also here: who takes the operator out of service may want to look at old revisions (T25).
    if (!isManaged(spec.managementState)) return undefined;
    const nodes = (status.nodeStatuses ?? []).map(readNodeStatus);
    const published = status.latestAvailableRevision ?? 0;
    const limits = { failed: spec.failedRevisionLimit ?? 0, succeeded: spec.succeededRevisionLimit ?? 0 };
    const kept = protectedRevisions(nodes, published, limits);
    if (kept === undefined) return undefined;
    const errors: unknown[] = [];
    let againAt: Date | undefined;
    for (const { nodeName } of published === 0 ? [] : nodes) {
      try {
        againAt = earlier(againAt, await ensurePruner(options, nodeName, published, kept, context));
      } catch (error) {
        errors.push(error);
      }
    }
    for (const object of await cached.list(CONFIG_MAPS, { namespace: config.operandNamespace })) {
      if (!isRevisionStatus(object)) continue;
      try {
        if (isSurplus(object, published, kept)) await remove(options, object, context);
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw new Error(lineText(errors));
    return { againAt };
  };
}

/** What the pruner program is told (spec 30, 14.1.5). */
export function prunerArguments(
  { unrevisioned, pruner }: Pick<PruneConfig, 'unrevisioned' | 'pruner'>,
  published: number,
  kept: readonly number[],
): string[] {
  return [
    '-v=4',
    `--max-eligible-revision=${published}`,
    `--protected-revisions=${kept.join(',')}`,
    `--resource-dir=${RESOURCE_DIRECTORY}`,
    `--cert-dir=${unrevisioned?.directory ?? ''}`,
    `--static-pod-name=${pruner?.directoryPrefix ?? ''}`,
  ];
}

function isSurplus(status: ConfigMap, published: number, kept: readonly number[]): boolean {
  const revision = revisionOfStatus(status);
  if (revision === undefined) {
    const { namespace, name } = status.metadata ?? {};
    throw new Error(`expected a number in data.revision of configmap ${namespace}/${name}, found nothing`);
  }
  return revision <= published && !kept.includes(revision);
}

/** What belongs to the revision follows by garbage collection. */
async function remove(
  { kube }: PruneControllerOptions,
  { metadata }: ConfigMap,
  { events, signal }: ReconcileContext,
): Promise<void> {
  await deleteObject({ kube, events, signal }, CONFIG_MAPS, {
    namespace: metadata?.namespace,
    name: metadata?.name ?? '',
  });
}

/** Returns when to look again. */
async function ensurePruner(
  options: PruneControllerOptions,
  nodeName: string,
  published: number,
  kept: readonly number[],
  context: ReconcileContext,
): Promise<Date | undefined> {
  const { config, kube, cached } = options;
  const { events, signal, clock } = context;
  const namespace = config.operandNamespace;
  const args = prunerArguments(config, published, kept);
  const key = { namespace, name: `revision-pruner-${published}-${nodeName}` };
  // One that was made before, and is in the cache, need not be asked for.
  const existing = (await cached.get(PODS, key)) ?? (await getIfPresent(kube, PODS, key, { signal }));
  if (existing !== undefined) {
    const verdict = judgePruner(existing, args, clock.now());
    if (verdict !== 'replace') return verdict;
    await deleteObject({ kube, events, signal }, PODS, key);
    // While it is still going away, the end of it brings the next pass.
    if ((await getIfPresent(kube, PODS, key, { signal })) !== undefined) return undefined;
  }
  const owner = ownerOf(await kube.get(CONFIG_MAPS, { namespace, name: revisionStatusName(published) }, { signal }));
  const pod = nodePod({
    ...key,
    nodeName,
    owner,
    ...PRUNER_LABELS,
    container: 'pruner',
    image: config.installer.image,
    command: config.pruner?.command ?? [],
    args,
  });
  await applyPod({ kube, events, signal }, pod);
  return undefined;
}

/** A finished pruner is made anew when there is something else to protect by now (spec 30, T25), or when it failed. */
function judgePruner(
  { metadata, spec, status }: Pod,
  args: readonly string[],
  now: Date,
): 'replace' | Date | undefined {
  const phase = status?.phase ?? 'Pending';
  if (metadata?.deletionTimestamp !== undefined || (phase !== 'Succeeded' && phase !== 'Failed')) return undefined;
  const told = spec?.containers[0]?.args ?? [];
  if (told.join('\n') !== args.join('\n')) return 'replace';
  if (phase === 'Succeeded') return undefined;
  const retryAt = new Date((timeOf(metadata?.creationTimestamp) ?? now).getTime() + RETRY_MS);
  return retryAt <= now ? 'replace' : retryAt;
}
