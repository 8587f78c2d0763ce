import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import { selectorProblem } from '../selector.ts';
import { MaxUnavailableError, maxUnavailable } from './max-unavailable.ts';
import { membershipOf } from './membership.ts';

/**
 * What is wrong with a pool, by field, whatever its machines do: limits and selectors that mean nothing, and nodes that it shares
 * with another custom pool, which 4.16 drops from all counts without a word (spec 50, trap 12).
 */
export function poolProblems(
  pool: MachineConfigPool,
  nodes: readonly Node[],
  allNodes: readonly Node[],
  pools: readonly MachineConfigPool[],
): string[] {
  const { name = '' } = pool.metadata ?? {};
  const selectors = (['nodeSelector', 'machineConfigSelector'] as const).flatMap(field => {
    const problem = selectorProblem(pool.spec?.[field]);
    return problem === undefined ? [] : [`pool ${name}: spec.${field}: ${problem}`];
  });
  return [...selectors, ...limitProblem(pool, nodes.length), ...sharedNodes(name, allNodes, pools)];
}

function limitProblem({ metadata, spec }: MachineConfigPool, nodeCount: number): string[] {
  try {
    maxUnavailable(spec?.maxUnavailable, nodeCount);
    return [];
  } catch (error) {
    if (error instanceof MaxUnavailableError) return [`pool ${metadata?.name ?? ''}: ${error.message}`];
    throw error;
  }
}

function sharedNodes(pool: string, nodes: readonly Node[], pools: readonly MachineConfigPool[]): string[] {
  return nodes.flatMap(node => {
    const membership = membershipOf(node, pools);
    if (membership.kind !== 'contradictory' || !membership.pools.includes(pool)) return [];
    return [
      `node ${node.metadata?.name ?? ''} is selected by spec.nodeSelector of several custom pools: ${[...membership.pools].sort().join(', ')}`,
    ];
  });
}
