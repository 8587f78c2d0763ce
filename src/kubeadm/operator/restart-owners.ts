import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.d.ts';
import type { Clock } from '../../kube/clock.ts';
import type { EventRecorder } from '../../kube/events.ts';
import { getIfPresent } from '../../kube/get.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import {
  DEPLOYMENTS,
  type KubeObject,
  POD_DISRUPTION_BUDGETS,
  REPLICA_SETS,
  type Resource,
  resource,
} from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { OlderPod } from './older-pods.ts';

/** As `kubectl rollout restart` notes it. */
const RESTARTED_AT = 'kubectl.kubernetes.io/restartedAt';
const STATEFUL_SETS = resource<Workload>('apps/v1', 'StatefulSet', 'statefulsets');
const DAEMON_SETS = resource<Workload>('apps/v1', 'DaemonSet', 'daemonsets');

interface Workload extends KubeObject {
  spec?: {
    replicas?: number;
    template?: { metadata?: { annotations?: Record<string, string>; labels?: Record<string, string> } };
  };
  status?: {
    observedGeneration?: number;
    replicas?: number;
    updatedReplicas?: number;
    availableReplicas?: number;
    desiredNumberScheduled?: number;
    updatedNumberScheduled?: number;
    numberAvailable?: number;
  };
}

interface RestartDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly events: Pick<EventRecorder, 'event'>;
}

/**
 * Has the owner of the first of these pods make them anew, as `kubectl rollout restart` does: one workload at a time, and none whose
 * disruption budget forbids it now (KA-9). Pods that nobody would make again stay; they are named by whoever waits for them.
 */
export async function restartOwners(pods: readonly OlderPod[], deps: RestartDeps): Promise<void> {
  const { kube, clock, events } = deps;
  const seen = new Set<string>();
  for (const { namespace, owner } of pods.toSorted((a, b) => (placeText(a) < placeText(b) ? -1 : 1))) {
    const found = owner && (await workloadOf(kube, namespace, owner.kind, owner.name));
    if (found === undefined) continue;
    const { kind, object } = found;
    const name = object.metadata?.name ?? '';
    const id = `${kind.kind} ${namespace}/${name}`;
    if (seen.has(id)) continue;
    seen.add(id);
    // One that is still being rolled out is waited for before the next one begins.
    if (!isRolledOut(object)) return;
    if (!(await mayBeDisturbed(kube, namespace, object))) continue;
    const { uid, resourceVersion } = object.metadata ?? {};
    const annotations = { [RESTARTED_AT]: formatRfc3339(clock.now()) };
    const body = { metadata: { uid, resourceVersion }, spec: { template: { metadata: { annotations } } } };
    await kube.patch(kind, { namespace, name }, { type: 'merge', body });
    events.event('Normal', 'WorkloadRestarted', `${id} is restarted: its pods began before the next CA was known`);
    return;
  }
}

async function workloadOf(
  kube: Kube,
  namespace: string,
  kind: string,
  name: string,
): Promise<{ readonly kind: Resource<Workload>; readonly object: Workload } | undefined> {
  const read = async (of: Resource<Workload>, called: string) => {
    const object = await getIfPresent(kube, of, { namespace, name: called });
    return object && { kind: of, object };
  };
  switch (kind) {
    case 'ReplicaSet': {
      const set = await getIfPresent(kube, REPLICA_SETS, { namespace, name });
      const owner = set?.metadata?.ownerReferences?.find(({ controller }) => controller);
      return owner?.kind === 'Deployment' ? read(DEPLOYMENTS, owner.name) : undefined;
    }
    case 'StatefulSet':
      return read(STATEFUL_SETS, name);
    case 'DaemonSet':
      return read(DAEMON_SETS, name);
    default:
      return undefined;
  }
}

function isRolledOut({ metadata, spec, status = {} }: Workload): boolean {
  if ((status.observedGeneration ?? 0) < (metadata?.generation ?? 0)) return false;
  if (status.desiredNumberScheduled !== undefined) {
    const wanted = status.desiredNumberScheduled;
    return (status.updatedNumberScheduled ?? 0) >= wanted && (status.numberAvailable ?? 0) >= wanted;
  }
  const wanted = spec?.replicas ?? 1;
  return (status.updatedReplicas ?? 0) >= wanted && (status.availableReplicas ?? 0) >= wanted;
}

async function mayBeDisturbed(kube: Kube, namespace: string, { spec }: Workload): Promise<boolean> {
  const labels = spec?.template?.metadata?.labels ?? {};
  const { items } = await listAll(kube, POD_DISRUPTION_BUDGETS, { namespace });
  return items.every(budget => !isFor(budget, labels) || (budget.status?.disruptionsAllowed ?? 0) > 0);
}

/** Selectors that say more than labels are taken as if they were for everybody: it only makes the wait longer. */
function isFor({ spec }: PodDisruptionBudget, labels: Readonly<Record<string, string>>): boolean {
  const { matchLabels = {}, matchExpressions = [] } = spec?.selector ?? {};
  if (matchExpressions.length > 0) return true;
  return Object.entries(matchLabels).every(([name, value]) => labels[name] === value);
}

function placeText({ namespace, owner }: OlderPod): string {
  return `${namespace}/${owner?.kind ?? ''}/${owner?.name ?? ''}`;
}
