import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { parseRfc3339 } from '../../kube/time.ts';
import type { MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import { MASTER_POOL, ZONE_LABEL } from '../../machine-config-api/names.ts';
import { isFailing, isReady, isTargeted, isUnavailable } from './node-state.ts';

export interface Candidates {
  /** Nodes that may be targeted, in no particular order. */
  readonly nodes: readonly Node[];
  /** How many of them may be targeted now. */
  readonly capacity: number;
}

/**
 * The nodes of a pool that may be targeted at its config, and how many of them now (spec 50, ND-21 to ND-23). `promised` are
 * nodes that a controller has undertaken to target and that may not show it yet; they are unavailable as good as.
 */
export function candidatesOf(
  pool: MachineConfigPool,
  nodes: readonly Node[],
  maxUnavailable: number,
  promised: ReadonlySet<string> = new Set(),
): Candidates {
  const isPromised = (node: Node) => promised.has(node.metadata?.name ?? '');
  const unavailable = nodes.filter(node => isUnavailable(node) || isPromised(node)).length;
  // The problem may pass, and then these nodes go on all at once.
  const failing = nodes.filter(node => isTargeted(node, pool) && isFailing(node) && !isPromised(node)).length;
  const capacity = maxUnavailable - unavailable - failing;
  if (capacity <= 0) return { nodes: [], capacity: 0 };
  return { nodes: nodes.filter(node => !isTargeted(node, pool) && isReady(node) && !isPromised(node)), capacity };
}

export interface Choice {
  readonly nodes: readonly Node[];
  /** The node of the operator's pod, left for later. */
  readonly deferred?: Node;
}

/**
 * Which candidates are targeted now. In pool `master` the operator's own node comes last (ND-24). Where there are more than may
 * be: zone by zone, the oldest first, those without a zone at the end (ND-25).
 */
export function chooseNodes(
  pool: MachineConfigPool,
  { nodes, capacity }: Candidates,
  operatorNode: string | undefined,
): Choice {
  const isDeferring = pool.metadata?.name === MASTER_POOL && nodes.length > 1;
  const deferred = isDeferring ? nodes.find(node => node.metadata?.name === operatorNode) : undefined;
  const left = nodes.filter(node => node !== deferred);
  const chosen = left.length > capacity ? inRolloutOrder(left).slice(0, capacity) : left;
  return { nodes: chosen, ...(deferred && { deferred }) };
}

/** By zone ascending, inside of a zone the oldest first; nodes without a zone last, the oldest first. */
export function inRolloutOrder(nodes: readonly Node[]): Node[] {
  const zoneOf = ({ metadata }: Node) => metadata?.labels?.[ZONE_LABEL];
  return [...nodes].sort((a, b) => {
    const [zoneA, zoneB] = [zoneOf(a), zoneOf(b)];
    if (zoneA !== zoneB) {
      if (zoneA === undefined || zoneB === undefined) return zoneA === undefined ? 1 : -1;
      return zoneA < zoneB ? -1 : 1;
    }
    return createdMs(a) - createdMs(b);
  });
}

function createdMs({ metadata }: Node): number {
  const created = parseRfc3339(metadata?.creationTimestamp ?? '');
  return created === undefined ? 0 : Number(created.nanos / 1_000_000n);
}
