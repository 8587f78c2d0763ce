import { lookAtConnections } from './connections.ts';
import type { PlanObjects } from './objects.ts';
import type { Refusal } from './rehearse.ts';
import { type PlanOptions, simulate, TRUST } from './simulate.ts';

/**
 * Who is refused first in a cluster in which nobody rotates anything any more from a moment on, and when; undefined: nobody until the end of
 * what is looked at.
 */
export async function firstToFail(
  objects: PlanObjects,
  options: PlanOptions & { readonly from: Date },
): Promise<Refusal | undefined> {
  const { from, until } = options;
  let first: Refusal | undefined;
  await simulate(objects, {
    ...options,
    stopped: { from, until: new Date(until.getTime() + 1) },
    observe: async world => {
      if (world.now < from) return from;
      const look = await lookAtConnections(TRUST, world);
      const [refused] = look.refused;
      if (refused === undefined) return look.until && new Date(look.until.getTime() + 1);
      first = { ...refused, since: world.now.toISOString() };
      return 'enough';
    },
  });
  return first;
}
