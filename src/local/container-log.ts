import {
  appendFileSync,
  closeSync,
  copyFileSync,
  existsSync,
  type FSWatcher,
  fstatSync,
  mkdirSync,
  openSync,
  readFileSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  watch,
  writeFileSync,
} from 'node:fs';
import { dirname } from 'node:path';
import type { Clock } from '../kube/clock.ts';

/** One run of a container writes one log: this file, and the one before it when it grew too large. */
export const LARGEST_LOG_BYTES: number = 5 * 1024 * 1024;
/** Output that comes together counts as written at one time. */
const MARK_EVERY_MS = 100;
const MOST_MARKS = 10_000;

/** Everything up to `end` had been written at `time`. */
interface Mark {
  readonly end: number;
  readonly timeMs: number;
}

/**
 * Follows a log that a process writes itself, without anybody in between: notes when which part was written, for `--since` and
 * `--timestamps`, and cuts the file when it becomes too large.
 */
export class ContainerLog {
  readonly path: string;
  readonly #clock: Clock;
  readonly #largestBytes: number;
  #watcher: FSWatcher | undefined;
  #timer: NodeJS.Timeout | undefined;
  #marks: Mark[];

  constructor(path: string, clock: Clock, largestBytes = LARGEST_LOG_BYTES) {
    this.path = path;
    this.#clock = clock;
    this.#largestBytes = largestBytes;
    mkdirSync(dirname(path), { recursive: true });
    this.#marks = readMarks(path);
  }

  /** From now on changes of the file are noticed. */
  follow(): void {
    closeSync(openSync(this.path, 'a', 0o600));
    this.#watcher ??= watch(this.path, () => {
      this.#timer ??= setTimeout(() => this.note(), MARK_EVERY_MS).unref();
    });
    // A file system that cannot be watched costs precision, not output.
    this.#watcher.on('error', () => {});
    this.#watcher.unref();
    this.note();
  }

  /** Notes how far the log has come. */
  note(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    const size = sizeOf(this.path);
    const last = this.#marks.at(-1)?.end ?? 0;
    if (size > last) this.#mark({ end: size, timeMs: this.#clock.now().getTime() });
    if (size > this.#largestBytes) this.#cut();
  }

  /** The run is over. */
  close(): void {
    this.note();
    this.#watcher?.close();
    this.#watcher = undefined;
  }

  /** Removes the log of a run that nobody can ask for any more. */
  remove(): void {
    this.close();
    for (const path of [this.path, earlierPath(this.path), marksPath(this.path)]) rmSync(path, { force: true });
  }

  #mark(mark: Mark): void {
    this.#marks.push(mark);
    if (this.#marks.length <= MOST_MARKS) {
      appendFileSync(marksPath(this.path), `${mark.end} ${mark.timeMs}\n`, { mode: 0o600 });
      return;
    }
    this.#marks = this.#marks.filter((_, index) => index % 2 === 1);
    this.#writeMarks();
  }

  /**
   * The process holds the file open for appending, so it stays and loses its content; what was there becomes the earlier part.
   * A line written between the two steps is lost, as with every log that is cut this way.
   */
  #cut(): void {
    const part = `${this.path}.part`;
    copyFileSync(this.path, part);
    truncateSync(this.path, 0);
    renameSync(part, earlierPath(this.path));
    this.#marks = [{ end: 0, timeMs: this.#clock.now().getTime() }];
    this.#writeMarks();
  }

  #writeMarks(): void {
    writeFileSync(marksPath(this.path), this.#marks.map(({ end, timeMs }) => `${end} ${timeMs}\n`).join(''), {
      mode: 0o600,
    });
  }
}

export interface ReadLogOptions {
  readonly tailLines?: number | undefined;
  /** Only what was written at this time or later. */
  readonly since?: Date | undefined;
  readonly timestamps?: boolean | undefined;
  readonly limitBytes?: number | undefined;
  /** Goes on with what is written later until this says that nothing comes any more; absent: does not wait. */
  readonly follow?: { isOver(): boolean; readonly signal: AbortSignal } | undefined;
}

/** How often somebody who follows looks for more, where watching alone might miss it. */
const FOLLOW_MS = 200;
const READ_BYTES = 64 * 1024;

