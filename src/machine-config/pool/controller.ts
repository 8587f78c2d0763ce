import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import type { Reconcile, ReconcileContext, Result } from '../../controller/reconcile.ts';
import { updateStatus } from '../../controller/status.ts';
import { isConflict, isNotFound } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES } from '../../kube/resource.ts';
import { MACHINE_CONFIG_POOLS, type MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import {
  CLUSTER,
  CONTROL_PLANE_TOPOLOGY,
  CONTROLLER_CONFIG_NAME,
  MASTER_POOL,
} from '../../machine-config-api/names.ts';
import type { ControllerCaches } from '../controller/caches.ts';
import { type EventsAbout, involvedObject } from '../events.ts';
import { type ControllerGauges, noGauges } from '../metrics.ts';
import { isEmptySelector } from '../selector.ts';
import { candidatesOf } from './candidates.ts';
import { masterPatch } from './masters.ts';
import { maxUnavailable } from './max-unavailable.ts';
import { membershipOf, nodesOfPool } from './membership.ts';
import type { NodePatch } from './node-patch.ts';
import { isStranded } from './node-state.ts';
import { poolProblems } from './problems.ts';
import { poolStatus } from './status.ts';
import { wantedTaints } from './taint.ts';
import { openPromises, targetNodes } from './targeting.ts';

export interface NodeParts {
  readonly kube: Kube;
  readonly caches: Pick<ControllerCaches, 'controllerConfigs' | 'pools' | 'nodes' | 'operatorPods' | 'schedulers'>;
  readonly eventsAbout: EventsAbout;
  readonly gauges?: ControllerGauges | undefined;
}

const SELECTING_ALL = 'This machineconfigpool is selecting all nodes. A non-empty selector is required.';
/** Nodes that are written to at a time. */
const WRITES_AT_A_TIME = 8;

/** Brings the nodes of a pool to its config, so many at a time, and says how far they are (spec 50, section 8). */
export function nodeReconcile(parts: NodeParts): Reconcile {
  const alerted = new Set<string>();
  return async (name, context): Promise<Result | void> => {
    const { caches, eventsAbout } = parts;
    const pool = caches.pools.get({ name });
    if (pool === undefined) return;
    const selector = pool.spec?.nodeSelector;
    if (selector !== undefined && isEmptySelector(selector)) {
      eventsAbout(involvedObject(MACHINE_CONFIG_POOLS, pool)).event('Warning', 'SelectingAll', SELECTING_ALL);
      return;
    }
    if (name === MASTER_POOL) await openOrCloseMasters(parts, context);
    if (!pool.spec?.configuration?.name) return;
    const isResting = pool.metadata?.deletionTimestamp !== undefined || pool.spec.paused === true;
    try {
      if (!isResting) await rollOut(parts, pool, context);
    } finally {
      countAlerts(parts, name, alerted);
      await reportStatus(parts, name, context);
    }
  };
}

async function rollOut(parts: NodeParts, pool: MachineConfigPool, context: ReconcileContext): Promise<void> {
  const { kube, caches, eventsAbout, gauges = noGauges } = parts;
  const name = pool.metadata?.name ?? '';
  const nodes = nodesOfPool(name, caches.nodes.list(), caches.pools.list());
  const limit = maxUnavailable(pool.spec?.maxUnavailable, nodes.length);
  await prepareNodes(parts, pool, nodes, context);
  // Memory says whether there is anything to do; the choice itself is made from what the API says.
  const { nodes: candidates } = candidatesOf(pool, nodes, limit);
  const isAnyStranded = nodes.some(node => isStranded(node, pool));
  if (candidates.length === 0 && !isAnyStranded && openPromises(pool, nodes).length === 0) return;
  const { targeted, deferred } = await targetNodes(kube, name, operatorNode(caches), { signal: context.signal });
  const events = eventsAbout(involvedObject(MACHINE_CONFIG_POOLS, pool));
  if (deferred !== undefined && targeted.length > 0) {
    events.event(
      'Normal',
      'DeferringOperatorNodeUpdate',
      `Deferring update of machine config operator node ${deferred}`,
    );
  }
  if (targeted.length === 0) return;
  const target = `MachineConfig: ${pool.spec?.configuration?.name ?? ''}`;
  const message =
    targeted.length === 1
      ? `Targeted node ${targeted[0]} to ${target}`
      : `Set target for ${targeted.length} nodes to ${target}`;
  events.event('Normal', 'SetDesiredConfig', message);
  gauges.state(
    'machine-config-controller-node',
    'Sync Machine Config Pool',
    name,
    context.clock.now().getTime() / 1000,
  );
}

/** Labels and taints control-plane nodes by what the scheduler says, whatever becomes of their pool (spec 50, ND-7). */
async function openOrCloseMasters(parts: NodeParts, context: ReconcileContext): Promise<void> {
  const { caches } = parts;
  const scheduler = caches.schedulers.get({ name: CLUSTER });
  if (scheduler === undefined) return;
  const isSchedulable = scheduler.spec?.mastersSchedulable ?? false;
  const nodes = nodesOfPool(MASTER_POOL, caches.nodes.list(), caches.pools.list());
  await patchNodes(parts, nodes, node => masterPatch(node, isSchedulable), context);
}

/** Writes topology and taint of nodes, where they differ (spec 50, 8.3 and 8.5). */
async function prepareNodes(
  parts: NodeParts,
  pool: MachineConfigPool,
  nodes: readonly Node[],
  context: ReconcileContext,
): Promise<void> {
  const topology =
    parts.caches.controllerConfigs.get({ name: CONTROLLER_CONFIG_NAME })?.spec?.infra?.status?.controlPlaneTopology ??
    '';
  await patchNodes(parts, nodes, node => nodePatch(node, pool, topology), context);
}

async function patchNodes(
  { kube, caches }: NodeParts,
  nodes: readonly Node[],
  patchOf: (node: Node) => NodePatch | undefined,
  context: ReconcileContext,
): Promise<void> {
  const waiting = nodes.flatMap(node => {
    const patch = patchOf(node);
    return patch === undefined ? [] : [{ node, patch }];
  });
  const write = async (): Promise<void> => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      const { node, patch } = next;
      const body = { ...patch, metadata: { ...patch.metadata, resourceVersion: node.metadata?.resourceVersion } };
      try {
        caches.nodes.remember(
          await kube.patch(
            NODES,
            { name: node.metadata?.name ?? '' },
            { type: 'merge', body },
            { signal: context.signal },
          ),
        );
      } catch (error) {
        // None of this is worth holding back a rollout; the node's next event brings another chance (spec 50, ND-30).
        if (isConflict(error) || isNotFound(error)) continue;
        context.log.warn({ node: node.metadata?.name, why: errorText(error) }, 'node could not be labelled or tainted');
      }
    }
  };
  await Promise.all(Array.from({ length: WRITES_AT_A_TIME }, write));
}

