import type { Entry } from './entry.ts';

/** All objects of one resource, in the order of their paths. */
export class Bucket {
  readonly #entries = new Map<string, Entry>();
  readonly #paths: string[] = [];

  get size(): number {
    return this.#entries.size;
  }

  get(path: string): Entry | undefined {
    return this.#entries.get(path);
  }

  set(path: string, entry: Entry): void {
    if (!this.#entries.has(path)) this.#paths.splice(firstAtLeast(this.#paths, path), 0, path);
    this.#entries.set(path, entry);
  }

  delete(path: string): void {
    if (this.#entries.delete(path)) this.#paths.splice(firstAtLeast(this.#paths, path), 1);
  }

  /** The entries whose path starts with `prefix` and comes after `after`, in order. */
  *range(prefix: string, after = ''): Generator<Entry> {
    let index = firstAtLeast(this.#paths, after > prefix ? after : prefix);
    if (after !== '' && this.#paths[index] === after) index++;
    for (; index < this.#paths.length; index++) {
      const path = this.#paths[index] as string;
      if (!path.startsWith(prefix)) return;
      yield this.#entries.get(path) as Entry;
    }
  }
}

function firstAtLeast(sorted: readonly string[], wanted: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((sorted[middle] as string) < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
