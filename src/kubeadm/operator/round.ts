import { minutes } from '../../kube/duration.ts';
import { floorToMs, parseRfc3339 } from '../../kube/time.ts';
import type { Wanted } from '../wanted.ts';
import { type Cluster, isInRound, type NodeSight } from './cluster.ts';
import { differencesFrom, goalOf, isAsked, type NodeGoal } from './goal.ts';

/** What is asked next, and of whom; everything else waits (spec 80, KA-6). */
export interface RoundDecision {
  readonly step: RoundStep;
  /** Who holds up what would be done otherwise, with what would end it. */
  readonly waitingFor: readonly { readonly who: string; readonly why: string }[];
  /** When to decide again, if nothing changes before. */
  readonly againAt: Date | undefined;
}

export type RoundStep =
  | { readonly do: 'nothing' }
  | { readonly do: 'order'; readonly node: string; readonly wanted: Wanted; readonly because: string }
  /** The node is away, and nobody waits for it: what was asked of it is taken back, so that it never works beside another one. */
  | { readonly do: 'withdraw'; readonly node: string };

/** A round that left something as it was is asked for again after this long: meanwhile somebody may have changed what it was about. */
const AGAIN_MS = minutes(1);

/**
 * Asks at most one node for something, and only when no other one could suffer from it: a control-plane node when all of them work, a
 * worker when all nodes do. Workers hold up no control plane: the certificates there must not end because a worker is broken.
 */
export function decideRound(cluster: Cluster, chosen?: string): RoundDecision {
  const nodes = cluster.nodes.toSorted(inOrder);
  const tasks = nodes.map(node => taskOf(node, cluster));
  const [changed] = tasks.filter(({ node, goal, isDone }) => !isDone && node.wanted && !isAsked(goal, node.wanted));
  if (changed !== undefined) return decision(order(changed, cluster, 'something else is wanted by now'), tasks, nodes);
  const open = tasks.filter(({ node, isDone, differences }) => isDone && differences.length > 0 && isHere(node));
  const again = open.map(task => ({ task, at: againAt(task, cluster) }));
  const later = again.flatMap(({ task, at }) => (at === undefined ? [] : [task]));
  const againTimes = again.flatMap(({ at }) => (at === undefined ? [] : [at.getTime()]));
  const soonest = againTimes.length === 0 ? undefined : new Date(Math.min(...againTimes));
  // Whoever was chosen before a stop of the operator, and may have been asked by now, comes first and alone.
  const ready = again
    .filter(({ task, at }) => at === undefined && (chosen === undefined || task.node.name === chosen))
    .toSorted((a, b) => inTurn(a.task.node, b.task.node));
  for (const { task } of ready) {
    if (heldUpBy(task.node, nodes).length > 0) continue;
    const away = nodes.find(other => other.name !== task.node.name && isAway(other) && isInRound(other));
    if (away !== undefined) return decision({ do: 'withdraw', node: away.name }, tasks, nodes, soonest);
    return decision(order(task, cluster), tasks, nodes, soonest);
  }
  const { waitingFor, ...rest } = decision({ do: 'nothing' }, tasks, nodes, soonest);
  const known = new Set(waitingFor.map(({ who }) => who));
  const inVain = later
    .map(({ node, differences }) => ({ who: `node/${node.name}`, why: `it is asked again: ${differences.join('; ')}` }))
    .filter(({ who }) => !known.has(who));
  return { ...rest, waitingFor: [...waitingFor, ...inVain] };
}

interface Task {
  readonly node: NodeSight;
  readonly goal: NodeGoal;
  readonly isDone: boolean;
  readonly differences: readonly string[];
}

function taskOf(node: NodeSight, cluster: Cluster): Task {
  const goal = goalOf(node, cluster);
  return { node, goal, isDone: !isInRound(node), differences: differencesFrom(goal, node) };
}

