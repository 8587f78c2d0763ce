import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { isConflict, isNotFound } from '../../kube/error.ts';
import { listAll } from '../../kube/list.ts';
import type { CallOptions, Kube } from '../../kube/port.ts';
import { NODES } from '../../kube/resource.ts';
import { MACHINE_CONFIG_POOLS, type MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import { DESIRED_CONFIG } from '../../machine-config-api/names.ts';
import { type Choice, candidatesOf, chooseNodes } from './candidates.ts';
import { maxUnavailable } from './max-unavailable.ts';
import { nodesOfPool } from './membership.ts';
import { isReady, isStranded, isTargeted, targetingPatch } from './node-state.ts';
import { encodePromise, promiseOf, TARGETING } from './promise.ts';
import { wantedTaints } from './taint.ts';

export interface TargetingOutcome {
  /** Nodes that got a new target. */
  readonly targeted: readonly string[];
  readonly deferred: string | undefined;
}

/**
 * Targets as many nodes of a pool as may be (spec 50, 8.3 and 8.4). More controllers than one may do this at a time, and one may
 * die at any point, without the limit being exceeded:
 *
 * 1. The pool is read, and then all nodes, both from the API itself.
 * 2. The choice is written into the pool, if the pool is still the one that was read. From now on it counts for everybody.
 * 3. Each chosen node is changed, if it is still the one that was read.
 *
 * Nodes that failed with a config which is no longer wanted are told first: they are unavailable anyhow, so it takes no promise.
 * A promise is dropped only by somebody who has seen the node targeted, not ready or gone, and then 3. fails for everybody else.
 * Throws a conflict where somebody was faster in 2.; nothing has happened then.
 */
export async function targetNodes(
  kube: Kube,
  poolName: string,
  operatorNode: string | undefined,
  options: CallOptions = {},
): Promise<TargetingOutcome> {
  const pool = await kube.get(MACHINE_CONFIG_POOLS, { name: poolName }, options);
  const pools = (await listAll(kube, MACHINE_CONFIG_POOLS, options)).items;
  const nodes = nodesOfPool(poolName, (await listAll(kube, NODES, options)).items, pools);
  const { stranded, open, affordable, choice, config } = chooseFor(pool, nodes, operatorNode);
  const deferred = choice.deferred?.metadata?.name;
  const chosen = [...open.slice(0, affordable), ...choice.nodes];
  if (chosen.length > 0) {
    const promise = encodePromise({ config, nodes: [...open, ...choice.nodes].map(nameOf) });
    const { resourceVersion } = pool.metadata ?? {};
    const body = { metadata: { resourceVersion, annotations: { [TARGETING]: promise } } };
    await kube.patch(MACHINE_CONFIG_POOLS, { name: poolName }, { type: 'merge', body }, options);
  }
  const targeted: string[] = [];
  for (const node of [...stranded, ...chosen]) {
    if (await targetNode(kube, node, pool, options)) targeted.push(nameOf(node));
  }
  return { targeted, deferred };
}

interface PoolChoice {
  readonly config: string;
  /** Nodes that failed with a config which the pool no longer wants. */
  readonly stranded: readonly Node[];
  /** Promised before and not done. They stay promised, and come first. */
  readonly open: readonly Node[];
  /** How many of those may be targeted now: all of them, unless the limit was lowered since. */
  readonly affordable: number;
  readonly choice: Choice;
}

function chooseFor(pool: MachineConfigPool, nodes: readonly Node[], operatorNode: string | undefined): PoolChoice {
  const config = pool.spec?.configuration?.name ?? '';
  const mayTarget = config !== '' && pool.spec?.paused !== true && pool.metadata?.deletionTimestamp === undefined;
  if (!mayTarget) return { config, stranded: [], open: [], affordable: 0, choice: { nodes: [] } };
  const stranded = nodes.filter(node => isStranded(node, pool));
  const open = openPromises(pool, nodes).filter(node => !stranded.includes(node));
  const limit = maxUnavailable(pool.spec?.maxUnavailable, nodes.length);
  const others = nodes.filter(node => !open.includes(node));
  const affordable = candidatesOf(pool, others, limit).capacity;
  const { capacity, nodes: found } = candidatesOf(pool, nodes, limit, new Set(open.map(nameOf)));
  const candidates = { capacity, nodes: found.filter(node => !stranded.includes(node)) };
  return { config, stranded, open, affordable, choice: chooseNodes(pool, candidates, operatorNode) };
}

/** The nodes that were promised a target and neither have it nor lost the right to it. */
export function openPromises(pool: MachineConfigPool, nodes: readonly Node[]): Node[] {
  const promise = promiseOf(pool);
  const isKept = (node: Node) =>
    isTargeted(node, pool) || node.metadata?.annotations?.[DESIRED_CONFIG] === promise.config;
  return nodes.filter(node => promise.nodes.includes(nameOf(node)) && !isKept(node) && isReady(node));
}

/** False where the node is not the one any more that the choice was made from; the next pass looks again. */
async function targetNode(kube: Kube, node: Node, pool: MachineConfigPool, options: CallOptions): Promise<boolean> {
  const annotations = targetingPatch(node, pool);
  if (annotations === undefined) return false;
  const targeted: Node = {
    ...node,
    metadata: {
      ...node.metadata,
      annotations: { ...node.metadata?.annotations, ...(annotations as Record<string, string>) },
    },
  };
  const taints = wantedTaints(targeted, pool);
  const body = {
    metadata: { resourceVersion: node.metadata?.resourceVersion, annotations },
    ...(taints !== undefined && { spec: { taints } }),
  };
  try {
    await kube.patch(NODES, { name: nameOf(node) }, { type: 'merge', body }, options);
    return true;
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return false;
    throw error;
  }
}

function nameOf({ metadata }: Node): string {
  return metadata?.name ?? '';
}
