import type { Node, Taint } from 'kubernetes-types/core/v1.d.ts';
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
  return async (name, context): Promise<Result | void> => {
    const { caches, eventsAbout } = parts;
    const pool = caches.pools.get({ name });
    if (pool === undefined) return;
    const selector = pool.spec?.nodeSelector;
    if (selector !== undefined && isEmptySelector(selector)) {
      eventsAbout(involvedObject(MACHINE_CONFIG_POOLS, pool)).event('Warning', 'SelectingAll', SELECTING_ALL);
      return;
    }
    if (!pool.spec?.configuration?.name) return;
    const isResting = pool.metadata?.deletionTimestamp !== undefined || pool.spec.paused === true;
    try {
      if (!isResting) await rollOut(parts, pool, context);
    } finally {
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
  if (candidates.length === 0 && openPromises(pool, nodes).length === 0) return;
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

/** Topology, taints, labels and taints of control-plane nodes: one write a node, where anything differs. */
async function prepareNodes(
  { kube, caches }: NodeParts,
  pool: MachineConfigPool,
  nodes: readonly Node[],
  context: ReconcileContext,
): Promise<void> {
  const topology =
    caches.controllerConfigs.get({ name: CONTROLLER_CONFIG_NAME })?.spec?.infra?.status?.controlPlaneTopology ?? '';
  const scheduler = pool.metadata?.name === MASTER_POOL ? caches.schedulers.get({ name: CLUSTER }) : undefined;
  const waiting = nodes.flatMap(node => {
    const patch = nodePatch(node, pool, topology, scheduler && (scheduler.spec?.mastersSchedulable ?? false));
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
        context.log.warn(
          { node: node.metadata?.name, why: errorText(error) },
          'node could not be prepared for an update',
        );
      }
    }
  };
  await Promise.all(Array.from({ length: WRITES_AT_A_TIME }, write));
}

interface NodePatch {
  readonly metadata: { readonly annotations?: Record<string, string>; readonly labels?: Record<string, string | null> };
  readonly spec?: { readonly taints: readonly Taint[] };
}

/** What a node of a pool should have besides its target; undefined when it has it. */
export function nodePatch(
  node: Node,
  pool: MachineConfigPool,
  topology: string,
  mastersSchedulable: boolean | undefined,
): NodePatch | undefined {
  const isTopologyNew = topology !== '' && node.metadata?.annotations?.[CONTROL_PLANE_TOPOLOGY] !== topology;
  const master = mastersSchedulable === undefined ? undefined : masterPatch(node, mastersSchedulable);
  const tainted = master?.taints === undefined ? node : { ...node, spec: { ...node.spec, taints: [...master.taints] } };
  const taints = wantedTaints(tainted, pool) ?? master?.taints;
  if (!isTopologyNew && master === undefined && taints === undefined) return undefined;
  return {
    metadata: {
      ...(isTopologyNew && { annotations: { [CONTROL_PLANE_TOPOLOGY]: topology } }),
      ...(master !== undefined && Object.keys(master.labels).length > 0 && { labels: { ...master.labels } }),
    },
    ...(taints !== undefined && { spec: { taints } }),
  };
}

/** The node of the operator's pod, where there is exactly one (spec 50, ND-24). */
function operatorNode({ operatorPods }: NodeParts['caches']): string | undefined {
  const pods = operatorPods.list();
  return pods.length === 1 ? pods[0]?.spec?.nodeName : undefined;
}

async function reportStatus(
  { kube, caches, gauges = noGauges }: NodeParts,
  name: string,
  { clock, signal }: ReconcileContext,
): Promise<void> {
  const [allNodes, pools] = [caches.nodes.list(), caches.pools.list()];
  const nodes = nodesOfPool(name, allNodes, pools);
  for (const node of nodes) {
    const membership = membershipOf(node, pools);
    if (membership.kind === 'member') gauges.poolAlert(node.metadata?.name ?? '', membership.alert);
  }
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
