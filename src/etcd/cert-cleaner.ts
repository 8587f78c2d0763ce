import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { throwIfAny } from '../controller/aggregate-error.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import { hours } from '../kube/duration.ts';
import { isConflict, isNotFound } from '../kube/error.ts';
import { reportDelete } from '../kube/events.ts';
import { listAll } from '../kube/list.ts';
import type { Kube } from '../kube/port.ts';
import { keyOf, SECRETS } from '../kube/resource.ts';
import { floorToMs, formatRfc3339, parseRfc3339 } from '../kube/time.ts';
import { controlPlaneNodes } from './cert-signer/state.ts';
import { NODE_LEAVES } from './cert-table.ts';
import { ETCD_NAMESPACE, GRACE_START } from './names.ts';

/** How long the leaves of a vanished node are kept (spec 40, X-3). */
export const GRACE_MS: number = hours(72);
export const CLEANER_RESYNC_MS: number = hours(1);

export type Cleanup =
  | { readonly do: 'mark' | 'unmark' | 'delete'; readonly secret: Secret }
  | { readonly do: 'report'; readonly secret: Secret; readonly problem: string };

/** What to do about leaves whose node has gone or come back. Names are compared whole, not by their ends (spec 40, X-5). */
export function decideCleanup(secrets: readonly Secret[], nodeNames: readonly string[], now: Date): Cleanup[] {
  const wanted = new Set(nodeNames.flatMap(node => NODE_LEAVES.map(({ prefix }) => `${prefix}${node}`)));
  return secrets.filter(isNodeLeaf).flatMap((secret): Cleanup[] => {
    const mark = secret.metadata?.annotations?.[GRACE_START];
    if (wanted.has(secret.metadata?.name ?? '')) return mark === undefined ? [] : [{ do: 'unmark', secret }];
    if (mark === undefined) return [{ do: 'mark', secret }];
    const since = parseRfc3339(mark);
    if (since === undefined) {
      const problem = `expected a time in ${GRACE_START} of secret ${secret.metadata?.name}, found ${JSON.stringify(mark)}`;
      return [{ do: 'report', secret, problem }];
    }
    return now.getTime() - floorToMs(since).getTime() > GRACE_MS ? [{ do: 'delete', secret }] : [];
  });
}

function isNodeLeaf({ metadata }: Secret): boolean {
  return NODE_LEAVES.some(({ prefix }) => metadata?.name?.startsWith(prefix));
}

/** Removes the leaves of nodes that have been gone for three days (spec 40, section 6). */
export function certCleanerReconcile(kube: Kube): Reconcile {
  return async (_key, { clock, events, signal }) => {
    const nodes = await controlPlaneNodes(kube, signal);
    const { items } = await listAll(kube, SECRETS, { namespace: ETCD_NAMESPACE, signal });
    const nodeNames = nodes.map(({ metadata }) => metadata?.name ?? '');
    const steps = decideCleanup(items, nodeNames, clock.now());
    const failures: unknown[] = steps.flatMap(step => (step.do === 'report' ? [new Error(step.problem)] : []));
    // Nothing is deleted in a run that finds a mark it cannot read (spec 40, X-3).
    const isTrusted = failures.length === 0;
    for (const step of steps) {
      if (step.do === 'report' || (step.do === 'delete' && !isTrusted)) continue;
      try {
        await carryOut(step);
      } catch (error) {
        // Somebody else was at it: the next hour is soon enough.
        if (!isConflict(error) && !isNotFound(error)) failures.push(error);
      }
    }
    throwIfAny(failures);

    async function carryOut(step: Exclude<Cleanup, { do: 'report' }>): Promise<void> {
      const { secret } = step;
      const { uid, resourceVersion } = secret.metadata ?? {};
      if (step.do === 'delete') {
        await kube.delete(SECRETS, keyOf(secret), { preconditions: { uid, resourceVersion }, signal });
        reportDelete(events, SECRETS, secret);
        return;
      }
      const { [GRACE_START]: _mark, ...others } = secret.metadata?.annotations ?? {};
      const annotations = step.do === 'mark' ? { ...others, [GRACE_START]: formatRfc3339(clock.now()) } : others;
      await kube.update(SECRETS, { ...secret, metadata: { ...secret.metadata, annotations } }, { signal });
    }
  };
}
