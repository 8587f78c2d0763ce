import { readNodeStatus } from '../../staticpod/node-status.ts';
import type { StaticPodOperatorStatus } from '../../staticpod/operator.ts';

/** The part of an operator's status that says which revision runs where. */
export type RolloutStatus = Pick<StaticPodOperatorStatus, 'latestAvailableRevision' | 'nodeStatuses'>;

/** Whether some node is not where it should be. Nodes nobody has listed yet are not seen (spec 40, N-5). */
export function isRolloutInProgress({
  latestAvailableRevision: latest = 0,
  nodeStatuses = [],
}: RolloutStatus): boolean {
  return nodeStatuses.map(readNodeStatus).some(
    // Back to an earlier revision is a way too.
    ({ currentRevision: current, targetRevision: target }) => (target > 0 && target !== current) || current !== latest,
  );
}

export type CurrentRevision = { readonly revision: number } | { readonly error: string };

/** The revision that runs on all nodes. */
export function currentRevision(status: RolloutStatus): CurrentRevision {
  if ((status.nodeStatuses ?? []).length === 0) return { error: 'no node status' };
  if (isRolloutInProgress(status)) return { error: "revision rollout in progress, can't establish current revision" };
  return { revision: status.latestAvailableRevision ?? 0 };
}

/** Whether there is a revision and every listed node runs it (spec 40, Q-3 and N-9). */
export function isRevisionStable({ latestAvailableRevision: latest = 0, nodeStatuses = [] }: RolloutStatus): boolean {
  return latest !== 0 && nodeStatuses.map(readNodeStatus).every(({ currentRevision: current }) => current === latest);
}

/**
 * Whether any node may have run the operand: before that there is nothing to lose. Where there are revisions and no node is
 * listed, nobody knows, and that counts as yes.
 */
export function hasEverRun({ latestAvailableRevision: latest = 0, nodeStatuses = [] }: RolloutStatus): boolean {
  if (nodeStatuses.length === 0) return latest > 0;
  return nodeStatuses.map(readNodeStatus).some(({ currentRevision: current }) => current > 0);
}
