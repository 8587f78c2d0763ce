import type { Registry } from '@prometheus-io/client';
import { collectGauge } from '../controller/collected-gauge.ts';
import { readNodeStatus } from './node-status.ts';
import type { StaticPodOperatorStatus } from './operator.ts';

/**
 * How far the revisions of an operand are on each node, and what its operator reports of itself, read from the status when
 * somebody asks. Upstream leaves the conditions to the cluster-version operator, which other clusters do not have. Once a registry.
 */
export function staticPodMetrics(
  registry: Registry,
  operand: string,
  status: () => StaticPodOperatorStatus | undefined,
): void {
  const nodes = () => (status()?.nodeStatuses ?? []).map(readNodeStatus);
  collectGauge(registry, {
    name: 'rotunda_static_pod_latest_revision',
    help: 'The newest revision there is.',
    labels: ['operand'],
    values: () => {
      const { latestAvailableRevision } = status() ?? {};
      return latestAvailableRevision === undefined ? [] : [[{ operand }, latestAvailableRevision]];
    },
  });
  collectGauge(registry, {
    name: 'rotunda_static_pod_node_revision',
    help: 'The last revision that became ready on a node; 0: none has.',
    labels: ['operand', 'node'],
    values: () => nodes().map(({ nodeName, currentRevision }) => [{ operand, node: nodeName }, currentRevision]),
  });
  collectGauge(registry, {
    name: 'rotunda_static_pod_node_failed_revision',
    help: 'The last revision that failed on a node; 0: none has.',
    labels: ['operand', 'node'],
    values: () => nodes().map(({ nodeName, lastFailedRevision }) => [{ operand, node: nodeName }, lastFailedRevision]),
  });
  collectGauge(registry, {
    name: 'rotunda_operator_condition',
    help: 'The conditions of an operator: 1 while one is True.',
    labels: ['operand', 'condition'],
    values: () =>
      (status()?.conditions ?? []).map(({ type, status: is }) => [{ operand, condition: type }, is === 'True' ? 1 : 0]),
  });
}
