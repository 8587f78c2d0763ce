import { aborted } from '../kube/aborted.ts';
import { type Clock, lull, mark, sleep } from '../kube/clock.ts';
import { formatGoDuration, minutes, seconds } from '../kube/duration.ts';
import { isConflict } from '../kube/error.ts';
import type { EventRecorder } from '../kube/events.ts';
import { errorText } from './aggregate-error.ts';
import type { Log } from './log.ts';
import type { ControllerMetrics } from './metrics.ts';
import { isPanic } from './panic.ts';
import { WorkQueue } from './queue.ts';
import { ONLY_KEY, type Reconcile, type ReconcileContext, type Result, RetryRequest } from './reconcile.ts';
import type { Trigger } from './trigger.ts';

export interface ControllerOptions {
  /** CamelCase: names conditions, events and metrics. */
  readonly name: string;
  readonly reconcile: Reconcile;
  readonly clock: Clock;
  readonly events: EventRecorder;
  readonly log: Log;
  readonly triggers?: readonly Trigger[] | undefined;
  /** Asks for `resyncKeys` at the start and ever after: the safety net below the triggers. */
  readonly resyncMs?: number | undefined;
  /** The only key unless told otherwise. */
  readonly resyncKeys?: (() => Iterable<string>) | undefined;
  /** How many keys are worked on at a time. */
  readonly workers?: number | undefined;
  readonly cacheSyncLimitMs?: number | undefined;
  readonly stopLimitMs?: number | undefined;
  readonly metrics?: ControllerMetrics | undefined;
}

const CACHE_SYNC_LIMIT_MS = minutes(10);
/** A stop waits so long for passes that are under way, then tells them to end. */
const STOP_LIMIT_MS = seconds(30);
const FAST_RESYNC_MS = minutes(1);

/** Runs one reconcile function over a queue of keys (spec 30, section 3). */
export class Controller {
  readonly name: string;
  readonly #options: ControllerOptions;
  readonly #queue: WorkQueue;
  /** Of keys whose last pass failed. */
  readonly #lastFailure = new Map<string, string>();

  constructor(options: ControllerOptions) {
    if (options.name === '') throw new TypeError('a controller needs a name');
    this.name = options.name;
    this.#options = options;
    this.#queue = new WorkQueue(options.clock, options.metrics?.queue);
  }

  /** Asks for a pass. */
  enqueue(key: string = ONLY_KEY): void {
    this.#queue.add(key);
  }

