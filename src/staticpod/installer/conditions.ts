import type { Condition } from '../../controller/condition.ts';
import { condition } from '../condition.ts';
import type { NodeStatus } from '../node-status.ts';

/** What the node entries mean for the operand as a whole (spec 30, 9.8). */
export function rolloutConditions(nodes: readonly NodeStatus[], published: number): Condition[] {
  const active = nodes.filter(({ currentRevision }) => currentRevision !== 0).length;
  const isProgressing = nodes.some(({ currentRevision }) => currentRevision !== published);
  const description = describe(nodes, published);
  const failures = failuresOf(nodes);
  return [
    condition(
      'StaticPodsAvailable',
      active > 0 ? 'True' : 'False',
      active > 0 ? '' : 'ZeroNodesActive',
      `${active} nodes are active; ${description}`,
    ),
    condition(
      'NodeInstallerProgressing',
      isProgressing ? 'True' : 'False',
      isProgressing ? '' : 'AllNodesAtLatestRevision',
      description,
    ),
    failures === ''
      ? condition('NodeInstallerDegraded', 'False')
      : condition('NodeInstallerDegraded', 'True', 'InstallerPodFailed', failures),
  ];
}

function describe(nodes: readonly NodeStatus[], published: number): string {
  const byRevision = groupByRevision(nodes, ({ currentRevision }) => currentRevision);
  const parts = byRevision.map(([revision, { length }]) => {
    return `${length} ${length > 1 ? 'nodes are' : 'node is'} at revision ${revision}`;
  });
  const isReached = byRevision.some(([revision]) => revision === published);
  if (nodes.length > 0 && !isReached) parts.push(`0 nodes have achieved new revision ${published}`);
  return parts.join('; ');
}

function failuresOf(nodes: readonly NodeStatus[]): string {
  const failing = nodes.filter(
    ({ lastFailedRevision, targetRevision, lastFailedReason }) =>
      lastFailedRevision !== 0 && lastFailedRevision === targetRevision && lastFailedReason !== 'OperandFailedFallback',
  );
  return groupByRevision(failing, ({ lastFailedRevision }) => lastFailedRevision)
    .map(([revision, group]) => {
      const errors = group.flatMap(node => node.lastFailedRevisionErrors);
      return `${group.length} nodes are failing on revision ${revision}:\n${errors.join('\n')}`;
    })
    .join('; ');
}

function groupByRevision(
  nodes: readonly NodeStatus[],
  revisionOf: (node: NodeStatus) => number,
): [number, NodeStatus[]][] {
  return [...Map.groupBy(nodes, revisionOf)].sort(([a], [b]) => a - b);
}
