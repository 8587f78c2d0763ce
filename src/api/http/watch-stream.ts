import { minutes, seconds } from '../../kube/duration.ts';
import type { WatchSink } from '../rest/watch.ts';
import { expired, statusOf } from '../status.ts';
import type { Entry } from '../store/entry.ts';
import { type EventEncoder, type EventType, encodeBookmark, encodeError, type View } from './encode.ts';

/** Where the lines of a watch go. */
export interface LineWriter {
  write(line: Buffer): unknown;
  end(): unknown;
  /** Breaks the answer off and gives back what was not taken. */
  destroy(): void;
  /** Calls when what was written has been taken. */
  onDrain(call: () => void): void;
  /** Bytes written and not taken yet. */
  readonly writableLength: number;
}

/** What the streams of a server share. */
export interface Streams {
  progress(stream: WatchStream, unread: number): void;
  ended(stream: WatchStream): void;
  gone(stream: WatchStream): void;
}

/** Lines are made when there is room for them: until then an event that waits is only a reference to what is stored. */
const MAX_WRITTEN_BYTES = 64 * 1024;
/** A client that leaves this much unread is cut off; it will list or resume. */
const MAX_UNREAD_BYTES = 16 * 1024 * 1024;
/** What an event weighs that waits and refers to what the store holds anyway. */
const REFERENCE_BYTES = 100;
const BOOKMARK_INTERVAL_MS = minutes(1);
/** Watches without a time limit of their own end after this, so that clients spread over time. */
const SHORTEST_WATCH_MS = minutes(30);
/** Who has been told that the watch ends and still does not read is given up. */
const LONGEST_END_MS = seconds(10);

interface Waiting {
  readonly line: () => Buffer;
  readonly bytes: number;
}

/** One watch: events on their way to a client, as fast as it reads. */
export class WatchStream implements WatchSink {
  closed = false;
  readonly #view: View;
  readonly #writer: LineWriter;
  readonly #encoder: EventEncoder;
  readonly #allowBookmarks: boolean;
  readonly #deadline: number;
  readonly #streams: Streams;
  #stop: () => void = () => {};
  #beginning = true;
  #nextBookmark = Date.now() + BOOKMARK_INTERVAL_MS;
  #first = true;
  #endedAt = 0;
  /** Events that wait for room, from `#next` on. */
  #waiting: Waiting[] = [];
  #next = 0;
  #waitingBytes = 0;

  constructor(
    view: View,
    writer: LineWriter,
    encoder: EventEncoder,
    { allowBookmarks, timeoutSeconds }: { allowBookmarks: boolean; timeoutSeconds: number | undefined },
    streams: Streams,
  ) {
    this.#view = view;
    this.#writer = writer;
    this.#encoder = encoder;
    this.#allowBookmarks = allowBookmarks;
    this.#streams = streams;
    const lifetime = timeoutSeconds ? seconds(timeoutSeconds) : SHORTEST_WATCH_MS * (1 + Math.random());
    this.#deadline = Date.now() + lifetime;
    writer.onDrain(() => this.#advance());
  }

  /** Starts the watch; what fails ends it with an error event. */
  begin(begin: (sink: WatchSink) => () => void): void {
    try {
      this.#stop = begin(this);
    } catch (error) {
      this.fail(error);
    }
    this.#beginning = false;
    if (this.closed) this.#stop();
  }

  event(type: EventType, entry: Entry): void {
    const first = this.#first;
    this.#first = false;
    // What a watch begins with is the state, which is there whether or not somebody waits for it.
    const bytes = REFERENCE_BYTES + (this.#beginning ? 0 : entry.json.length);
    this.#add({ line: () => this.#encoder.encode(this.#view, type, entry, first), bytes });
  }

  bookmark(revision: number, initialEventsEnd: boolean): void {
    const line = () => encodeBookmark(this.#view, revision, initialEventsEnd);
    this.#add({ line, bytes: REFERENCE_BYTES });
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
    if (this.closed) return;
    this.#drop();
    this.#writer.write(encodeError(this.#view, statusOf(error)));
    this.close();
  }

  /** The reader does not keep up: it is told so behind what it has not taken yet. */
  cutOff(): void {
    if (this.closed) this.giveUp(Infinity);
    else this.fail(expired('the reader of this watch does not keep up'));
  }

  /** Ends the watch. What still waits is not sent: clients resume after the last event they have seen. */
  close(): void {
    if (this.closed) return;
    this.closed = true;
    this.#stop();
    this.#drop();
    this.#endedAt = Date.now();
    this.#report();
    this.#streams.ended(this);
    this.#writer.end();
  }

  /** Breaks off a stream that was ended long ago and is not read. */
  giveUp(now: number): void {
    if (now < this.#endedAt + LONGEST_END_MS) return;
    this.#writer.destroy();
    this.#streams.gone(this);
  }

  /** The client has gone, or has taken everything. */
  gone(): void {
    this.close();
    this.#streams.gone(this);
  }

  #add(waiting: Waiting): void {
    if (this.closed) return;
    this.#waiting.push(waiting);
    this.#waitingBytes += waiting.bytes;
    this.#advance();
    if (this.unread > MAX_UNREAD_BYTES) this.cutOff();
  }

  /** Writes what there is room for. */
  #advance(): void {
    while (this.#next < this.#waiting.length && this.#writer.writableLength < MAX_WRITTEN_BYTES) {
      const { line, bytes } = this.#waiting[this.#next++] as Waiting;
      this.#waitingBytes -= bytes;
      try {
        this.#writer.write(line());
      } catch (error) {
        this.fail(error);
        return;
      }
    }
    if (this.#next === this.#waiting.length) this.#drop();
    this.#report();
  }

  /** Bytes that wait or lie in the connection. */
  get unread(): number {
    return this.#writer.writableLength + this.#waitingBytes;
  }

  #report(): void {
    this.#streams.progress(this, this.unread);
  }

  #drop(): void {
    this.#waiting = [];
    this.#next = 0;
    this.#waitingBytes = 0;
  }
}