  /**
   * Works until `signal` aborts, then resolves when the passes under way have ended. Rejects with `CachesNotSynced` when
   * what it reads from is not there in time; the process should end then, so that somebody notices.
   */
  async run(signal: AbortSignal): Promise<void> {
    const { triggers = [], workers = 1, log, clock, stopLimitMs = STOP_LIMIT_MS } = this.#options;
    const stops = triggers.map(trigger => trigger.start(key => this.#queue.add(key)));
    const hardStop = new AbortController();
    try {
      if (!(await this.#cachesSynced(triggers, signal))) return;
      log.info({ controller: this.name }, 'controller started');
      const running = Promise.all(Array.from({ length: workers }, () => this.#work(hardStop.signal)));
      const ticking = this.#tick(signal);
      await aborted(signal);
      this.#queue.close();
      const limit = new AbortController();
      const overdue = sleep(clock, stopLimitMs, limit.signal).then(
        () => {
          log.warn({ controller: this.name }, 'a pass is still under way at the end of the time for stopping');
          hardStop.abort(new Error('the controller is stopping'));
        },
        () => {},
      );
      await Promise.race([running, overdue]);
      limit.abort();
      await ticking;
      log.info({ controller: this.name }, 'controller stopped');
    } finally {
      this.#queue.close();
      for (const stop of stops) stop();
    }
  }

  /** False when a stop came first. */
  async #cachesSynced(triggers: readonly Trigger[], signal: AbortSignal): Promise<boolean> {
    if (signal.aborted) return false;
    const { clock, cacheSyncLimitMs = CACHE_SYNC_LIMIT_MS } = this.#options;
    const settled = new AbortController();
    const stopped = aborted(AbortSignal.any([signal, settled.signal])).then(() => 'stopped' as const);
    const late = sleep(clock, cacheSyncLimitMs, settled.signal).then(
      () => 'late' as const,
      () => 'stopped' as const,
    );
    const synced = Promise.all(triggers.map(trigger => trigger.synced)).then(
      () => 'synced' as const,
      () => 'failed' as const,
    );
    const outcome = await Promise.race([synced, stopped, late]);
    settled.abort();
    if (outcome === 'synced') return true;
    if (signal.aborted) return false;
    throw new CachesNotSynced(this.name);
  }

  async #work(hardStop: AbortSignal): Promise<void> {
    const { clock, log } = this.#options;
    const context: ReconcileContext = {
      signal: hardStop,
      clock,
      log: log.child({ controller: this.name }),
      events: this.#options.events.withComponent(this.name.toLowerCase()),
      enqueue: key => this.#queue.add(key),
    };
    for (let key = await this.#queue.take(); key !== undefined; key = await this.#queue.take()) {
      await this.#pass(key, context);
      this.#queue.done(key);
    }
  }

  /** Never rejects: whatever a pass throws concerns its key alone. */
  async #pass(key: string, context: ReconcileContext): Promise<void> {
    const { reconcile, metrics } = this.#options;
    const start = mark(context.clock);
    let outcome: 'success' | 'retry' | 'error';
    try {
      outcome = this.#plan(key, (await reconcile(key, context)) ?? {});
      this.#lastFailure.delete(key);
    } catch (error) {
      // Somebody else wrote first: the next pass sees what.
      outcome = error instanceof RetryRequest || isConflict(error) ? 'retry' : 'error';
      if (outcome === 'retry') context.log.debug({ key, why: errorText(error) }, 'pass asks for a retry');
      else if (isPanic(error)) context.log.error({ key, err: error }, 'pass failed by a mistake in the program');
      else this.#tellOfFailure(key, error, context.log);
      this.#queue.retry(key);
    }
    metrics?.passed(outcome, mark(context.clock).monotonicMs - start.monotonicMs);
  }

  /** A controller that waits for others fails the same way many times; that is told once. */
  #tellOfFailure(key: string, error: unknown, log: Log): void {
    const why = errorText(error);
    if (this.#lastFailure.get(key) === why) log.debug({ key, why }, 'pass failed as before');
    // The words that alerts on upstream's log look for (spec 10, 10).
    else log.error({ key, err: error }, `${this.name} reconciliation failed: ${why}`);
    this.#lastFailure.set(key, why);
  }

  #plan(key: string, { againAt, retry = false }: Result): 'success' | 'retry' {
    if (retry) {
      this.#queue.retry(key);
      return 'retry';
    }
    this.#queue.forget(key);
    if (againAt !== undefined) this.#queue.addAt(key, againAt);
    return 'success';
  }

  async #tick(signal: AbortSignal): Promise<void> {
    const { resyncMs, resyncKeys = () => [ONLY_KEY], clock, events } = this.#options;
    if (resyncMs === undefined) return;
    if (resyncMs < FAST_RESYNC_MS) {
      const interval = formatGoDuration(resyncMs);
      const message = `Controller "${this.name}" resync interval is set to ${interval} which might lead to client request throttling`;
      events.event('Warning', 'FastControllerResync', message);
    }
    while (!signal.aborted) {
      for (const key of resyncKeys()) this.#queue.add(key);
      await lull(clock, resyncMs, signal).catch(() => {});
    }
  }
}

/** What a controller reads from did not become complete in time (spec 30, 3.4). */
export class CachesNotSynced extends Error {
  override readonly name = 'CachesNotSynced';

  constructor(controller: string) {
    super(`unable to sync caches for ${controller}`);
  }
}

/** Runs controllers side by side. When one rejects the others are stopped, and the whole rejects with its error. */
export async function runAll(controllers: readonly Controller[], signal: AbortSignal): Promise<void> {
  const failed = new AbortController();
  const either = AbortSignal.any([signal, failed.signal]);
  const results = await Promise.allSettled(
    controllers.map(async controller => {
      try {
        await controller.run(either);
      } catch (error) {
        failed.abort(error);
        throw error;
      }
    }),
  );
  for (const result of results) if (result.status === 'rejected') throw result.reason;
}
