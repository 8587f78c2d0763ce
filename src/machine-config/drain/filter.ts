import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { MCO_NAMESPACE } from '../../machine-config-api/names.ts';

export type Verdict =
  | { readonly evict: true; readonly warning?: string }
  /** Stays; `skip` without a word, else for a reason that is told. */
  | { readonly evict: false; readonly kind: 'skip' | 'warning'; readonly reason: string }
  /** Nothing is evicted at all as long as this is not known. */
  | { readonly evict: false; readonly kind: 'error'; readonly reason: string };

/** Whether the DaemonSet of a pod is there; undefined where that could not be found out. */
export type DaemonSetLookup = (namespace: string, name: string) => boolean | undefined;

const MIRROR = 'kubernetes.io/config.mirror';
const CRITICAL = 'scheduler.alpha.kubernetes.io/critical-pod';
const AGENT_LABEL = 'k8s-app';
const AGENT = 'machine-config-daemon';

/**
 * Whether a pod leaves a node that is drained (spec 50, 9.4). Static pods, pods of DaemonSets, pods that are annotated as
 * critical and the agent itself stay. A high priority class alone spares nobody: the guard pods of etcd have one, and it is
 * their disruption budget that keeps a second control-plane node from going down.
 */
export function drainVerdict(pod: Pod, hasDaemonSet: DaemonSetLookup): Verdict {
  const { namespace = '', annotations = {}, labels = {} } = pod.metadata ?? {};
  const isFinished = pod.status?.phase === 'Succeeded' || pod.status?.phase === 'Failed';
  if (annotations[MIRROR] !== undefined) return { evict: false, kind: 'skip', reason: 'static pod' };
  const controller = pod.metadata?.ownerReferences?.find(owner => owner.controller === true);
  if (controller?.kind === 'DaemonSet' && !isFinished) {
    const isThere = hasDaemonSet(namespace, controller.name);
    if (isThere === undefined)
      return { evict: false, kind: 'error', reason: `daemonset ${namespace}/${controller.name} could not be read` };
    if (isThere) return { evict: false, kind: 'warning', reason: 'pod of a DaemonSet' };
  }
  if (isFinished) return { evict: true };
  if (annotations[CRITICAL] !== undefined) return { evict: false, kind: 'skip', reason: 'critical pod' };
  if (namespace === MCO_NAMESPACE && labels[AGENT_LABEL] === AGENT)
    return { evict: false, kind: 'skip', reason: 'the agent itself' };
  return controller === undefined
    ? { evict: true, warning: 'a pod without a controller will not come back' }
    : { evict: true };
}
