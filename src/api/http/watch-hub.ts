import { minutes, seconds } from '../../kube/duration.ts';
import type { WatchSink } from '../rest/watch.ts';
import { expired, statusOf } from '../status.ts';
import type { Entry } from '../store/entry.ts';
import { EventEncoder, type EventType, encodeBookmark, encodeError, type View } from './encode.ts';

/** Where the lines of a watch go. */
export interface LineWriter {
  write(line: Buffer): unknown;
  end(): unknown;
  /** Bytes written and not taken yet. */
  readonly writableLength: number;
}

/** A client that leaves this much unread is cut off; it will list or resume. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;
const BOOKMARK_INTERVAL_MS = minutes(1);
const TICK_MS = seconds(1);
/** Watches without a time limit of their own end after this, so that clients spread over time. */
const SHORTEST_WATCH_MS = minutes(30);

/** All open watches. One timer serves them all: time limits and bookmarks. */
export class WatchHub {
  readonly #streams = new Set<WatchStream>();
  readonly #encoder = new EventEncoder();
  readonly #revision: () => number;
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(revision: () => number) {
    this.#revision = revision;
  }

  get size(): number {
    return this.#streams.size;
  }

  /** `begin` starts the watch with the sink and returns what stops it; it may throw, which ends the stream with an error event. */
  open(
    view: View,
    writer: LineWriter,
    options: { allowBookmarks: boolean; timeoutSeconds: number | undefined },
    begin: (sink: WatchSink) => () => void,
  ): WatchStream {
    const stream = new WatchStream(view, writer, this.#encoder, options, () => this.#streams.delete(stream));
    try {
      stream.stop = begin(stream);
    } catch (error) {
      stream.fail(error);
      return stream;
    }
    if (this.#closed) stream.close();
    if (stream.closed) stream.stop();
    else this.#streams.add(stream);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
    return stream;
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    for (const stream of this.#streams) stream.close();
  }

  #tick(): void {
    const now = Date.now();
    for (const stream of this.#streams) stream.tick(now, this.#revision());
  }
}

class WatchStream implements WatchSink {
  stop: () => void = () => {};
  closed = false;
  readonly #view: View;
  readonly #writer: LineWriter;
  readonly #encoder: EventEncoder;
  readonly #allowBookmarks: boolean;
  readonly #deadline: number;
  readonly #forget: () => void;
  #nextBookmark = Date.now() + BOOKMARK_INTERVAL_MS;
  #first = true;

  constructor(
    view: View,
    writer: LineWriter,
    encoder: EventEncoder,
    { allowBookmarks, timeoutSeconds }: { allowBookmarks: boolean; timeoutSeconds: number | undefined },
    forget: () => void,
  ) {
    this.#view = view;
    this.#writer = writer;
    this.#encoder = encoder;
    this.#allowBookmarks = allowBookmarks;
    this.#forget = forget;
    const lifetime = timeoutSeconds ? seconds(timeoutSeconds) : SHORTEST_WATCH_MS * (1 + Math.random());
    this.#deadline = Date.now() + lifetime;
  }

  event(type: EventType, entry: Entry): void {
    if (this.closed) return;
    try {
      this.#write(this.#encoder.encode(this.#view, type, entry, this.#first));
    } catch (error) {
      this.fail(error);
    }
    this.#first = false;
  }

  bookmark(revision: number, initialEventsEnd: boolean): void {
    this.#write(encodeBookmark(this.#view, revision, initialEventsEnd));
  }

  tick(now: number, revision: number): void {
    const over = now >= this.#deadline;
    if (this.#allowBookmarks && (over || now >= this.#nextBookmark)) {
      this.#nextBookmark = now + BOOKMARK_INTERVAL_MS;
      this.bookmark(revision, false);
    }
    if (over) this.close();
  }

  fail(error: unknown): void {
    this.#write(encodeError(statusOf(error)));
    this.close();
  }

  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.stop();
    this.#forget();
    this.#writer.end();
  }

  #write(line: Buffer): void {
    if (this.closed) return;
    this.#writer.write(line);
    if (this.#writer.writableLength <= MAX_UNREAD_BYTES) return;
    this.#writer.write(encodeError(statusOf(expired('the reader of this watch does not keep up'))));
    this.close();
  }
}