/** The output of one run. */
export async function* readLog(
  path: string,
  options: ReadLogOptions = {},
): AsyncGenerator<Uint8Array, void, undefined> {
  const { tailLines, since, timestamps = false, limitBytes = Number.POSITIVE_INFINITY, follow } = options;
  const whole = Buffer.concat([readIfThere(earlierPath(path)), readIfThere(path)]);
  const earlierBytes = existsSync(earlierPath(path)) ? statSync(earlierPath(path)).size : 0;
  const marks = readMarks(path);
  const timeAt = (end: number): number =>
    marks.find(mark => mark.end >= end - earlierBytes)?.timeMs ?? marks.at(-1)?.timeMs ?? 0;
  let left = limitBytes;
  const clipped = (chunk: Buffer): Buffer => {
    const part = chunk.subarray(0, Math.max(0, left));
    left -= part.length;
    return part;
  };
  let start = since === undefined ? 0 : startSince(whole, marks, earlierBytes, since);
  if (tailLines !== undefined) start = Math.max(start, startOfTail(whole, tailLines));
  const first = whole.subarray(start);
  const stamped = timestamps ? withTimes(first, offset => timeAt(start + offset)) : first;
  if (stamped.length > 0) yield clipped(stamped);
  if (follow === undefined) return;

  let position = whole.length - earlierBytes;
  const file = openSync(path, 'a+');
  try {
    while (left > 0 && !follow.signal.aborted) {
      const isOver = follow.isOver();
      const { size } = fstatSync(file);
      if (size < position) position = 0;
      while (position < size && left > 0) {
        const chunk = Buffer.alloc(Math.min(READ_BYTES, size - position));
        const read = readSync(file, chunk, 0, chunk.length, position);
        position += read;
        const text = chunk.subarray(0, read);
        yield clipped(timestamps ? withTimes(text, () => Date.now()) : text);
      }
      if (isOver) return;
      await changed(path, follow.signal);
    }
  } finally {
    closeSync(file);
  }
}

/** The last lines of a log for a termination message. */
export function tailOf(path: string, lines: number, bytes: number): string {
  const whole = readIfThere(path);
  return whole.subarray(Math.max(startOfTail(whole, lines), whole.length - bytes)).toString();
}

function changed(path: string, signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const watcher = watch(path);
    const done = () => {
      clearTimeout(timer);
      watcher.close();
      signal.removeEventListener('abort', done);
      resolve();
    };
    const timer = setTimeout(done, FOLLOW_MS);
    watcher.once('change', done);
    watcher.once('error', done);
    signal.addEventListener('abort', done, { once: true });
  });
}

function startOfTail(whole: Buffer, lines: number): number {
  if (lines <= 0) return whole.length;
  let at = whole.length;
  // The last line may or may not end with a newline; either way it is a line.
  for (let found = 0; found < lines && at > 0; found++) at = whole.lastIndexOf(0x0a, at - 2) + 1;
  return at;
}

function startSince(whole: Buffer, marks: readonly Mark[], earlierBytes: number, since: Date): number {
  const before = marks.findLast(mark => mark.timeMs < since.getTime());
  if (before === undefined) return 0;
  const at = before.end + earlierBytes;
  return at === 0 ? 0 : whole.indexOf(0x0a, at - 1) + 1 || whole.length;
}

function withTimes(text: Buffer, timeAt: (end: number) => number): Buffer {
  const parts: Buffer[] = [];
  for (let at = 0; at < text.length; ) {
    const newline = text.indexOf(0x0a, at);
    const end = newline < 0 ? text.length : newline + 1;
    const time = new Date(timeAt(end)).toISOString().replace('Z', '000000Z');
    parts.push(Buffer.from(`${time} `), text.subarray(at, end));
    at = end;
  }
  return Buffer.concat(parts);
}

function readMarks(path: string): Mark[] {
  const lines = readIfThere(marksPath(path)).toString().split('\n').filter(Boolean);
  return lines.map(line => {
    const [end = 0, timeMs = 0] = line.split(' ').map(Number);
    return { end, timeMs };
  });
}

function readIfThere(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return Buffer.alloc(0);
    throw error;
  }
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size;
  } catch {
    return 0;
  }
}

const earlierPath = (path: string): string => `${path}.1`;
const marksPath = (path: string): string => `${path}.times`;
