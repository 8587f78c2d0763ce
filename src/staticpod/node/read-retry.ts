import { backoffMs } from '../../kube/backoff.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { ConnectionError, isNotFound, KubeError } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import type { KubeObject, ObjectKey, Resource } from '../../kube/resource.ts';

const BACKOFF = { firstMs: 50, longestMs: seconds(5) };

/**
 * Tries until it works or `deadline` has come. Answers of the 4xx kind are final; a failing server and a failing connection
 * are tried again with growing pauses (spec 30, T05). After the deadline the last error is what comes out.
 */
export async function retryUntil<T>(
  clock: Clock,
  deadline: Date,
  attempt: () => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    try {
      return await attempt();
    } catch (error) {
      const pauseMs = backoffMs(failures, BACKOFF);
      const isLate = clock.now().getTime() + pauseMs >= deadline.getTime();
      if (!isRetryable(error) || isLate || signal?.aborted === true) throw error;
      await sleep(clock, pauseMs, signal);
    }
  }
}

/** Reads an object; undefined when it is optional and does not exist. */
export async function readObject<T extends KubeObject>(
  kube: Kube,
  resource: Resource<T>,
  key: ObjectKey,
  { optional = false, clock, deadline, signal }: ReadOptions,
): Promise<T | undefined> {
  try {
    return await retryUntil(clock, deadline, () => kube.get(resource, key, { signal }), signal);
  } catch (error) {
    if (optional && isNotFound(error)) return undefined;
    throw error;
  }
}

export interface ReadOptions {
  readonly optional?: boolean | undefined;
  readonly clock: Clock;
  readonly deadline: Date;
  readonly signal?: AbortSignal | undefined;
}

function isRetryable(error: unknown): boolean {
  return error instanceof ConnectionError || (error instanceof KubeError && error.code >= 500);
}
