import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import { MASTER_POOL, OS_LABEL, WORKER_POOL } from '../../machine-config-api/names.ts';
import { selectorProblem, selects } from '../selector.ts';

/** The pools of a node (spec 50, 8.1). */
export type Membership =
  /** Belongs to no pool, and nobody minds. */
  | { readonly kind: 'unmanaged' }
  /** Belongs to several custom pools, and therefore to none: its counts would be in all of them. */
  | { readonly kind: 'contradictory'; readonly pools: readonly string[] }
  | {
      readonly kind: 'member';
      /** The pool whose machine it is. */
      readonly primary: string;
      /** All pools that look at it again when it changes, the primary one first. */
      readonly pools: readonly string[];
      /** The value of `mcc_pool_alert`: 1 when a custom pool is overruled by `master`. */
      readonly alert: 0 | 1;
    };

/** Which pools a node belongs to (spec 50, ND-1 to ND-3). */
export function membershipOf(node: Node, pools: readonly MachineConfigPool[]): Membership {
  const labels = node.metadata?.labels;
  if (labels?.[OS_LABEL] === 'windows') return { kind: 'unmanaged' };
  const names = pools
    .filter(({ spec }) => selectorProblem(spec?.nodeSelector) === undefined && selects(spec?.nodeSelector, labels))
    .map(({ metadata }) => metadata?.name ?? '');
  const custom = names.filter(name => name !== MASTER_POOL && name !== WORKER_POOL);
  const [isMaster, isWorker] = [names.includes(MASTER_POOL), names.includes(WORKER_POOL)];
  if (custom.length > 1) return { kind: 'contradictory', pools: names };
  if (custom[0] !== undefined) {
    const primary = isMaster ? MASTER_POOL : custom[0];
    return { kind: 'member', primary, pools: [primary, ...(isWorker ? [WORKER_POOL] : [])], alert: isMaster ? 1 : 0 };
  }
  if (!isMaster && !isWorker) return { kind: 'unmanaged' };
  const primary = isMaster ? MASTER_POOL : WORKER_POOL;
  return { kind: 'member', primary, pools: [primary], alert: 0 };
}

/** The machines of a pool: the nodes whose primary pool it is (spec 50, ND-4). */
export function nodesOfPool(pool: string, nodes: readonly Node[], pools: readonly MachineConfigPool[]): Node[] {
  return nodes.filter(node => {
    const membership = membershipOf(node, pools);
    return membership.kind === 'member' && membership.primary === pool;
  });
}
