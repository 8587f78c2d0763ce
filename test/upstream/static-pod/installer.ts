import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { chooseNode, revisionToStart } from '../../../src/staticpod/installer/choice.ts';
import { rolloutConditions } from '../../../src/staticpod/installer/conditions.ts';
import { operandOf } from '../../../src/staticpod/installer/operand.ts';
import { fallbackBackoffMs, installerBackoffMs, minReadyWaitMs } from '../../../src/staticpod/installer/pause.ts';
import { installerPodName } from '../../../src/staticpod/installer/pod-name.ts';
import { nextNodeState } from '../../../src/staticpod/installer/transition.ts';
import { readNodeStatus, storedNodeStatus } from '../../../src/staticpod/node-status.ts';
import { attempt, canonical, plain, unlike, unlikeAt } from '../difference.ts';
import { type Difference, type Judged, judged } from '../judged.ts';
import {
  NOW,
  type NodeStatus,
  nodeStatus,
  ODD_REVISIONS,
  type OperandPod,
  operandPod,
  REVISIONS,
  recently,
} from './status.ts';

const Now = NOW.toISOString();
const program = 'lgdiff';
const statuses = (nodes: readonly NodeStatus[]) => nodes.map(node => readNodeStatus(node));

function operandIn(pods: readonly { metadata: { name: string } }[], node: string) {
  const pod = pods.find(({ metadata }) => metadata.name === `op-${node}`);
  return pod && operandOf(pod, NOW);
}

/** Which node gets the next revision. */
const choice = judged<{ Nodes: NodeStatus[]; Pods: OperandPod[]; Now: string }>({
  name: 'installer choice',
  program,
  op: 'choose',
  generate: r => {
    const isQuiet = r.chance(0.6);
    const Nodes = r.times(1 + r.int(5), index => {
      const { targetRevision, lastFailedRevision, ...rest } = nodeStatus(r, index);
      if (isQuiet) return rest;
      return {
        ...rest,
        ...(targetRevision !== undefined && { targetRevision }),
        ...(lastFailedRevision !== undefined && { lastFailedRevision }),
      };
    });
    const Pods = Nodes.filter(() => r.chance(0.93)).map(({ nodeName, currentRevision }) => {
      const revisions = r.chance(0.5) ? [String(currentRevision)] : r.chance(0.05) ? ODD_REVISIONS : REVISIONS;
      return operandPod(r, nodeName, revisions);
    });
    return { Nodes, Pods, Now };
  },
  compare: ({ Nodes, Pods }, { out, err }) => {
    const mine = attempt(() => chooseNode(statuses(Nodes), name => operandIn(Pods, name)));
    if (mine.error !== undefined || err !== undefined) return bothFail(mine.error, err);
    const { index, reason } = out as { index: number; reason: string };
    return [
      ...unlike(`index, reason "${plain(reason)}"`, mine.value.index, index),
      ...unlike(`reason "${plain(reason)}"`, mine.value.reason, reason),
    ];
  },
});

function bothFail(mine: string | undefined, theirs: string | undefined): Difference[] {
  return (mine === undefined) === (theirs === undefined)
    ? []
    : [{ class: `failure, mine "${plain(mine)}", theirs "${plain(theirs)}"`, mine, theirs }];
}

interface Transition {
  Node: NodeStatus;
  Pods: { metadata: { name: string } }[];
  Latest: number;
  Monitor: boolean;
  Now: string;
}

/** What becomes of a node while a revision is being installed. */
const transition = judged<Transition>({
  name: 'installer transition',
  program,
  op: 'transition',
  generate: r => {
    const Node = nodeStatus(r, 0, true);
    const target = Node.targetRevision as number;
    if (r.chance(0.5)) Node.lastFailedRevision = target;
    const installer = {
      metadata: { name: installerPodName(readNodeStatus(Node)), namespace: 'ns', creationTimestamp: recently(r) },
      status: {
        phase: r.pick(['Succeeded', 'Succeeded', 'Succeeded', 'Failed', 'Running', 'Pending', 'Unknown', '']),
        ...(r.chance(0.3) && { message: 'why' }),
        containerStatuses: r.list(2, () => ({
          name: r.pick(['installer', 'x']),
          state: { ...(r.chance(0.8) && { terminated: { exitCode: 1, message: r.pick(['', 'bad\nthing']) } }) },
        })),
      },
    };
    const operand = operandPod(r, 'n0', r.chance(0.75) ? [String(target)] : [...REVISIONS, '']);
    const Pods = r.some([installer, operand], 0.93);
    return { Node, Pods, Latest: r.chance(0.8) ? target : target + r.int(4) - 1, Monitor: r.chance(0.4), Now };
  },
  compare: ({ Node, Pods, Latest, Monitor }, { out, err }) => {
    const node = readNodeStatus(Node);
    const name = installerPodName(node);
    const installerPod = Pods.find(({ metadata }) => metadata.name === name) as Pod | undefined;
    const operand = operandIn(Pods, 'n0');
    const mine = attempt(() =>
      nextNodeState({ node, published: Latest, installerPod, operand, hasStartupMonitor: Monitor, now: NOW }),
    );
    if (mine.error !== undefined || err !== undefined) return bothFail(mine.error, err);
    const theirs = out as { node: NodeStatus; failed: boolean; reason: string; deleted: boolean; name: string };
    const { value } = mine;
    return [
      ...unlike('name of the installer pod', name, theirs.name),
      ...unlikeAt(
        'node',
        canonical(storedNodeStatus(value.node)),
        canonical(storedNodeStatus(readNodeStatus(theirs.node))),
      ),
      ...unlike('installer failed', value.installerFailed, theirs.failed),
      ...unlike('reason', value.reason, theirs.reason),
      ...unlike('deletes the installer', value.deletesInstaller, theirs.deleted),
    ];
  },
});

