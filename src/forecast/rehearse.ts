import { lookAtConnections, type Refused } from './connections.ts';
import type { PlanObjects } from './objects.ts';
import { type PlanOptions, simulate, TRUST } from './simulate.ts';

/** Somebody refused somebody, from one moment to another. Times are RFC 3339 texts. */
export interface Refusal extends Refused {
  readonly since: string;
  /** Absent: to the end of what was looked at. */
  readonly until?: string | undefined;
}

export interface Rehearsal {
  readonly from: string;
  readonly to: string;
  readonly refusals: readonly Refusal[];
  /** How often every connection was looked at. */
  readonly looks: number;
  /** How many sides of connections could be checked, the last time. */
  readonly checked: number;
  /** What could not be foreseen, and why. */
  readonly notes: readonly string[];
}

/** Lives through the time of a plan and looks at every connection whenever something has changed or has ended. */
export async function rehearse(objects: PlanObjects, options: PlanOptions): Promise<Rehearsal> {
  const open = new Map<string, Refusal>();
  const over: Refusal[] = [];
  let [looks, checked] = [0, 0];
  const { from, to, notes } = await simulate(objects, {
    ...options,
    observe: async world => {
      const look = await lookAtConnections(TRUST, world);
      const now = world.now.toISOString();
      looks++;
      ({ checked } = look);
      const current = new Map(look.refused.map(refused => [idOf(refused), refused]));
      for (const [id, refusal] of open) {
        if (current.has(id)) continue;
        open.delete(id);
        over.push({ ...refusal, until: now });
      }
      for (const [id, refused] of current) if (!open.has(id)) open.set(id, { ...refused, since: now });
      // A certificate is good in the last moment of its life, and not after it.
      return look.until === undefined ? undefined : new Date(look.until.getTime() + 1);
    },
  });
  const refusals = [...over, ...open.values()].sort((a, b) => (a.since < b.since ? -1 : a.since > b.since ? 1 : 0));
  return { from, to, refusals, looks, checked, notes };
}

function idOf({ connection, by, place }: Refused): string {
  return `${connection} ${by} ${place}`;
}
