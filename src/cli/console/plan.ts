import type { Plan } from '../../forecast/model.ts';
import { readPlanObjects } from '../../forecast/objects.ts';
import { simulate } from '../../forecast/simulate.ts';
import { rotationDayFrom } from '../../forecast/units.ts';
import { seconds } from '../../kube/duration.ts';
import type { Feed } from './feed.ts';
import { HttpProblem } from './http.ts';

const MOST_DAYS = 400;
/** A plan costs a good part of a second of everybody's time; so long the last one is still good. */
const FRESH_MS = seconds(3);

const last = new WeakMap<Feed, { readonly days: number; readonly atMs: number; readonly plan: Promise<Plan> }>();

/** What will happen in the next rotation days, as this user sees the cluster. */
export function planFor(feed: Feed, daysText: string, now: Date): Promise<Plan> {
  const days = /^\d{1,3}$/.test(daysText) ? Number(daysText) : Number.NaN;
  if (!(days >= 1 && days <= MOST_DAYS)) throw new HttpProblem(400, `days must be a number from 1 to ${MOST_DAYS}`);
  const known = last.get(feed);
  if (known?.days === days && now.getTime() - known.atMs < FRESH_MS) return known.plan;
  const plan = makePlan(feed, days, now);
  last.set(feed, { days, atMs: now.getTime(), plan });
  plan.catch(() => last.delete(feed));
  return plan;
}

async function makePlan(feed: Feed, days: number, now: Date): Promise<Plan> {
  const objects = await readPlanObjects(feed.source);
  return simulate(objects, { now, until: new Date(now.getTime() + days * rotationDayFrom(objects)) });
}
