import { isNamed } from '../inventory/known-chains.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { CLUSTER_RECORD, statusOf } from '../kubeadm/cluster-record.ts';
import { CONTROL_PLANE_LABEL } from '../kubeadm/names.ts';
import type { Plan } from './model.ts';
import type { PlanObjects } from './objects.ts';

/** What begins anew when a public key leaves `sa.pub`. */
const READERS = ['kube-controller-manager', 'kube-apiserver'];

/** When the key that signed tokens of service accounts before leaves an adopted cluster, as its operator says; empty where there is none. */
export function olderAccountKey(
  { configMaps, nodes }: Pick<PlanObjects, 'configMaps' | 'nodes'>,
  from: Date,
  until: Date,
): Pick<Plan, 'events' | 'notes'> {
  const status = statusOf(configMaps.find(found => isNamed(found, CLUSTER_RECORD)));
  const { phase, because, leavesAt } = status?.serviceAccount ?? {};
  // Before another key signs, the one in use is no older one.
  if (because === undefined || (phase !== 'Signing' && phase !== 'Retiring')) return { events: [], notes: [] };
  const text = `an older key of service accounts is still accepted: ${because}`;
  const at = leavesAt === undefined ? undefined : new Date(leavesAt);
  if (at === undefined || at > until) return { events: [], notes: [text] };
  const controlPlane = nodes
    .filter(({ metadata }) => metadata?.labels?.[CONTROL_PLANE_LABEL] !== undefined)
    .map(({ metadata }) => metadata?.name ?? '')
    .toSorted();
  const effects = READERS.map(process => ({ kind: 'restart', process, nodes: controlPlane }) as const);
  return {
    events: [{ at: formatRfc3339(at < from ? from : at), change: 'hand-over', reason: text, effects }],
    notes: [],
  };
}
