import type { Clock } from '../../kube/clock.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { Bucket } from './bucket.ts';
import type { DamagedObjectError } from './damaged.ts';
import { type Change, Entry } from './entry.ts';
import { DEFAULT_HISTORY, History, type HistoryLimits } from './history.ts';
import type { Journal, StoredVersion, Version } from './journal.ts';

export interface StoreOptions {
  readonly clock: Clock;
  /** Absent: nothing is written to disk. */
  readonly journal?: Journal | undefined;
  readonly history?: HistoryLimits | undefined;
}

/** What a writer wants done with the object it was shown. The store sets `metadata.resourceVersion`. */
export type Decision =
  | { readonly put: KubeObject }
  /** The object's last state, as the DELETED event shows it. */
  | { readonly remove: KubeObject }
  /** Nothing to do: no new revision, no event. */
  | { readonly keep: Entry };

export interface ListRequest {
  /** Only paths that start with it. */
  readonly prefix?: string | undefined;
  /** Only paths that come after it. */
  readonly after?: string | undefined;
  /** The state as of this revision; absent: now. */
  readonly at?: number | undefined;
}

/** Watched in place of a bucket: all of them. */
export const EVERYTHING = '*';

/** The revision asked for is older than the history kept. */
export class CompactedError extends Error {
  override readonly name = 'CompactedError';
  readonly revision: number;
  readonly compacted: number;

  constructor(revision: number, compacted: number) {
    super(`revision ${revision} is gone: history starts after ${compacted}`);
    this.revision = revision;
    this.compacted = compacted;
  }
}

/** What is stored of one object is bounded, whatever its parts add up to. */
export const LARGEST_OBJECT_BYTES = 2 * 1024 * 1024;

export class ObjectTooLargeError extends Error {
  override readonly name = 'ObjectTooLargeError';

  constructor(bytes: number) {
    super(`limit is ${LARGEST_OBJECT_BYTES} bytes for one stored object, this one has ${bytes}`);
  }
}

/**
 * All objects in memory, every version numbered by one counter, the recent ones kept; written to a journal before anybody
 * sees them.
 *
 * A write runs in two steps. `write` shows the writer the newest accepted version and takes its decision, at once and
 * without a gap, so optimistic checks need no retry. Accepted writes of one turn of the event loop are then committed to
 * the journal together; only after that they become visible to reads and watches, and the writers get their answer.
 */
export class Store {
  readonly #clock: Clock;
  readonly #journal: Journal | undefined;
  readonly #buckets = new Map<string, Bucket>();
  readonly #listeners = new Map<string, Set<(change: Change) => void>>();
  readonly #history: History;
  /** What could not be read when the store was opened. */
  readonly damage: DamagedObjectError[] = [];
  /** Revision of the last committed change. */
  #revision: number;
  #accepted: Accepted[] = [];
  /** The newest accepted change of each object that is not committed yet. */
  #newest = new Map<string, Change>();
  /** Those who change nothing and wait for what was accepted before them. */
  #keepers: Keeper[] = [];
  #closed = false;

