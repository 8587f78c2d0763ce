import { type Clock, randomOf, sleep } from '../kube/clock.ts';
import { semanticallyEqual } from '../kube/equality.ts';
import { isConflict } from '../kube/error.ts';
import type { Kube } from '../kube/port.ts';
import type { KubeObject, ObjectKey, Resource } from '../kube/resource.ts';

export interface StatusUpdate<T extends KubeObject> {
  readonly object: T;
  /** Whether something was written. */
  readonly updated: boolean;
}

export interface StatusUpdateOptions<T extends KubeObject> {
  readonly clock: Clock;
  /**
   * Reads a cache, to start from. After a conflict it is asked again; if it still gives the version that just lost, the
   * API itself is read from then on (spec 30, 5.2.3 and T08).
   */
  readonly cached?: (() => T | undefined) | undefined;
  /** A number in [0, 1), for the jitter between attempts. */
  readonly random?: () => number;
  readonly signal?: AbortSignal | undefined;
}

/** Pauses between the four attempts, in milliseconds, each with up to 10 % jitter (spec 30, 5.2.2). */
const PAUSES_MS = [10, 50, 250];

/**
 * Changes the status of an object, again on conflict. `mutate` gets the newest object and returns the wanted one; it may
 * run several times and must depend on its argument only. Nothing is written when nothing differs.
 */
export async function updateStatus<T extends KubeObject & { status?: unknown }>(
  kube: Pick<Kube, 'get' | 'updateStatus'>,
  resource: Resource<T>,
  key: ObjectKey,
  mutate: (object: T) => T,
  { clock, cached = () => undefined, random = randomOf(clock), signal }: StatusUpdateOptions<T>,
): Promise<StatusUpdate<T>> {
  let lost: string | undefined;
  let isLive = false;
  for (let attempt = 0; ; attempt++) {
    const known: T | undefined = isLive ? undefined : cached();
    isLive ||= known === undefined || (attempt > 0 && known.metadata?.resourceVersion === lost);
    const base = known === undefined || isLive ? await kube.get(resource, key, { signal }) : known;
    const wanted = mutate(base);
    if (semanticallyEqual(base.status, wanted.status)) return { object: wanted, updated: false };
    try {
      return { object: await kube.updateStatus(resource, wanted, { signal }), updated: true };
    } catch (error) {
      const pause = PAUSES_MS[attempt];
      if (!isConflict(error) || pause === undefined) throw error;
      lost = base.metadata?.resourceVersion;
      await sleep(clock, Math.round(pause * (1 + random() / 10)), signal);
    }
  }
}
