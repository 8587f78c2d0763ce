import assert from 'node:assert/strict';
import type { Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import type { Condition } from '../../controller/condition.ts';
import { isManaged } from '../../controller/management-state.ts';
import { type Reconcile, type ReconcileContext, type Result, RetryRequest } from '../../controller/reconcile.ts';
import { applyPod } from '../../kube/apply.ts';
import { seconds } from '../../kube/duration.ts';
import { semanticallyEqual } from '../../kube/equality.ts';
import { isNotFound } from '../../kube/error.ts';
import type { EventRecorder, RecordedEvent } from '../../kube/events.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, NODES, PODS } from '../../kube/resource.ts';
import { condition } from '../condition.ts';
import { mirrorPodName, type StaticPodOperatorConfig } from '../config.ts';
import { isInTransition, type NodeStatus, readNodeStatus, storedNodeStatus } from '../node-status.ts';
import { liveObjects, notFound, type Objects } from '../objects.ts';
import {
  type StaticPodOperator,
  type StaticPodOperatorResource,
  type StaticPodOperatorSpec,
  type StaticPodOperatorStatus,
  withConditions,
} from '../operator.ts';
import { ownerOf } from '../revision/build.ts';
import { revisionStatusName } from '../revision/number.ts';
import { chooseNode, chooseWorst, hasIdleTarget, otherNodeDown, revisionToStart, ringFrom } from './choice.ts';
import { rolloutConditions } from './conditions.ts';
import { NEIGHBOUR_AGAIN_MS, NeighbourWatch } from './neighbour.ts';
import { type Operand, operandOf, timeOf } from './operand.ts';
import { minReadyWaitMs, retryAfter } from './pause.ts';
import { installerPod } from './pod.ts';
import { installerPodName } from './pod-name.ts';
import { MissingResources, requireResources } from './required.ts';
import { nextNodeState } from './transition.ts';

export type InstallerControllerConfig = Pick<
  StaticPodOperatorConfig,
  | 'operandNamespace'
  | 'staticPodName'
  | 'revisioned'
  | 'unrevisioned'
  | 'installer'
  | 'startupMonitor'
  | 'mayDisrupt'
  | 'neighbour'
>;

export interface InstallerControllerOptions {
  readonly config: InstallerControllerConfig;
  readonly operator: StaticPodOperator;
  readonly kube: Kube;
  readonly cached: Objects;
  /** With the component name of this controller. */
  readonly events: EventRecorder;
}

/** How soon a replacement that was not allowed is asked for again. */
const ASK_AGAIN_MS = seconds(30);
const CONDITION = 'InstallerControllerDegraded';

/** Brings the published revision to the nodes, one after the other (spec 30, section 9). */
export function installerReconcile(options: InstallerControllerOptions): Reconcile {
  const { operator, cached, events, kube, config } = options;
  const neighbour = new NeighbourWatch({ neighbour: config.neighbour, kube });
  let lastPause = '';
  return async (_key, context) => {
    const known = await operator.read(context.signal);
    // The cache will tell when it has caught up, and that brings the next pass.
    if (operator.isBehind(known) || !isManaged(known.spec?.managementState)) return undefined;
    const nodes = (known.status?.nodeStatuses ?? []).map(readNodeStatus);
    if (await hasReplacedNode(nodes, cached)) return undefined;
    try {
      await requireAll(options, known, context);
      const step = await new Pass({ ...options, neighbour }, known, nodes, context).next();
      await store(options, step.change, condition(CONDITION, 'False'), context);
      for (const { type, reason, message } of step.events ?? []) events.event(type, reason, message);
      const pause = step.paused ?? '';
      if (pause !== '' && pause !== lastPause) events.event('Warning', 'NodeRolloutPaused', pause);
      lastPause = pause;
      return step.againAt === undefined ? undefined : { againAt: step.againAt };
    } catch (error) {
      if (error instanceof RetryRequest) throw error;
      const problem = condition(CONDITION, 'True', 'Error', errorText(error));
      await store(options, undefined, problem, context).catch((writeError: unknown) => {
        context.log.warn({ err: writeError }, 'the failure of a pass could not be reported');
      });
      throw error;
    }
  };
}

/** What one pass ends with: at most one node entry changes. */
interface Step extends Result {
  readonly change?: { readonly before: NodeStatus; readonly after: NodeStatus } | undefined;
  /** Told once the change is stored. */
  readonly events?: readonly Omit<RecordedEvent, 'component'>[];
  /** Why a node that should move may not. */
  readonly paused?: string | undefined;
}

class Pass {
  readonly #options: InstallerControllerOptions & { readonly neighbour: NeighbourWatch };
  readonly #nodes: readonly NodeStatus[];
  readonly #spec: StaticPodOperatorSpec;
  readonly #published: number;
  readonly #context: ReconcileContext;
  #operands = new Map<string, Operand | undefined>();

  constructor(
    options: InstallerControllerOptions & { readonly neighbour: NeighbourWatch },
    { spec = {}, status = {} }: StaticPodOperatorResource,
    nodes: readonly NodeStatus[],
    context: ReconcileContext,
  ) {
    this.#options = options;
    this.#spec = spec;
    this.#published = status.latestAvailableRevision ?? 0;
    this.#nodes = nodes;
    this.#context = context;
  }

  /** Spec 30, 9.3. */
  async next(): Promise<Step> {
    const nodes = this.#nodes;
    if (nodes.length === 0) return {};
    const stuck = nodes.find(hasIdleTarget);
    if (stuck !== undefined) return { change: { before: stuck, after: { ...stuck, targetRevision: 0 } } };
    const operands = await Promise.all(nodes.map(({ nodeName }) => this.#readOperand(nodeName)));
    this.#operands = new Map(nodes.map(({ nodeName }, index) => [nodeName, operands[index]]));
    const operandOf = (nodeName: string) => this.#operands.get(nodeName);

    let choice = chooseNode(nodes, operandOf);
    const chosen = nodes[choice.index] as NodeStatus;
    if (!isInTransition(chosen) && this.#otherDown(chosen) !== undefined) choice = chooseWorst(nodes, operandOf);
    const waitMs = minReadyWaitMs(operands, this.#options.config.installer.minReadyMs ?? 0, this.#now);
    if (waitMs > 0) return { againAt: new Date(this.#now.getTime() + waitMs) };

    for (const { node, previous, reason } of ringFrom(nodes, choice)) {
      if (isInTransition(node)) return this.#advance(node);
      const revision = revisionToStart(node, previous, this.#published);
      if (revision !== 0) return this.#start(node, revision, reason);
    }
    return {};
  }

  /** Only says where the node is to go; its installer is made by a later pass, when everybody can see that. */
  async #start(node: NodeStatus, revision: number, reason: string): Promise<Step> {
    assert.ok(!this.#nodes.some(isInTransition), 'a node is started while another one is in transition');
    const after = { ...node, targetRevision: revision };
    const other = this.#otherDown(node);
    if (other !== undefined) return { paused: `${notTouching(node)} because the one on node "${other}" is not ready` };
    const refused = await this.#ask(after);
    if (refused !== undefined) return refused;
    if (await this.#isNeighbourAtWork(node)) return { againAt: this.#neighbourAgainAt };
    const message = `Updating node "${node.nodeName}" from revision ${node.currentRevision} to ${revision} because ${reason}`;
    return {
      change: { before: node, after },
      events: [{ type: 'Normal', reason: 'NodeTargetRevisionChanged', message }],
    };
  }

  /** Spec 30, 9.6. */
  async #advance(node: NodeStatus): Promise<Step> {
    const { kube, config } = this.#options;
    const { signal } = this.#context;
    const { operandNamespace: namespace } = config;
    const name = installerPodName(node);
    let pod = await getIfPresent(kube, PODS, { namespace, name }, { signal });
    if (pod !== undefined && (await this.#isOfAnotherNode(pod))) {
      await this.#delete(pod);
      pod = undefined;
    }
    if (this.#published <= node.targetRevision) {
      const after = retryAfter(node);
      // Strictly after that time, so a millisecond later.
      if (after !== undefined && this.#now <= after) return { againAt: new Date(after.getTime() + 1) };
      if (pod === undefined) {
        // Nothing has happened on this node yet, so it can still be called off in favour of the one that is down.
        if (this.#otherDown(node) !== undefined)
          return { change: { before: node, after: { ...node, targetRevision: 0 } } };
        const refused = await this.#ask(node);
        if (refused !== undefined) return refused;
        if (await this.#isNeighbourAtWork(node)) {
          const againAt = this.#neighbourAgainAt;
          if (this.#options.neighbour.comesFirst) return { againAt };
          return { change: { before: node, after: { ...node, targetRevision: 0 } }, againAt };
        }
        pod = await this.#install(node);
      }
    }
    const { node: after, ...transition } = nextNodeState({
      node,
      published: this.#published,
      installerPod: pod,
      operand: await this.#readOperand(node.nodeName),
      hasStartupMonitor: await this.#hasStartupMonitor(),
      now: this.#now,
    });
    if (transition.deletesInstaller) await this.#delete(pod);
    if (pod === undefined && transition.installerFailed) {
      this.#options.events.event('Warning', 'InstallerPodDisappeared', notFound(PODS, name).message);
    }
    if (semanticallyEqual(node, after)) return {};
    const events: Omit<RecordedEvent, 'component'>[] = transition.installerErrors.map((_error, index, errors) => {
      const message = `installer errors: ${errors.slice(0, index + 1).join('\n')}`;
      return { type: 'Warning', reason: 'InstallerPodFailed', message };
    });
    if (after.currentRevision !== node.currentRevision) {
      const [from, to] = [node.currentRevision, after.currentRevision];
      const message = `Updated node "${node.nodeName}" from revision ${from} to ${to} because ${transition.reason}`;
      events.push({ type: 'Normal', reason: 'NodeCurrentRevisionChanged', message });
    }
    return { change: { before: node, after }, events };
  }

  /** Asks whether the operand on a node may be replaced. Undefined: it may. */
  async #ask({ nodeName, targetRevision: revision }: NodeStatus): Promise<Step | undefined> {
    const isOperandReady = this.#operands.get(nodeName)?.readySince !== undefined;
    const permission = await this.#options.config.mayDisrupt?.({ nodeName, revision, isOperandReady });
    if (permission === undefined || permission.allowed) return undefined;
    const againAt = new Date(this.#now.getTime() + ASK_AGAIN_MS);
    return { againAt, paused: `${notTouching({ nodeName })} because ${permission.reason}` };
  }

  /** What is down already is not restarted but brought back: nobody is waited for. */
  async #isNeighbourAtWork({ nodeName }: NodeStatus): Promise<boolean> {
    if (this.#operands.get(nodeName)?.readySince === undefined) return false;
    return this.#options.neighbour.isRestarting(nodeName, this.#context.clock, this.#context.signal);
  }

  get #neighbourAgainAt(): Date {
    return new Date(this.#now.getTime() + NEIGHBOUR_AGAIN_MS);
  }

  /** Undefined: somebody removed it at once. */
  async #install(node: NodeStatus): Promise<Pod | undefined> {
    const { config, kube, events } = this.#options;
    const { signal } = this.#context;
    try {
      const status = await kube
        .get(
          CONFIG_MAPS,
          { namespace: config.operandNamespace, name: revisionStatusName(node.targetRevision) },
          { signal },
        )
        .catch((error: unknown) => {
          throw new Error(`unable to set installer pod ownerrefs: ${errorText(error)}`, { cause: error });
        });
      const hasStartupMonitor = await this.#hasStartupMonitor();
      const pod = await installerPod(config, { node, spec: this.#spec, hasStartupMonitor, owner: ownerOf(status) });
      await applyPod({ kube, events, signal }, pod);
      const key = { namespace: config.operandNamespace, name: pod.metadata?.name ?? '' };
      return await getIfPresent(kube, PODS, key, { signal });
    } catch (error) {
      const { targetRevision, lastFailedCount, nodeName } = node;
      const what = `Failed to create installer pod for revision ${targetRevision} count ${lastFailedCount} on node "${nodeName}"`;
      events.event('Warning', 'InstallerPodFailed', `${what}: ${errorText(error)}`);
      throw error;
    }
  }

  /** Left over from a machine that had the node's name before: what it installed is not there. */
  async #isOfAnotherNode({ metadata, spec }: Pod): Promise<boolean> {
    const node: Node | undefined = await this.#options.cached.get(NODES, { name: spec?.nodeName ?? '' });
    const [madeAt, joinedAt] = [timeOf(metadata?.creationTimestamp), timeOf(node?.metadata?.creationTimestamp)];
    return madeAt !== undefined && joinedAt !== undefined && madeAt < joinedAt;
  }

  async #delete(pod: Pod | undefined): Promise<void> {
    const { namespace, name = '', uid } = pod?.metadata ?? {};
    const options = { signal: this.#context.signal, preconditions: { uid } };
    await this.#options.kube.delete(PODS, { namespace, name }, options).catch((error: unknown) => {
      if (!isNotFound(error)) throw error;
    });
  }

  async #readOperand(nodeName: string): Promise<Operand | undefined> {
    const { kube, config } = this.#options;
    const key = { namespace: config.operandNamespace, name: mirrorPodName(config, nodeName) };
    const pod = await getIfPresent(kube, PODS, key, { signal: this.#context.signal });
    return pod === undefined ? undefined : operandOf(pod, this.#now);
  }

  async #hasStartupMonitor(): Promise<boolean> {
    return (await this.#options.config.startupMonitor?.()) ?? false;
  }

  #otherDown(node: NodeStatus): string | undefined {
    return otherNodeDown(node, this.#nodes, nodeName => this.#operands.get(nodeName));
  }

  get #now(): Date {
    return this.#context.clock.now();
  }
}

function notTouching({ nodeName }: Pick<NodeStatus, 'nodeName'>): string {
  return `Not replacing the operand on node "${nodeName}"`;
}

/** A cache that is behind must not make anybody report what is not missing. */
async function requireAll(
  { config, kube, cached, events }: InstallerControllerOptions,
  { status = {} }: StaticPodOperatorResource,
  { signal }: ReconcileContext,
): Promise<void> {
  const published = status.latestAvailableRevision ?? 0;
  try {
    await requireResources(cached, config, published);
    return;
  } catch (error) {
    if (!(error instanceof MissingResources)) throw error;
  }
  try {
    await requireResources(liveObjects(kube, signal), config, published);
  } catch (error) {
    if (error instanceof MissingResources) {
      events.event('Warning', 'RequiredInstallerResourcesMissing', error.groups.join(', '));
    }
    throw error;
  }
}

/** Whether an entry is about a node that has since been replaced by another of that name (spec 30, 22.3). */
async function hasReplacedNode(nodes: readonly NodeStatus[], cached: Objects): Promise<boolean> {
  for (const { nodeName, nodeUID } of nodes) {
    if (nodeUID === '') continue;
    const node: Node | undefined = await cached.get(NODES, { name: nodeName });
    if (node?.metadata?.uid !== nodeUID) return true;
  }
  return false;
}

/** One write for the entry and for everything that follows from it. */
async function store(
  { operator }: InstallerControllerOptions,
  change: Step['change'],
  health: Condition,
  { clock, signal }: ReconcileContext,
): Promise<void> {
  const mutate = (status: StaticPodOperatorStatus): StaticPodOperatorStatus => {
    const nodeStatuses = (status.nodeStatuses ?? []).map(stored => {
      if (stored.nodeName !== change?.before.nodeName) return stored;
      // Somebody else moved this node meanwhile: what was decided is about a state that no longer is.
      if (!semanticallyEqual(readNodeStatus(stored), change.before)) {
        throw new RetryRequest(`node status ${stored.nodeName} changed during the pass`);
      }
      return storedNodeStatus(change.after);
    });
    if (change !== undefined && !nodeStatuses.some(({ nodeName }) => nodeName === change.before.nodeName)) {
      throw new RetryRequest(`node status ${change.before.nodeName} was removed during the pass`);
    }
    const conditions = rolloutConditions(nodeStatuses.map(readNodeStatus), status.latestAvailableRevision ?? 0);
    return withConditions({ ...status, nodeStatuses }, [health, ...conditions], clock.now());
  };
  await operator.update(mutate, signal);
}
