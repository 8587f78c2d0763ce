import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import { type Fields, type Kind, pathOf } from '../kinds/kind.ts';
import { amend } from '../rest/amend.ts';
import type { Core } from '../rest/core.ts';
import { scaleOf } from '../rest/scale.ts';
import { matchesLabels } from '../select/label.ts';
import { labelQueryOf } from '../select/label-object.ts';
import { EVERYTHING } from '../store/store.ts';
import { budgetStatus } from './budget-status.ts';
import type { Controller } from './controller.ts';
import { Worker } from './worker.ts';

const BUCKET = 'policy/poddisruptionbudgets';

/** Keeps the status of PodDisruptionBudgets: how many of their pods may be evicted now. */
export function watchBudgets(core: Core, onError: (key: string, error: unknown) => void): Controller {
  const worker = new Worker(core.clock, path => look(path), onError);
  const stop = core.store.watch(EVERYTHING, core.store.revision, ({ entry, type }) => {
    if (entry.bucket === BUCKET) {
      if (type !== 'deleted') worker.add(entry.path);
      return;
    }
    const concerns = entry.bucket === '/pods' || core.registry.ofBucket(entry.bucket)?.scale !== undefined;
    if (concerns) addAllOf(entry.object.metadata?.namespace ?? '');
  });
  for (const { path } of core.store.list(BUCKET)) worker.add(path);
  return {
    idle: () => worker.idle(),
    close: () => {
      stop();
      return worker.close();
    },
  };

  function addAllOf(namespace: string): void {
    for (const { path } of core.store.list(BUCKET, { prefix: `${namespace}/` })) worker.add(path);
  }

  async function look(path: string): Promise<Date | undefined> {
    let lookAgainAt: Date | undefined;
    await amend(core, core.registry.ofBucket(BUCKET) as Kind, path, object => {
      const budget = object as PodDisruptionBudget;
      const namespace = budget.metadata?.namespace ?? '';
      const answer = budgetStatus(
        budget,
        podsOf(budget, namespace),
        pods => expectedScale(pods, namespace),
        core.clock.now(),
      );
      lookAgainAt = answer.lookAgainAt;
      return answer.budget as Fields;
    });
    return lookAgainAt;
  }

  function podsOf({ spec }: PodDisruptionBudget, namespace: string): Pod[] {
    const query = labelQueryOf(spec?.selector);
    const pods: Pod[] = [];
    for (const { object } of core.store.list('/pods', { prefix: `${namespace}/` })) {
      if (matchesLabels(query, object.metadata?.labels)) pods.push(object as Pod);
    }
    return pods;
  }

  function expectedScale(pods: readonly Pod[], namespace: string): number | string {
    const replicas = new Map<string, number>();
    for (const { metadata } of pods) {
      const found = rootController(metadata?.ownerReferences, namespace);
      if (typeof found === 'string') return `found no controllers for pod ${JSON.stringify(metadata?.name)}: ${found}`;
      replicas.set(found.uid, found.replicas);
    }
    return [...replicas.values()].reduce((sum, count) => sum + count, 0);
  }

  /** The Deployment behind the ReplicaSet, or whatever else has a scale at the top of the chain of controllers. */
  function rootController(
    owners: OwnerReference[] | undefined,
    namespace: string,
  ): { uid: string; replicas: number } | string {
    const controller = owners?.find(owner => owner.controller === true);
    if (controller === undefined) return 'it has none';
    const slash = controller.apiVersion.indexOf('/');
    const kind = core.registry.findKind(slash < 0 ? '' : controller.apiVersion.slice(0, slash), controller.kind);
    const object =
      kind && core.store.get(kind.bucket, pathOf(kind.namespaced ? namespace : '', controller.name))?.object;
    if (kind === undefined || object?.metadata?.uid !== controller.uid)
      return `${controller.kind} ${controller.name} is not there`;
    const above = rootController(object.metadata.ownerReferences, namespace);
    if (typeof above !== 'string') return above;
    if (kind.scale === undefined) return `${controller.kind} has no scale`;
    return { uid: controller.uid, replicas: scaleOf(kind, object).spec?.replicas ?? 0 };
  }
}
