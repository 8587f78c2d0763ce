import { seconds } from '../kube/duration.ts';
import type { RotationUnit } from './config.ts';
import type { Events, Rotation } from './ensure.ts';
import { syncUnit } from './unit.ts';

/** Tells the world how a unit is doing; true when that changed something (spec 10, R-5). */
export type Reporter = (unit: string, error: Error | undefined) => Promise<boolean>;

/** After losing a write to somebody else: soon, but after their write has reached our cache. */
const ASK_AGAIN_AFTER_LOSS_MS = seconds(2);
/** A unit whose fresh certificate is due again at once must not spin. */
const SHORTEST_PAUSE_MS = seconds(1);

/**
 * One pass over a unit and its report (spec 10, 9). Returns when the next pass is due; without a reporter it is a
 * run-once pass that touches no status. Throws the error of the pass, with that of the report beside it.
 */
export async function reconcileUnit(
  unit: RotationUnit,
  rotation: Rotation,
  report?: Reporter,
  events: Events = rotation.events,
): Promise<Date> {
  const { clock } = rotation;
  let failure: Error | undefined;
  let next = clock.now();
  try {
    const result = await syncUnit(unit, rotation);
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

/** Goes once over many units, past failures, and throws all of them together. */
export async function reconcileOnce(units: readonly RotationUnit[], rotation: Rotation): Promise<void> {
  const outcomes = await Promise.allSettled(units.map(unit => reconcileUnit(unit, rotation)));
  const errors = outcomes.flatMap((outcome, index) =>
    outcome.status === 'rejected' ? [new Error(`${units[index]?.name}: ${(outcome.reason as Error).message}`)] : [],
  );
  if (errors.length > 0) throw new AggregateError(errors, errors.map(error => error.message).join('\n'));
}
