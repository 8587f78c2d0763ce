import { seconds } from '../../kube/duration.ts';
import type { WatchSink } from '../rest/watch.ts';
import { EventEncoder, type View } from './encode.ts';
import { type LineWriter, WatchStream } from './watch-stream.ts';

/** What all watches together may leave unread; then those that have not read for longest are cut off. */
export const MAX_UNREAD_TOGETHER = 64 * 1024 * 1024;
const TICK_MS = seconds(1);

/** All open watches. One timer serves them all: time limits and bookmarks. */
export class WatchHub {
  readonly #streams = new Set<WatchStream>();
  readonly #encoder = new EventEncoder();
  readonly #revision: () => number;
  /** What streams had left unread when they last told; those that have read nothing for longest come first. */
  readonly #unread = new Map<WatchStream, number>();
  /** The sum of it: never less than what is unread now. */
  #unreadTogether = 0;
  /** Streams that were told to end and have not yet; they are given up when they do not. */
  readonly #ending = new Set<WatchStream>();
  #timer: NodeJS.Timeout | undefined;
  #closed = false;

  constructor(revision: () => number) {
    this.#revision = revision;
  }

  get size(): number {
    return this.#streams.size;
  }

  /** Bytes that readers have not taken, of all watches together. */
  get unread(): number {
    return [...this.#unread.keys()].reduce((sum, stream) => sum + stream.unread, 0);
  }

  /** `begin` starts the watch with the sink and returns what stops it; it may throw, which ends the stream with an error event. */
  open(
    view: View,
    writer: LineWriter,
    options: { allowBookmarks: boolean; timeoutSeconds: number | undefined },
    begin: (sink: WatchSink) => () => void,
  ): WatchStream {
    const stream = new WatchStream(view, writer, this.#encoder, options, this);
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref();
    stream.begin(begin);
    if (this.#closed) stream.close();
    if (!stream.closed) this.#streams.add(stream);
    return stream;
  }

  close(): void {
    this.#closed = true;
    clearInterval(this.#timer);
    for (const stream of this.#streams) stream.close();
  }

  /** A stream says what it has left unread now. */
  progress(stream: WatchStream, unread: number): void {
    this.#note(stream, unread);
    for (const [slowest, known] of this.#unread) {
      if (this.#unreadTogether <= MAX_UNREAD_TOGETHER) return;
      // Reading is not told, unless somebody waits for it.
      if (slowest.unread < known) this.#note(slowest, slowest.unread);
      else slowest.cutOff();
    }
  }

  #note(stream: WatchStream, unread: number): void {
    const before = this.#unread.get(stream) ?? 0;
    this.#unreadTogether += unread - before;
    if (unread < before) this.#unread.delete(stream);
    if (unread > 0) this.#unread.set(stream, unread);
  }

  /** A stream has been told to end; what it has left in its connection still counts. */
  ended(stream: WatchStream): void {
    this.#streams.delete(stream);
    if (this.#unread.has(stream)) this.#ending.add(stream);
  }

  /** Nothing is left of a stream. */
  gone(stream: WatchStream): void {
    this.#streams.delete(stream);
    this.#ending.delete(stream);
    this.#unreadTogether -= this.#unread.get(stream) ?? 0;
    this.#unread.delete(stream);
  }

  #tick(): void {
    const now = Date.now();
    for (const stream of this.#streams) stream.tick(now, this.#revision());
    for (const stream of this.#ending) stream.giveUp(now);
  }
}