/** What a node of a pool should have besides its target; undefined when it has it. */
function nodePatch(node: Node, pool: MachineConfigPool, topology: string): NodePatch | undefined {
  const isTopologyNew = topology !== '' && node.metadata?.annotations?.[CONTROL_PLANE_TOPOLOGY] !== topology;
  const taints = wantedTaints(node, pool);
  if (!isTopologyNew && taints === undefined) return undefined;
  return {
    ...(isTopologyNew && { metadata: { annotations: { [CONTROL_PLANE_TOPOLOGY]: topology } } }),
    ...(taints !== undefined && { spec: { taints } }),
  };
}

/** The node of the operator's pod, where there is exactly one (spec 50, ND-24). */
function operatorNode({ operatorPods }: NodeParts['caches']): string | undefined {
  const pods = operatorPods.list();
  return pods.length === 1 ? pods[0]?.spec?.nodeName : undefined;
}

/** Counts nodes of a pool whose custom pool is overruled (spec 50, ND-3), as long as they are there. */
function countAlerts({ caches, gauges = noGauges }: NodeParts, name: string, alerted: Set<string>): void {
  const pools = caches.pools.list();
  for (const node of nodesOfPool(name, caches.nodes.list(), pools)) {
    const membership = membershipOf(node, pools);
    if (membership.kind !== 'member') continue;
    gauges.poolAlert(node.metadata?.name ?? '', membership.alert);
    alerted.add(node.metadata?.name ?? '');
  }
  for (const node of alerted) {
    if (caches.nodes.get({ name: node }) !== undefined) continue;
    gauges.poolAlert(node, undefined);
    alerted.delete(node);
  }
}

async function reportStatus(
  { kube, caches }: NodeParts,
  name: string,
  { clock, signal }: ReconcileContext,
): Promise<void> {
  const [allNodes, pools] = [caches.nodes.list(), caches.pools.list()];
  const nodes = nodesOfPool(name, allNodes, pools);
  const controllerConfig = caches.controllerConfigs.get({ name: CONTROLLER_CONFIG_NAME });
  const now = clock.now();
  try {
    const { object } = await updateStatus(
      kube,
      MACHINE_CONFIG_POOLS,
      { name },
      pool => ({
        ...pool,
        status: poolStatus(pool, nodes, controllerConfig, now, poolProblems(pool, nodes, allNodes, pools)),
      }),
      { clock, signal, cached: () => caches.pools.get({ name }) },
    );
    caches.pools.remember(object);
  } catch (error) {
    if (!isNotFound(error)) throw error;
  }
}
