import type { Node, Taint } from 'kubernetes-types/core/v1.d.ts';
import { CONTROL_PLANE_NODE_LABEL, MASTER_NODE_LABEL, WORKER_NODE_LABEL } from '../../machine-config-api/names.ts';
import type { NodePatch } from './node-patch.ts';

const MASTER_TAINT: Taint = { key: MASTER_NODE_LABEL, effect: 'NoSchedule' };

/**
 * What a control-plane node is labelled and tainted with, by whether the cluster runs other pods there (spec 50, ND-7).
 * Undefined when nothing is to change, or the node is none.
 */
export function masterPatch(node: Node, isSchedulable: boolean): NodePatch | undefined {
  const labels = node.metadata?.labels ?? {};
  if (labels[MASTER_NODE_LABEL] === undefined) return undefined;
  const changed: Record<string, string | null> = {};
  if (labels[CONTROL_PLANE_NODE_LABEL] === undefined) changed[CONTROL_PLANE_NODE_LABEL] = '';
  if (isSchedulable && labels[WORKER_NODE_LABEL] === undefined) changed[WORKER_NODE_LABEL] = '';
  if (!isSchedulable && labels[WORKER_NODE_LABEL] !== undefined) changed[WORKER_NODE_LABEL] = null;
  const taints = node.spec?.taints ?? [];
  const others = taints.filter(({ key, effect }) => key !== MASTER_TAINT.key || effect !== MASTER_TAINT.effect);
  const isTainted = others.length < taints.length;
  const wanted = isTainted === isSchedulable ? [...others, ...(isSchedulable ? [] : [MASTER_TAINT])] : undefined;
  if (Object.keys(changed).length === 0 && wanted === undefined) return undefined;
  return {
    ...(Object.keys(changed).length > 0 && { metadata: { labels: changed } }),
    ...(wanted !== undefined && { spec: { taints: wanted } }),
  };
}
