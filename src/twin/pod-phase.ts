import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Kube } from '../kube/port.ts';
import { keyOf, PODS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';

export interface PodPhase {
  readonly phase: 'Running' | 'Succeeded' | 'Failed';
  readonly nowMs: number;
  /** Why it failed. */
  readonly message?: string | undefined;
  /** As ready as it runs unless told otherwise. */
  readonly isReady?: boolean | undefined;
  readonly podIP?: string | undefined;
}

/** Tells the API how a pod is, as its kubelet does. */
export async function setPhase(kube: Kube, pod: Pod, told: PodPhase): Promise<void> {
  const { phase, nowMs, message = '', isReady = phase === 'Running', podIP } = told;
  const stored = await kube.get(PODS, keyOf(pod));
  if (uidOf(stored) !== uidOf(pod)) return;
  const now = formatRfc3339(new Date(nowMs));
  const status = isReady ? 'True' : 'False';
  const known = stored.status?.conditions?.find(({ type }) => type === 'Ready');
  const since = known?.status === status ? known.lastTransitionTime : now;
  const state =
    phase === 'Running'
      ? { running: { startedAt: stored.status?.startTime ?? now } }
      : { terminated: { exitCode: message === '' ? 0 : 1, finishedAt: now, message } };
  await kube.updateStatus(PODS, {
    ...stored,
    status: {
      ...stored.status,
      phase,
      startTime: stored.status?.startTime ?? now,
      ...(podIP === undefined ? {} : { podIP, hostIP: podIP }),
      conditions: [{ type: 'Ready', status, ...(since === undefined ? {} : { lastTransitionTime: since }) }],
      containerStatuses: (stored.spec?.containers ?? []).map(({ name }) => ({
        name,
        image: '',
        imageID: '',
        restartCount: 0,
        ready: isReady,
        state,
      })),
    },
  });
}

export function isReadyPod({ status }: Pod): boolean {
  return status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') ?? false;
}

export function uidOf(pod: Pod): string {
  return pod.metadata?.uid ?? '';
}