function decision(step: RoundStep, tasks: readonly Task[], nodes: readonly NodeSight[], againAt?: Date): RoundDecision {
  const stepNode = step.do === 'nothing' ? undefined : step.node;
  const held = tasks.filter(
    ({ node, isDone, differences }) => isDone && differences.length > 0 && node.name !== stepNode,
  );
  const inRound = tasks.filter(({ node, isDone }) => !isDone && !node.isWaived).map(({ node }) => node);
  const waited = new Map(
    [...inRound, ...held.flatMap(({ node }) => heldUpBy(node, nodes))].map(node => [node.name, node] as const),
  );
  const waitingFor = [...waited.values()].map(node => ({ who: `node/${node.name}`, why: whatIsWrong(node) }));
  return { step, waitingFor, againAt };
}

/** Who has to be well again, or done, before this node is asked for anything. */
function heldUpBy(node: NodeSight, nodes: readonly NodeSight[]): readonly NodeSight[] {
  const isHealing = !isWell(node);
  return nodes.filter(other => {
    if (other.name === node.name || isAway(other)) return false;
    if (node.isControlPlane && !other.isControlPlane) return false;
    // One that is broken itself has little to lose, and may be the one that the others wait for.
    return isInRound(other) || (!isWell(other) && !isHealing);
  });
}

function isWell({ isReady, report }: NodeSight): boolean {
  return isReady && report !== undefined && report.problem === undefined;
}

/** Nobody waits for it; one that works is waited for whatever was said of it before. */
function isAway(node: NodeSight): boolean {
  return node.isWaived && !isWell(node);
}

/** Its agent says something, and it is not given up. */
function isHere(node: NodeSight): boolean {
  return node.report !== undefined && !isAway(node);
}

function whatIsWrong(node: NodeSight): string {
  const { report, isReady, wanted } = node;
  if (report === undefined) return 'its agent says nothing';
  if (report.problem !== undefined) return report.problem;
  if (!isReady) return 'it is not ready';
  return isInRound(node) ? `it works on round ${wanted?.round ?? ''}` : 'it waits for others';
}

function order({ node, goal, differences }: Task, { now }: Cluster, because = differences.join('; ')): RoundStep {
  return { do: 'order', node: node.name, wanted: wantedFrom(goal, node, now), because };
}

/** When a node that is done with the very same order, in vain, is asked for it again; undefined: now. */
function againAt({ node, goal }: Task, { now }: Cluster): Date | undefined {
  const { wanted } = node;
  if (wanted === undefined) return undefined;
  const next = wantedFrom(goal, node, now);
  if (JSON.stringify({ ...next, round: '' }) !== JSON.stringify({ ...wanted, round: '' })) return undefined;
  const asked = parseRfc3339(wanted.round);
  const at = asked && new Date(floorToMs(asked).getTime() + AGAIN_MS);
  return at !== undefined && at > now ? at : undefined;
}

function wantedFrom(goal: NodeGoal, { wanted }: NodeSight, now: Date): Wanted {
  const signers = Object.entries(goal.signers).map(([name, { bundle, signs }]) => [name, { bundle, signs }] as const);
  const account = goal.serviceAccount;
  return {
    round: newRound(wanted?.round, now),
    publishes: goal.publishes,
    signers: Object.fromEntries(signers),
    isSeparate: goal.isSeparate,
    leaves: { ...wanted?.leaves, ...Object.fromEntries(goal.due.map(({ name, from }) => [name, from])) },
    ...(account !== undefined && {
      serviceAccount: { publicKeys: account.publicKeys, signs: account.signs },
    }),
  };
}

/** A round is called after the moment it was asked for; no two of a node are called the same. */
export function newRound(before: string | undefined, now: Date): string {
  const last = before === undefined ? undefined : parseRfc3339(before);
  const lastMs = last === undefined ? 0 : floorToMs(last).getTime();
  return new Date(Math.max(now.getTime(), lastMs + 1)).toISOString();
}

/** Control-plane nodes first, then by name. */
function inOrder(a: NodeSight, b: NodeSight): number {
  return Number(b.isControlPlane) - Number(a.isControlPlane) || (a.name < b.name ? -1 : 1);
}

/** Whoever was asked longest ago comes first, so that one which differs again and again keeps no other one waiting for ever. */
function inTurn(a: NodeSight, b: NodeSight): number {
  const [asked, other] = [a, b].map(({ wanted }) => wanted?.round ?? '') as [string, string];
  if (a.isControlPlane !== b.isControlPlane || asked === other) return inOrder(a, b);
  return asked < other ? -1 : 1;
}
