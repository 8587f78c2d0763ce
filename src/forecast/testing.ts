import { isDeepStrictEqual } from 'node:util';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { minutes } from '../kube/duration.ts';
import { objectText } from '../trust/object.ts';
import type { Write } from '../twin/api.ts';
import type { Cluster } from '../twin/cluster.ts';

/** A change of an object: changes of one object within this time are one occasion to whoever looks at a cluster. */
const TOGETHER_MS = minutes(10);

/** When what an object holds changed, by its name, each occasion once. */
export type Occasions = ReadonlyMap<string, readonly number[]>;

/** Notes from now on whenever the content of a Secret or ConfigMap changes that `isMeant` names. */
export function occasionsOf(cluster: Cluster, isMeant: (object: string) => boolean): Occasions {
  const found = new Map<string, number[]>();
  const before = cluster.api.onWrite;
  cluster.api.onWrite = write => {
    before(write);
    const object = contentChanged(write);
    if (object !== undefined && isMeant(object)) addOccasion(found, object, cluster.time.nowMs);
  };
  return found;
}

export function addOccasion(found: Map<string, number[]>, object: string, atMs: number): void {
  const times = found.get(object) ?? [];
  found.set(object, times);
  const last = times.at(-1);
  if (last === undefined || atMs - last > TOGETHER_MS) times.push(atMs);
}

/** How many of these were foreseen, and which were not. */
export function agreement(
  foreseen: Occasions,
  came: Occasions,
): { readonly share: number; readonly missed: readonly string[] } {
  const missed: string[] = [];
  let count = 0;
  for (const [object, times] of came) {
    const expected = foreseen.get(object) ?? [];
    for (const atMs of times) {
      count++;
      if (!expected.some(other => Math.abs(other - atMs) <= TOGETHER_MS))
        missed.push(`${new Date(atMs).toISOString()} ${object}`);
    }
  }
  return { share: count === 0 ? 1 : 1 - missed.length / count, missed };
}

function contentChanged({ resource: { kind }, key, before, after }: Write): string | undefined {
  if ((kind !== 'Secret' && kind !== 'ConfigMap') || before === undefined || after === undefined) return undefined;
  if (isDeepStrictEqual((before as Secret | ConfigMap).data, (after as Secret | ConfigMap).data)) return undefined;
  return objectText({ kind, namespace: key.namespace ?? '', name: key.name });
}
