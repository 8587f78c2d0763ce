import { sleep } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import type { RotationUnit } from './config.ts';
import type { Events, Rotation } from './ensure.ts';
import { CertRotationError } from './error.ts';
import { type Sync, syncUnit } from './unit.ts';

/** Tells the world how a unit is doing; true when that changed something (spec 10, R-5). */
export type Reporter = (unit: string, error: Error | undefined) => Promise<boolean>;

/** After losing a write to somebody else: soon, but after their write has reached our cache. */
const ASK_AGAIN_AFTER_LOSS_MS = seconds(2);
/** Other writers decide by the same rules: who loses this often has met something else. */
const RUN_ONCE_ATTEMPTS = 3;
/** A unit whose fresh certificate is due again at once must not spin. */
const SHORTEST_PAUSE_MS = seconds(1);

/**
 * One pass over a unit and its report (spec 10, 9). Returns when the next pass is due. Without a reporter no status
 * is touched. Throws the error of the pass, with that of the report beside it.
 */
export async function reconcileUnit(
  unit: RotationUnit,
  rotation: Rotation,
  report?: Reporter,
  events: Events = rotation.events,
  sync: Sync = syncUnit,
): Promise<Date> {
  const { clock } = rotation;
  let failure: Error | undefined;
  let next = clock.now();
  try {
    const result = await sync(unit, rotation);
    // Losing a write is normal and no reason to look degraded (W-2).
    if (result.outcome === 'lost') return new Date(clock.now().getTime() + ASK_AGAIN_AFTER_LOSS_MS);
    next = new Date(Math.max(result.until.getTime(), clock.now().getTime() + SHORTEST_PAUSE_MS));
  } catch (error) {
    failure = error as Error;
  }
  if (report !== undefined) {
    try {
      const changed = await report(unit.name, failure);
      if (changed && failure !== undefined) events.event('Warning', 'RotationError', failure.message);
    } catch (reportError) {
      const message = (reportError as Error).message;
      if (failure === undefined) throw reportError;
      throw new AggregateError([failure, reportError], `[${failure.message}, ${message}]`, { cause: reportError });
    }
  }
  if (failure !== undefined) throw failure;
  return next;
}

/** Goes once over many units, past failures, and throws all of them together. Touches no status. */
export async function reconcileOnce(units: readonly RotationUnit[], rotation: Rotation): Promise<void> {
  const outcomes = await Promise.allSettled(units.map(unit => syncOnce(unit, rotation)));
  const errors = outcomes.flatMap((outcome, index) =>
    outcome.status === 'rejected' ? [new Error(`${units[index]?.name}: ${(outcome.reason as Error).message}`)] : [],
  );
  if (errors.length > 0) throw new AggregateError(errors, errors.map(error => error.message).join('\n'));
}

/** Nobody asks again after a single pass, so a lost write is made good here; one of the target may stay lost (W-2). */
async function syncOnce(unit: RotationUnit, rotation: Rotation): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    const result = await syncUnit(unit, rotation);
    if (result.outcome === 'done' || result.object === 'target') return;
    if (attempt === RUN_ONCE_ATTEMPTS) {
      const { namespace, name } = unit[result.object];
      throw new CertRotationError('LOST', `${result.object} ${namespace}/${name} was written by somebody else`);
    }
    await sleep(rotation.clock, ASK_AGAIN_AFTER_LOSS_MS);
  }
}
