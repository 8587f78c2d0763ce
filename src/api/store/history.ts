import type { Change } from './entry.ts';

/** How much of the past is kept for watches that resume and lists that continue. The first bound reached counts. */
export interface HistoryLimits {
  readonly maxChanges: number;
  readonly maxBytes: number;
  readonly maxAgeMs: number;
}

export const DEFAULT_HISTORY: HistoryLimits = {
  maxChanges: 50_000,
  maxBytes: 128 * 1024 * 1024,
  maxAgeMs: 10 * 60_000,
};

/** Compaction runs when this much has piled up, not at every write. */
const SLACK = 1 / 16;

/** What a compaction removes. */
export interface Compaction {
  readonly count: number;
  readonly bytes: number;
  /** Revisions whose versions nobody can ask for any more. */
  readonly drop: readonly number[];
  /** The newest revision that is forgotten. */
  readonly compacted: number;
}

/** The recent changes of all objects, oldest first, without gaps back to `compacted`. */
export class History {
  readonly #limits: HistoryLimits;
  #changes: Change[] = [];
  #bytes = 0;
  #compacted: number;

  constructor(compacted: number, limits: HistoryLimits) {
    this.#compacted = compacted;
    this.#limits = limits;
  }

  /** Changes up to and including this revision are forgotten. */
  get compacted(): number {
    return this.#compacted;
  }

  add(change: Change): void {
    this.#changes.push(change);
    this.#bytes += change.entry.bytes;
  }

  /** The changes after `revision`, oldest first. */
  *after(revision: number): Generator<Change> {
    for (let index = this.#firstAfter(revision); index < this.#changes.length; index++) {
      yield this.#changes[index] as Change;
    }
  }

  /** The changes after `revision`, newest first: the order in which they are undone. */
  *undo(revision: number): Generator<Change> {
    const first = this.#firstAfter(revision);
    for (let index = this.#changes.length - 1; index >= first; index--) yield this.#changes[index] as Change;
  }

  /** What is to be forgotten now, if it is worth it. Nothing changes until `forget`. */
  due(now: number): Compaction | undefined {
    const { maxChanges, maxBytes, maxAgeMs } = this.#limits;
    const oldest = this.#changes[0];
    if (oldest === undefined) return undefined;
    const worthIt =
      this.#changes.length > maxChanges * (1 + SLACK) ||
      this.#bytes > maxBytes * (1 + SLACK) ||
      now - oldest.at > maxAgeMs * (1 + SLACK);
    if (!worthIt) return undefined;
    let [count, bytes] = [0, 0];
    for (const change of this.#changes) {
      const within = this.#changes.length - count <= maxChanges && this.#bytes - bytes <= maxBytes;
      if (within && now - change.at <= maxAgeMs) break;
      count++;
      bytes += change.entry.bytes;
    }
    return this.#compaction(count, bytes);
  }

  /** Forgets everything up to `revision`, whatever the limits. */
  upTo(revision: number): Compaction | undefined {
    const count = this.#firstAfter(revision);
    if (count === 0) return undefined;
    return this.#compaction(
      count,
      this.#changes.slice(0, count).reduce((sum, { entry }) => sum + entry.bytes, 0),
    );
  }

  forget({ count, bytes, compacted }: Compaction): void {
    this.#changes = this.#changes.slice(count);
    this.#bytes -= bytes;
    this.#compacted = compacted;
  }

  #compaction(count: number, bytes: number): Compaction {
    const forgotten = this.#changes.slice(0, count);
    const drop = forgotten.flatMap(({ type, entry, previous }) => [
      ...(previous === undefined ? [] : [previous.revision]),
      ...(type === 'deleted' ? [entry.revision] : []),
    ]);
    return { count, bytes, drop, compacted: forgotten.at(-1)?.entry.revision ?? this.#compacted };
  }

  #firstAfter(revision: number): number {
    let low = 0;
    let high = this.#changes.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#changes[middle] as Change).entry.revision <= revision) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
