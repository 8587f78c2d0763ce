import { isInTransition, type NodeStatus } from '../node-status.ts';
import { parseRevision } from '../revision/number.ts';
import type { Operand } from './operand.ts';

/** The operand of a node; undefined: it has none. */
export type OperandOf = (nodeName: string) => Operand | undefined;

export interface Choice {
  readonly index: number;
  readonly reason: string;
}

/** Which node is to be worked on first: the one in the worst state, so that a healthy one is never taken down before it. */
export function chooseNode(nodes: readonly NodeStatus[], operandOf: OperandOf): Choice {
  if (nodes.length === 0) throw new Error('nodes array cannot be empty');
  return progressing(nodes) ?? failedNewer(nodes) ?? chooseWorst(nodes, operandOf);
}

/** Spec 30, 9.4, rule 1. */
function progressing(nodes: readonly NodeStatus[]): Choice | undefined {
  return first(nodes, ({ nodeName, targetRevision }) =>
    targetRevision === 0 ? undefined : `node ${nodeName} is progressing towards ${targetRevision}`,
  );
}

/** Rule 2. */
function failedNewer(nodes: readonly NodeStatus[]): Choice | undefined {
  const newest = Math.max(...nodes.map(({ currentRevision }) => currentRevision));
  return first(nodes, ({ nodeName, lastFailedRevision }) =>
    lastFailedRevision > newest ? `node ${nodeName} is progressing with failed revisions` : undefined,
  );
}

/** By what runs alone: rules 3 to 6. */
export function chooseWorst(nodes: readonly NodeStatus[], operandOf: OperandOf): Choice {
  const running = nodes.map(({ nodeName }) => operandOf(nodeName));
  const revisions = running.map(operand => parseRevision(operand?.revision ?? ''));
  const unusable = first(nodes, ({ nodeName }, index) => {
    const operand = running[index];
    if (operand === undefined) return `node ${nodeName} static pod not found`;
    if (revisions[index] === undefined) return `node ${nodeName} has an invalid current revision "${operand.revision}"`;
    return undefined;
  });
  if (unusable !== undefined) return unusable;

  const notReady = lowest(nodes, index => (running[index]?.state === 'ready' ? undefined : revisions[index]));
  if (notReady !== undefined) {
    const { index, value, node } = notReady;
    return { index, reason: `node ${node.nodeName} with revision ${value} is the oldest not ready` };
  }
  const unexpected = lowest(nodes, (index, { currentRevision }) =>
    revisions[index] === currentRevision ? undefined : revisions[index],
  );
  if (unexpected !== undefined) {
    const { index, value, node } = unexpected;
    const expected = `is the oldest not matching its expected revision ${node.currentRevision}`;
    return { index, reason: `node ${node.nodeName} with revision ${value} ${expected}` };
  }
  const oldest = lowest(nodes, (_index, { currentRevision }) => currentRevision);
  if (oldest === undefined) throw new Error('nodes array cannot be empty');
  return { index: oldest.index, reason: `node ${oldest.node.nodeName} with revision ${oldest.value} is the oldest` };
}

/** The nodes in ring order from the chosen one on, with why each is looked at (spec 30, 9.3.4). */
export function ringFrom(
  nodes: readonly NodeStatus[],
  { index: start, reason }: Choice,
): { node: NodeStatus; previous: NodeStatus | undefined; reason: string }[] {
  const ring = [...nodes.slice(start), ...nodes.slice(0, start)];
  return ring.map((node, step) => ({
    node,
    previous: step === 0 ? undefined : ring[step - 1],
    reason: step === 0 ? reason : `node ${node.nodeName} is the next node in the line`,
  }));
}

/**
 * The revision a node that is not in transition is to be brought to; 0 = none (spec 30, 9.7). The first of the ring goes to
 * the published revision, and never back (T26); a follower to what its predecessor runs, unless it has failed there.
 */
export function revisionToStart(node: NodeStatus, previous: NodeStatus | undefined, published: number): number {
  if (previous === undefined) return published > node.currentRevision ? published : 0;
  if (previous.targetRevision !== 0 && previous.targetRevision !== previous.currentRevision) return 0;
  const isAhead = previous.currentRevision > node.currentRevision;
  return isAhead && node.lastFailedRevision !== previous.currentRevision ? previous.currentRevision : 0;
}

/** Whether a target is left over that leads nowhere: the node would be chosen for ever and never move (spec 30, T26). */
export function hasIdleTarget(node: NodeStatus): boolean {
  return node.targetRevision !== 0 && !isInTransition(node);
}

/**
 * Another node that is down while this one is up: replacing the operand here would leave two of them down. Undefined:
 * there is none, or there is nothing to lose here.
 */
export function otherNodeDown(
  node: NodeStatus,
  nodes: readonly NodeStatus[],
  operandOf: OperandOf,
): string | undefined {
  const isUp = ({ nodeName }: NodeStatus) => operandOf(nodeName)?.readySince !== undefined;
  if (!isUp(node)) return undefined;
  return nodes.find(other => other.nodeName !== node.nodeName && !isUp(other))?.nodeName;
}

function first(
  nodes: readonly NodeStatus[],
  reasonFor: (node: NodeStatus, index: number) => string | undefined,
): Choice | undefined {
  for (const [index, node] of nodes.entries()) {
    const reason = reasonFor(node, index);
    if (reason !== undefined) return { index, reason };
  }
  return undefined;
}

function lowest(
  nodes: readonly NodeStatus[],
  valueOf: (index: number, node: NodeStatus) => number | undefined,
): { index: number; value: number; node: NodeStatus } | undefined {
  let found: { index: number; value: number; node: NodeStatus } | undefined;
  for (const [index, node] of nodes.entries()) {
    const value = valueOf(index, node);
    if (value !== undefined && (found === undefined || value < found.value)) found = { index, value, node };
  }
  return found;
}
