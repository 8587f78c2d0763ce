import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { compareNodes } from '../../kubeadm/adopt/compare.ts';
import { statusOf } from '../../kubeadm/cluster-record.ts';
import { type AdoptionSight, reportedNodes } from './sight.ts';

/** How far an adoption has come. */
export type AdoptionState =
  | { readonly kind: 'adopted'; readonly message: string }
  /** What is being waited for, for people. */
  | { readonly kind: 'waiting'; readonly missing: readonly string[] }
  /** Somebody has to do something (KA-1). */
  | { readonly kind: 'different'; readonly differences: readonly string[] };

const MOST_NAMES = 3;

/** What is still missing until a cluster is adopted; the operator has the last word, and what it says of nodes that have not reported yet is none. */
export function adoptionState(sight: AdoptionSight, now: Date): AdoptionState {
  const status = statusOf(sight.record);
  if (status?.adopted) return { kind: 'adopted', message: status.message };
  const nodes = reportedNodes(sight);
  const silent = nodes.filter(({ isControlPlane, report }) => isControlPlane && report === undefined);
  if (silent.length > 0) {
    const names = silent.map(({ name }) => name);
    const troubles = troublesOf(sight.pods);
    return { kind: 'waiting', missing: [`reports from ${namesText(names)}`, ...troubles] };
  }
  if (status !== undefined && status.differences.length > 0 && compareNodes(nodes, now).length > 0) {
    return { kind: 'different', differences: status.differences };
  }
  return {
    kind: 'waiting',
    missing: [status === undefined ? 'the operator' : status.message, ...troublesOf(sight.pods)],
  };
}

/** Why pods of ours do not run: an image that cannot be had, as a rule. */
function troublesOf(pods: readonly Pod[]): string[] {
  const texts = pods.flatMap(({ spec, status }) =>
    (status?.containerStatuses ?? []).flatMap(({ state, name }) => {
      const reason = state?.waiting?.reason;
      return reason === undefined || reason === 'ContainerCreating' || reason === 'PodInitializing'
        ? []
        : [`${name} on ${spec?.nodeName ?? 'no node'}: ${reason}`];
    }),
  );
  return [...new Set(texts)].sort().slice(0, MOST_NAMES);
}

function namesText(names: readonly string[]): string {
  const more = names.length - MOST_NAMES;
  return more > 0 ? `${names.slice(0, MOST_NAMES).join(', ')} and ${more} more` : names.join(', ');
}