  constructor({ clock, journal, history = DEFAULT_HISTORY }: StoreOptions) {
    this.#clock = clock;
    this.#journal = journal;
    const { versions, compacted } = journal?.load() ?? { versions: [], compacted: 0 };
    this.#revision = compacted;
    this.#history = new History(compacted, history);
    for (const version of versions) {
      this.#restore(version);
      if (version.damage !== undefined) this.damage.push(version.damage);
    }
    // Nobody may be led through a past with holes in it: watches begin anew.
    if (this.damage.length > 0) this.compact(this.#revision);
  }

  /** The revision reads see now. */
  get revision(): number {
    return this.#revision;
  }

  /** Watches and lists can go back to this revision and no further. */
  get compacted(): number {
    return this.#history.compacted;
  }

  get(bucket: string, path: string): Entry | undefined {
    return this.#buckets.get(bucket)?.get(path);
  }

  /** Like `get`, and sees accepted writes that are not committed yet: for decisions, never for answers. */
  newest(bucket: string, path: string): Entry | undefined {
    const change = this.#newest.get(keyOf(bucket, path));
    if (change === undefined) return this.get(bucket, path);
    return change.type === 'deleted' ? undefined : change.entry;
  }

  /** Like `list` of a whole bucket, with accepted writes; in no particular order. */
  *newestOf(bucket: string): Generator<Entry> {
    for (const entry of this.list(bucket)) if (!this.#newest.has(keyOf(bucket, entry.path))) yield entry;
    for (const { type, entry } of this.#newest.values()) if (entry.bucket === bucket && type !== 'deleted') yield entry;
  }

  count(bucket: string): number {
    return this.#buckets.get(bucket)?.size ?? 0;
  }

  buckets(): string[] {
    return [...this.#buckets].filter(([, bucket]) => bucket.size > 0).map(([name]) => name);
  }

  /** In the order of paths. To be consumed at once: later writes would show. Throws `CompactedError`. */
  list(bucket: string, { prefix = '', after = '', at }: ListRequest = {}): Iterable<Entry> {
    const present = this.#buckets.get(bucket);
    if (at === undefined || at >= this.#revision) return present?.range(prefix, after) ?? [];
    return this.#past(bucket, prefix, after, at);
  }

  #past(bucket: string, prefix: string, after: string, at: number): Entry[] {
    this.#assertKept(at);
    const state = new Map<string, Entry>();
    for (const entry of this.#buckets.get(bucket)?.range(prefix, after) ?? []) state.set(entry.path, entry);
    for (const { entry, previous } of this.#history.undo(at)) {
      if (entry.bucket !== bucket || !entry.path.startsWith(prefix) || entry.path <= after) continue;
      if (previous === undefined) state.delete(entry.path);
      else state.set(entry.path, previous);
    }
    return [...state.values()].sort((a, b) => (a.path < b.path ? -1 : 1));
  }

  /**
   * Calls `decide` at once with the newest version and resolves, after the commit, to what is stored then (for a removal:
   * the last state). Rejects with what `decide` throws, or with the journal's error.
   */
  async write(bucket: string, path: string, decide: (newest: Entry | undefined) => Decision): Promise<Entry> {
    if (this.#closed) throw new Error('the store is closed');
    const newest = this.newest(bucket, path);
    const decision = decide(newest);
    if ('keep' in decision) {
      return this.#newest.has(keyOf(bucket, path)) ? this.#afterCommit(decision.keep) : decision.keep;
    }
    const change = this.#accept(bucket, path, decision, newest);
    if (this.#accepted.length === 0) this.#schedule();
    return new Promise((resolve, reject) => {
      this.#accepted.push({ change, resolve, reject, drop: newest?.damage === undefined ? [] : [newest.revision] });
    });
  }

  /** Who was shown a version that is not on the disk yet learns of it no sooner than its writer does. */
  #afterCommit(entry: Entry): Promise<Entry> {
    return new Promise((resolve, reject) => {
      this.#keepers.push({ resolve: () => resolve(entry), reject });
    });
  }

  #accept(
    bucket: string,
    path: string,
    decision: Exclude<Decision, { keep: Entry }>,
    previous: Entry | undefined,
  ): Change {
    const object = 'put' in decision ? decision.put : decision.remove;
    const revision = this.#revision + this.#accepted.length + 1;
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(revision) } };
    const entry = new Entry(bucket, path, revision, Buffer.from(JSON.stringify(stored)));
    if (entry.bytes > LARGEST_OBJECT_BYTES) throw new ObjectTooLargeError(entry.bytes);
    const type = 'remove' in decision ? 'deleted' : previous === undefined ? 'created' : 'updated';
    const before = previous?.damage === undefined ? previous : new Entry(bucket, path, previous.revision, entry.json);
    const change: Change = { type, entry, previous: before, at: this.#clock.now().getTime() };
    this.#newest.set(keyOf(bucket, path), change);
    return change;
  }

  #schedule(): void {
    // With a disk, all requests of this turn of the loop share one sync; without one, there is nothing to share.
    if (this.#journal === undefined) queueMicrotask(() => this.#commit());
    else setImmediate(() => this.#commit());
  }

  #commit(): void {
    const accepted = this.#accepted;
    if (accepted.length === 0) return;
    const compaction = this.#history.due(this.#clock.now().getTime());
    const keepers = this.#keepers;
    this.#accepted = [];
    this.#newest = new Map();
    this.#keepers = [];
    try {
      this.#journal?.commit({
        add: accepted.map(({ change }) => versionOf(change)),
        drop: [...(compaction?.drop ?? []), ...accepted.flatMap(({ drop }) => drop)],
        compacted: compaction?.compacted ?? this.#history.compacted,
      });
    } catch (error) {
      for (const { reject } of [...accepted, ...keepers]) reject(error);
      return;
    }
    if (compaction !== undefined) this.#history.forget(compaction);
    for (const { change } of accepted) this.#apply(change);
    for (const { change, resolve } of accepted) {
      resolve(change.entry);
      for (const listener of this.#listeners.get(change.entry.bucket) ?? []) listener(change);
      for (const listener of this.#listeners.get(EVERYTHING) ?? []) listener(change);
    }
    for (const { resolve } of keepers) resolve();
  }

  #apply(change: Change): void {
    const { type, entry } = change;
    let bucket = this.#buckets.get(entry.bucket);
    if (bucket === undefined) {
      bucket = new Bucket();
      this.#buckets.set(entry.bucket, bucket);
    }
    if (type === 'deleted') bucket.delete(entry.path);
    else bucket.set(entry.path, entry);
    this.#revision = entry.revision;
    this.#history.add(change);
  }

  #restore({ revision, bucket, path, deleted, at, json, damage }: StoredVersion): void {
    const bytes = Buffer.from(json.buffer, json.byteOffset, json.byteLength);
    const entry = new Entry(bucket, path, revision, bytes, damage);
    const previous = this.get(bucket, path);
    const type = deleted ? 'deleted' : previous === undefined ? 'created' : 'updated';
    if (revision > this.#history.compacted) {
      this.#apply({ type, entry, previous, at });
    } else {
      const objects = this.#buckets.get(bucket) ?? new Bucket();
      this.#buckets.set(bucket, objects);
      if (deleted) objects.delete(path);
      else objects.set(path, entry);
    }
  }

  /**
   * Calls `listener` for every change after `revision`: first, before it returns, with those of the past, then with each
   * one as it is committed. The listener must not throw. Returns the function that stops it. Throws `CompactedError`.
   */
  watch(bucket: string, revision: number, listener: (change: Change) => void): () => void {
    this.#assertKept(revision);
    for (const change of this.#history.after(revision)) {
      if (bucket === EVERYTHING || change.entry.bucket === bucket) listener(change);
    }
    const listeners = this.#listeners.get(bucket) ?? new Set();
    this.#listeners.set(bucket, listeners);
    const live = afterRevision(Math.max(revision, this.#revision), listener);
    listeners.add(live);
    return () => {
      listeners.delete(live);
    };
  }

  /** Forgets history up to `revision` now, without waiting for the limits. */
  compact(revision: number): void {
    const compaction = this.#history.upTo(Math.min(revision, this.#revision));
    if (compaction === undefined) return;
    this.#journal?.commit({ add: [], drop: compaction.drop, compacted: compaction.compacted });
    this.#history.forget(compaction);
  }

  /** Commits what is accepted and lets go of the disk. */
  close(): void {
    if (this.#closed) return;
    this.#commit();
    this.#closed = true;
    this.#journal?.close();
  }

  #assertKept(revision: number): void {
    if (revision < this.#history.compacted) throw new CompactedError(revision, this.#history.compacted);
  }
}

interface Accepted {
  readonly change: Change;
  readonly resolve: (entry: Entry) => void;
  readonly reject: (error: unknown) => void;
  /** A damaged version that it replaces. */
  readonly drop: readonly number[];
}

interface Keeper {
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
}

function keyOf(bucket: string, path: string): string {
  return `${bucket}\n${path}`;
}

function versionOf({ type, entry, at }: Change): Version {
  const { revision, bucket, path, json } = entry;
  return { revision, bucket, path, deleted: type === 'deleted', at, json };
}

/** Skips what was replayed when the watch began, and what comes before a start in the future. */
function afterRevision(revision: number, listener: (change: Change) => void): (change: Change) => void {
  return change => {
    if (change.entry.revision > revision) listener(change);
  };
}
