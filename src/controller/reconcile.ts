import type { Clock } from '../kube/clock.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Log } from './log.ts';

/**
 * One pass over one key: looks at the state and does what is missing. Throwing means failure and a retry with back-off.
 * The object that set it off is not handed over: a pass reads what it needs and must be safe at any moment.
 */
export type Reconcile = (key: string, context: ReconcileContext) => Promise<Result | void>;

export interface ReconcileContext {
  /** Aborts when a stop can no longer wait for the pass. */
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly log: Log;
  /** Asks for a pass over another key. */
  enqueue(key: string): void;
}

export interface Result {
  /** The pass succeeded and wants to look again at that time. */
  readonly againAt?: Date | undefined;
  /** Not done, and not failed: try again with the pause of a failure. */
  readonly retry?: boolean | undefined;
}

/** Thrown by code deep inside a pass that wants what `retry: true` gives. It is not a failure (spec 30, 3.8). */
export class RetryRequest extends Error {
  override readonly name = 'RetryRequest';

  constructor(why = 'synthetic requeue request') {
    super(why);
  }
}

/** The key of a controller that has only one thing to look at. */
export const ONLY_KEY = 'key';

/** The earlier of two times, either of which may be missing. */
export function earlier(a: Date | undefined, b: Date | undefined): Date | undefined {
  if (a === undefined || b === undefined) return a ?? b;
  return a < b ? a : b;
}
