import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { Condition } from '../controller/condition.ts';
import type { Reconcile } from '../controller/reconcile.ts';
import type { RecordedEvent } from '../kube/events.ts';
import { NODES } from '../kube/resource.ts';
import { formatGoTime, parseRfc3339 } from '../kube/time.ts';
import { condition } from './condition.ts';
import type { StoredNodeStatus } from './node-status.ts';
import type { Objects } from './objects.ts';
import { type StaticPodOperator, withConditions } from './operator.ts';

/** Nodes of the control plane carry this label, with nothing in it. */
export const CONTROL_PLANE_LABELS = { 'node-role.kubernetes.io/master': '' } as const;

export interface NodeControllerOptions {
  readonly operator: StaticPodOperator;
  readonly cached: Objects;
}

/** Keeps one status entry for each control-plane node, and says whether they are ready (spec 30, section 12). */
export function nodeReconcile({ operator, cached }: NodeControllerOptions): Reconcile {
  return async (_key, { clock, events, signal }) => {
    const nodes = await cached.list(NODES, { labels: CONTROL_PLANE_LABELS });
    let changes: Omit<RecordedEvent, 'component'>[] = [];
    const { updated } = await operator.update(status => {
      // Worked out anew on every attempt, from the entries that are there then: nobody's progress is lost (T07).
      const members = decideNodes(status.nodeStatuses ?? [], nodes);
      const readiness = nodesReady(nodes);
      const before = status.conditions?.find(({ type }) => type === readiness.type);
      changes = [
        ...members.removed.map(name =>
          event('Warning', 'MasterNodeRemoved', `Observed removal of master node ${name}`),
        ),
        ...members.added.map(name => event('Normal', 'MasterNodeObserved', `Observed new master node ${name}`)),
        // Compared with what was there before (T06).
        ...((before?.message ?? '') === (readiness.message ?? '')
          ? []
          : [event('Normal', 'MasterNodesReadyChanged', readiness.message ?? '')]),
      ];
      return withConditions({ ...status, nodeStatuses: members.nodeStatuses }, [readiness], clock.now());
    }, signal);
    if (!updated) return;
    for (const { type, reason, message } of changes) events.event(type, reason, message);
  };
}

export interface NodeMembership {
  readonly nodeStatuses: readonly StoredNodeStatus[];
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

/**
 * The entries with those of vanished nodes gone and those of new ones appended; the others stay as they are. A node with
 * another uid than that in its entry is another node and starts from nothing (spec 30, 12.2 and T07).
 */
export function decideNodes(entries: readonly StoredNodeStatus[], nodes: readonly Node[]): NodeMembership {
  const uids = new Map(nodes.map(({ metadata }) => [metadata?.name ?? '', metadata?.uid ?? '']));
  const isSame = ({ nodeName, nodeUID }: StoredNodeStatus) =>
    uids.has(nodeName) && (!nodeUID || uids.get(nodeName) === '' || uids.get(nodeName) === nodeUID);
  const kept = entries.filter(isSame);
  const known = new Set(kept.map(({ nodeName }) => nodeName));
  const added = [...uids.keys()].filter(name => !known.has(name));
  const fresh = added.map(nodeName => {
    const nodeUID = uids.get(nodeName);
    return { nodeName, ...(nodeUID ? { nodeUID } : {}), currentRevision: 0 };
  });
  const removed = entries.filter(entry => !isSame(entry)).map(({ nodeName }) => nodeName);
  return { nodeStatuses: [...kept, ...fresh], added, removed };
}

/** Spec 30, 12.3. */
export function nodesReady(nodes: readonly Node[]): Condition {
  const problems = nodes.flatMap(({ metadata, status }) => {
    const name = metadata?.name ?? '';
    const ready = status?.conditions?.find(({ type }) => type === 'Ready');
    if (ready === undefined) return [`node "${name}" not ready, no Ready condition found in status block`];
    if (ready.status === 'True') return [];
    const since = goTime(ready.lastTransitionTime);
    return [`node "${name}" not ready since ${since} because ${ready.reason ?? ''} (${ready.message ?? ''})`];
  });
  return problems.length === 0
    ? condition('NodeControllerDegraded', 'False', 'MasterNodesReady', 'All master nodes are ready')
    : condition(
        'NodeControllerDegraded',
        'True',
        'MasterNodesReady',
        `The master nodes not ready: ${problems.join(', ')}`,
      );
}

/** A time of the API the way messages show it (spec 30, 26.5). */
export function goTime(text: string | null | undefined): string {
  const instant = parseRfc3339(text ?? '');
  return instant === undefined ? '0001-01-01 00:00:00 +0000 UTC' : formatGoTime({ nanos: instant.nanos });
}

function event(type: 'Normal' | 'Warning', reason: string, message: string): Omit<RecordedEvent, 'component'> {
  return { type, reason, message };
}
