import type { Refused } from './connections.ts';
import type { Refusal } from './rehearse.ts';

/** Who refuses whom over one kind of connection, wherever that is. */
export interface ConnectionRefusal extends Refused {
  readonly since: string;
  readonly until?: string | undefined;
  /** `x3 nodes`, or where it is. */
  readonly places: string;
}

/** One entry a connection and side: since it was first refused anywhere, until it is refused nowhere. In order of time. */
export function byConnection(refusals: readonly Refusal[]): ConnectionRefusal[] {
  const groups = Map.groupBy(refusals, ({ connection, by }) => `${connection} ${by}`);
  return [...groups.values()]
    .map((group): ConnectionRefusal => {
      const [first] = group.toSorted((a, b) => (a.since < b.since ? -1 : 1)) as [Refusal, ...Refusal[]];
      const places = new Set(group.map(({ place }) => place));
      const isEndless = group.some(({ until }) => until === undefined);
      const last = group
        .map(({ until = '' }) => until)
        .toSorted()
        .at(-1);
      return {
        ...first,
        until: isEndless ? undefined : last,
        places: places.size === 1 ? first.place : `x${places.size} nodes`,
      };
    })
    .sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
}
