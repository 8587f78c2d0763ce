import type { Event, ObjectReference } from 'kubernetes-types/core/v1.d.ts';
import { backoffMs } from './backoff.ts';
import { type Clock, sleep, systemClock } from './clock.ts';
import { seconds } from './duration.ts';
import { isAlreadyExists, isNotFound, isTransient } from './error.ts';
import { type CorrelationOptions, EventCorrelator, type EventSeries } from './event-correlation.ts';
import { type EventRecorder, eventsTo, type RecordedEvent } from './events.ts';
import type { Kube } from './port.ts';
import { EVENTS } from './resource.ts';
import { formatRfc3339 } from './time.ts';

export interface EventWriterOptions {
  /** Absent: every event becomes an object of its own, as it comes (spec 30, 4.2). */
  readonly correlation?: CorrelationOptions | undefined;
  readonly clock?: Clock | undefined;
  /** The machine the events come from. */
  readonly host?: string | undefined;
  /** Hears of events that could not be written. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** Events that wait to be written; more are dropped rather than kept. */
const LONGEST_QUEUE = 1000;
const WRITE_ATTEMPTS = 5;
const WRITE_BACKOFF = { firstMs: seconds(1), longestMs: seconds(10) };
/** How long `stop` waits for the queue. */
const STOP_WITHIN_MS = seconds(5);
const LONGEST_MESSAGE = 16 * 1024;
/** A name may have 253 characters, of which the dot and the time take 17. */
const LONGEST_NAME_PART = 236;
/** The series whose Event object is known by name. */
const MOST_SERIES = 4096;

/** Writes events to the API in the background, in order, and never in the way of whoever records them. */
export class EventWriter {
  readonly #kube: Kube;
  readonly #clock: Clock;
  readonly #host: string | undefined;
  readonly #onError: (error: unknown) => void;
  readonly #correlator: EventCorrelator | undefined;
  readonly #names = new Map<string, string>();
  readonly #stopping = new AbortController();
  #queue: Happening[] = [];
  #writing: Promise<void> | undefined;
  #lastNanos = 0n;

  constructor(kube: Kube, options: EventWriterOptions = {}) {
    this.#kube = kube;
    this.#clock = options.clock ?? systemClock;
    this.#host = options.host;
    this.#onError = options.onError ?? (() => {});
    this.#correlator = options.correlation && new EventCorrelator(options.correlation);
  }

  /** A recorder for events about `involved`. */
  recorder(component: string, involved: ObjectReference): EventRecorder {
    return eventsTo(component, event => {
      this.#record({ ...event, message: event.message.slice(0, LONGEST_MESSAGE), involved, at: this.#clock.now() });
    });
  }

  /** Resolves when everything recorded so far is written or given up. */
  async flush(): Promise<void> {
    await this.#writing;
  }

  /** Writes what is waiting, for a few seconds at most. What is recorded later is still tried once, uncorrelated. */
  async stop(): Promise<void> {
    const waited = new AbortController();
    const timeUp = sleep(this.#clock, STOP_WITHIN_MS, waited.signal).catch(() => {});
    await Promise.race([this.flush(), timeUp]);
    waited.abort();
    this.#stopping.abort(new Error('the event writer has been stopped'));
    await this.#writing;
  }

  #record(happening: Happening): void {
    if (this.#stopping.signal.aborted) {
      void this.#create(happening).catch(this.#onError);
      return;
    }
    if (this.#queue.length >= LONGEST_QUEUE) {
      this.#onError(new RangeError(`more than ${LONGEST_QUEUE} events are waiting; ${happening.reason} is dropped`));
      return;
    }
    this.#queue.push(happening);
    this.#writing ??= this.#writeQueue();
  }

  async #writeQueue(): Promise<void> {
    // Whoever records is in the middle of something; let it finish first.
    await Promise.resolve();
    for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
      try {
        await this.#write(next);
      } catch (error) {
        this.#onError(error);
      }
    }
    this.#writing = undefined;
  }

  async #write(happening: Happening): Promise<void> {
    const { involved, component, type, reason, message, at } = happening;
    if (this.#correlator === undefined) return this.#patiently(() => this.#create(happening));
    const { kind, namespace, name, uid, apiVersion } = involved;
    const source = JSON.stringify([component, this.#host, kind, namespace, name, uid, apiVersion]);
    const series = this.#correlator.correlate({ source, type, reason, message }, at);
    if (series !== undefined) await this.#patiently(() => this.#tell(happening, series));
  }

  /** One more of a series raises the count of its Event; the first one, or one whose Event has expired, makes it. */
  async #tell(happening: Happening, series: EventSeries): Promise<void> {
    const { id, count, message } = series;
    const name = this.#names.get(id);
    if (name !== undefined) {
      const body = { count, message, lastTimestamp: formatRfc3339(happening.at) };
      const key = { name, namespace: namespaceOf(happening.involved) };
      try {
        await this.#kube.patch(EVENTS, key, { type: 'merge', body }, { signal: this.#stopping.signal });
        return;
      } catch (error) {
        if (!isNotFound(error)) throw error;
      }
    }
    const created = await this.#create(happening, series);
    this.#names.delete(id);
    this.#names.set(id, created);
    const oldest = this.#names.keys().next();
    if (this.#names.size > MOST_SERIES && !oldest.done) this.#names.delete(oldest.value);
  }

  async #create(happening: Happening, series?: EventSeries): Promise<string> {
    const { involved, component, type, reason, at } = happening;
    const namespace = namespaceOf(involved);
    const name = `${(involved.name ?? '').slice(0, LONGEST_NAME_PART)}.${this.#uniqueNanos(at).toString(16)}`;
    const event: Event = {
      metadata: { namespace, name },
      involvedObject: involved,
      type,
      reason,
      message: series?.message ?? happening.message,
      count: series?.count ?? 1,
      firstTimestamp: formatRfc3339(series?.first ?? at),
      lastTimestamp: formatRfc3339(at),
      source: { component, ...(this.#host === undefined ? {} : { host: this.#host }) },
    };
    await this.#kube.create(EVENTS, event);
    return name;
  }

  async #patiently(write: () => Promise<unknown>): Promise<void> {
    for (let attempt = 1; ; attempt++) {
      try {
        await write();
        return;
      } catch (error) {
        // A create whose answer was lost may have arrived.
        if (attempt > 1 && isAlreadyExists(error)) return;
        const { signal } = this.#stopping;
        if (attempt === WRITE_ATTEMPTS || !isTransient(error) || signal.aborted) throw error;
        await sleep(this.#clock, backoffMs(attempt, WRITE_BACKOFF), signal);
      }
    }
  }

  /** The clock has milliseconds, the name wants nanoseconds that no two events share. */
  #uniqueNanos(at: Date): bigint {
    const nanos = BigInt(at.getTime()) * 1_000_000n;
    this.#lastNanos = nanos > this.#lastNanos ? nanos : this.#lastNanos + 1n;
    return this.#lastNanos;
  }
}

interface Happening extends RecordedEvent {
  readonly involved: ObjectReference;
  readonly at: Date;
}

/** Events about objects without a namespace are kept in `default`; the API accepts them nowhere else. */
function namespaceOf({ namespace }: ObjectReference): string {
  return namespace || 'default';
}
