import { minutes, seconds } from './duration.ts';

/** How repeated events are told together and noisy sources are held back (spec 30, 4.3). */
export interface CorrelationOptions {
  /** So many events of one source may come at once ... */
  readonly burst: number;
  /** ... and then one more every so often. */
  readonly refillMs: number;
  /**
   * Each reason has its own limit: three revisions in a row are sixty copies, and what was copied must not silence what for
   * (`RevisionTriggered` comes last).
   */
  readonly isPerReason?: boolean | undefined;
  /** From this many different messages with one reason on, they are folded into one event. Absent: never. */
  readonly foldFrom?: number | undefined;
}

/** For a process that is alone in its cluster and whose messages all count. */
export const SINGLETON_CORRELATION: CorrelationOptions = { burst: 60, refillMs: seconds(1), isPerReason: true };
/** What client-go does unless told otherwise. */
export const DEFAULT_CORRELATION: CorrelationOptions = { burst: 25, refillMs: minutes(5), foldFrom: 10 };

const FOLDED = '(combined from similar events): ';
/** Messages that are further apart than this are not folded together. */
const SIMILAR_WITHIN_MS = minutes(10);
/** So many series, sources and reasons are remembered; the longest unused are forgotten. */
const MOST_REMEMBERED = 4096;

/** What tells one event from another. */
export interface EventFacts {
  /** Component, host and involved object: who speaks about what. */
  readonly source: string;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
}

/** A run of events that are shown as one, with a count. */
export interface EventSeries {
  readonly id: string;
  readonly message: string;
  readonly count: number;
  readonly first: Date;
}

/** Decides for each event whether it is told, and whether as a new one or as one more of the same. */
export class EventCorrelator {
  readonly #options: CorrelationOptions;
  readonly #series = new Recent<{ count: number; first: Date }>();
  readonly #similar = new Recent<{ messages: Set<string>; lastMs: number }>();
  readonly #buckets = new Recent<{ tokens: number; atMs: number }>();

  constructor(options: CorrelationOptions) {
    this.#options = options;
  }

  /** Undefined: the source has said too much lately. */
  correlate(event: EventFacts, now: Date): EventSeries | undefined {
    const { id, message } = this.#identify(event, now.getTime());
    const known = this.#series.get(id);
    const series = { count: (known?.count ?? 0) + 1, first: known?.first ?? now };
    this.#series.set(id, series);
    const limited = this.#options.isPerReason ? JSON.stringify([event.source, event.reason]) : event.source;
    return this.#mayTell(limited, now.getTime()) ? { id, message, ...series } : undefined;
  }

  #identify({ source, type, reason, message }: EventFacts, nowMs: number): { id: string; message: string } {
    const id = JSON.stringify([source, type, reason, message]);
    const { foldFrom } = this.#options;
    if (foldFrom === undefined) return { id, message };
    const similarId = JSON.stringify([source, type, reason]);
    const known = this.#similar.get(similarId);
    const messages =
      known !== undefined && nowMs - known.lastMs <= SIMILAR_WITHIN_MS ? known.messages : new Set<string>();
    if (messages.size < foldFrom) messages.add(message);
    this.#similar.set(similarId, { messages, lastMs: nowMs });
    return messages.size < foldFrom ? { id, message } : { id: similarId, message: `${FOLDED}${message}` };
  }

  #mayTell(source: string, nowMs: number): boolean {
    const { burst, refillMs } = this.#options;
    const { tokens, atMs } = this.#buckets.get(source) ?? { tokens: burst, atMs: nowMs };
    const refilled = Math.min(burst, tokens + Math.max(0, nowMs - atMs) / refillMs);
    const mayTell = refilled >= 1;
    this.#buckets.set(source, { tokens: mayTell ? refilled - 1 : refilled, atMs: nowMs });
    return mayTell;
  }
}

/** A map that forgets what has not been touched for longest. */
class Recent<V> {
  readonly #values = new Map<string, V>();

  get(key: string): V | undefined {
    return this.#values.get(key);
  }

  set(key: string, value: V): void {
    this.#values.delete(key);
    this.#values.set(key, value);
    if (this.#values.size <= MOST_REMEMBERED) return;
    const oldest = this.#values.keys().next();
    if (!oldest.done) this.#values.delete(oldest.value);
  }
}