/** Which revision a node is to get. */
const revision = judged<{ Node: NodeStatus; Prev: NodeStatus | null; Latest: number }>({
  name: 'installer revision',
  program,
  op: 'revision',
  generate: r => ({
    Node: nodeStatus(r, 0),
    Prev: r.chance(0.7) ? nodeStatus(r, 1) : null,
    Latest: r.int(9),
  }),
  compare: ({ Node, Prev, Latest }, { out }) => {
    const mine = revisionToStart(readNodeStatus(Node), Prev ? readNodeStatus(Prev) : undefined, Latest);
    return unlike(Latest < Node.currentRevision ? 'published below current' : 'revision', mine, out);
  },
});

/** Ten minutes, doubled as often, are more nanoseconds than an int64 holds. */
const OVERFLOWING_COUNT = 24;

/** How long after so many failures. */
const backoff = judged<{ Count: number }>({
  name: 'installer back-off',
  program,
  op: 'backoff',
  generate: r => ({ Count: r.int(60) }),
  compare: ({ Count }, { out }) =>
    unlike(
      Count < OVERFLOWING_COUNT ? 'back-off' : 'after many failures',
      [installerBackoffMs(Count), fallbackBackoffMs(Count)].map(Math.trunc),
      out,
    ),
});

/** How long until a node has been ready for long enough. */
const minReady = judged<{ Nodes: NodeStatus[]; Pods: OperandPod[]; MinMs: number; Now: string }>({
  name: 'installer min ready',
  program,
  op: 'wait',
  generate: r => {
    const Nodes = r.list(3, index => nodeStatus(r, index));
    const Pods = Nodes.filter(() => r.chance(0.9)).map(({ nodeName }) => operandPod(r, nodeName, REVISIONS));
    return { Nodes, Pods, MinMs: r.pick([0, 30_000, 600_000, 900_000]), Now };
  },
  compare: ({ Nodes, Pods, MinMs }, { out }) => {
    const operands = Nodes.map(({ nodeName }) => operandIn(Pods, nodeName));
    const isReadyButNotRunning = Pods.some(
      ({ status }) =>
        !['Running', 'Succeeded'].includes(status.phase) &&
        status.conditions.some(({ type, status: is }) => type === 'Ready' && is === 'True'),
    );
    return unlike(
      isReadyButNotRunning ? 'a pod is ready and does not run' : 'wait',
      minReadyWaitMs(operands, MinMs, NOW),
      out,
    );
  },
});

/** What is said about a rollout. */
const conditions = judged<{ Nodes: NodeStatus[]; Latest: number }>({
  name: 'installer conditions',
  program,
  op: 'conditions',
  generate: r => ({
    Nodes: r.list(4, index => {
      const status = nodeStatus(r, index);
      if (!r.chance(0.3)) return status;
      const failed = 3 + r.int(2);
      return { ...status, targetRevision: failed, lastFailedRevision: failed };
    }),
    Latest: r.int(7),
  }),
  compare: ({ Nodes, Latest }, { out }) => {
    const said = (
      all: readonly { type: string; status: string; reason?: string | undefined; message?: string | undefined }[],
    ) => all.map(({ type, status, reason = '', message = '' }) => ({ type, status, reason, message }));
    return unlikeAt(
      'conditions',
      said(rolloutConditions(statuses(Nodes), Latest)),
      said(out as Parameters<typeof said>[0]),
    );
  },
});

export const INSTALLER: readonly Judged[] = [choice, transition, revision, backoff, minReady, conditions];
