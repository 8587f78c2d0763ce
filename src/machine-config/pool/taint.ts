import type { Node, Taint } from 'kubernetes-types/core/v1.d.ts';
import type { MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import { UPDATE_IN_PROGRESS_TAINT } from '../../machine-config-api/names.ts';
import { isTargeted } from './node-state.ts';

/**
 * The taints a node should have: `UpdateInProgress` while it waits to be targeted, and not any more from then on, so that pods
 * move rather to nodes that are through (spec 50, ND-30, ND-31). Undefined when nothing is to change.
 */
export function wantedTaints(node: Node, pool: MachineConfigPool): Taint[] | undefined {
  const taints = node.spec?.taints ?? [];
  const others = taints.filter(taint => !isUpdateTaint(taint));
  const isWaiting = !isTargeted(node, pool);
  if (isWaiting === others.length < taints.length) return undefined;
  return isWaiting ? [...others, { ...UPDATE_IN_PROGRESS_TAINT }] : others;
}

function isUpdateTaint({ key, effect }: Taint): boolean {
  return key === UPDATE_IN_PROGRESS_TAINT.key && effect === UPDATE_IN_PROGRESS_TAINT.effect;
}
