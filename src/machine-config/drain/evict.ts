import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { isNotFound, KubeError } from '../../kube/error.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { NAMESPACES, PODS } from '../../kube/resource.ts';

/** One attempt at all pods of a node takes at most so long (spec 50, 9.3). */
export const ATTEMPT_MS: number = seconds(90);
const BUDGET_RETRY_MS = seconds(5);
const GONE_POLL_MS = seconds(1);

/** What of an attempt did not work: pods by `<namespace>/<name>`. */
export interface EvictionFailure {
  readonly pod: string;
  readonly why: string;
}

/** Evicts pods all at the same time and waits until they are gone (spec 50, DR-6). */
export async function evictPods(
  kube: Kube,
  pods: readonly Pod[],
  clock: Clock,
  signal?: AbortSignal,
): Promise<EvictionFailure[]> {
  const deadline = new Date(clock.now().getTime() + ATTEMPT_MS);
  const outcomes = await Promise.all(
    pods.map(async pod => {
      const { namespace = '', name = '' } = pod.metadata ?? {};
      try {
        const why = await evictPod(kube, pod, deadline, clock, signal);
        return why === undefined ? [] : [{ pod: `${namespace}/${name}`, why }];
      } catch (error) {
        signal?.throwIfAborted();
        return [{ pod: `${namespace}/${name}`, why: errorText(error) }];
      }
    }),
  );
  return outcomes.flat();
}

/** Undefined when the pod is gone; else why it is not. */
async function evictPod(
  kube: Kube,
  pod: Pod,
  deadline: Date,
  clock: Clock,
  signal?: AbortSignal,
): Promise<string | undefined> {
  const { namespace, name = '', uid } = pod.metadata ?? {};
  const isTime = (pauseMs: number) => clock.now().getTime() + pauseMs <= deadline.getTime();
  for (;;) {
    let refusal: string;
    try {
      await kube.evict({ namespace, name }, { signal, preconditions: { uid } });
      break;
    } catch (error) {
      // Another pod of the same name is not ours to evict.
      if (isNotFound(error) || isOtherPod(error)) return undefined;
      if (!isBudget(error) && !(await isNamespaceEnding(kube, error, namespace, signal))) throw error;
      refusal = errorText(error);
    }
    if (!isTime(BUDGET_RETRY_MS)) return refusal;
    await sleep(clock, BUDGET_RETRY_MS, signal);
  }
  for (;;) {
    const left = await getIfPresent(kube, PODS, { namespace, name }, { signal });
    if (left === undefined || left.metadata?.uid !== uid) return undefined;
    if (!isTime(GONE_POLL_MS)) return 'evicted, but not gone yet';
    await sleep(clock, GONE_POLL_MS, signal);
  }
}

function isBudget(error: unknown): boolean {
  return error instanceof KubeError && error.code === 429;
}

function isOtherPod(error: unknown): boolean {
  return error instanceof KubeError && error.code === 409 && error.reason === 'Conflict';
}

/** In a namespace that is being deleted evictions are forbidden, and the pods go by themselves. */
async function isNamespaceEnding(
  kube: Kube,
  error: unknown,
  namespace: string | undefined,
  signal?: AbortSignal,
): Promise<boolean> {
  if (!(error instanceof KubeError) || error.code !== 403 || namespace === undefined) return false;
  const found = await getIfPresent(kube, NAMESPACES, { name: namespace }, { signal });
  return found?.metadata?.deletionTimestamp !== undefined;
}
