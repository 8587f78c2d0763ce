import type { KubeObject, ObjectKey } from './resource.ts';
import { compareVersions, isOlder } from './resource-version.ts';

/** Reads from memory. What it gives is shared and frozen: copy before changing anything. */
export interface Lister<T extends KubeObject> {
  get(key: ObjectKey): T | undefined;
  /** All objects, or those of one namespace, in no particular order. */
  list(namespace?: string): T[];
  /** The objects for which the index function of that name gave `value`. */
  by(index: string, value: string): T[];
  /**
   * Tells of an object as the API returned it from a write. From now on reads give it or something newer, however late
   * the watch is (spec 10, W-4).
   */
  remember(written: T): void;
}

/** Hears of every change once, in order. */
export interface CacheHandlers<T extends KubeObject> {
  add?(object: T): void;
  update?(before: T, after: T): void;
  /** `last` is the last known state. */
  delete?(last: T): void;
}

export interface CacheOptions<T extends KubeObject> {
  /** Named functions that give the values an object is found under. */
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>> | undefined;
  /** Hears what a handler threw; the others are told all the same. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

const NAMESPACE = Symbol('namespace');

/** The objects of one resource by key, with indexes, that only ever move forward in time. */
export class Cache<T extends KubeObject> {
  readonly #objects = new Map<string, T>();
  readonly #indexes = new Map<string | symbol, Index<T>>();
  readonly #handlers = new Set<CacheHandlers<T>>();
  readonly #onError: (error: unknown) => void;
  /** What the handlers have not been told yet: a handler may itself write here, and all must hear things in one order. */
  #news: ((handlers: CacheHandlers<T>) => void)[] = [];
  #isTelling = false;

  constructor({ indexes = {}, onError = () => {} }: CacheOptions<T> = {}) {
    this.#onError = onError;
    this.#indexes.set(NAMESPACE, new Index(object => [object.metadata?.namespace ?? '']));
    for (const [name, values] of Object.entries(indexes)) {
      this.#indexes.set(name, new Index(object => this.#guard(() => values(object)) ?? []));
    }
  }

  get size(): number {
    return this.#objects.size;
  }

  get(key: ObjectKey): T | undefined {
    return this.#objects.get(idOf(key));
  }

  list(namespace?: string): T[] {
    return namespace === undefined ? [...this.#objects.values()] : this.#found(NAMESPACE, namespace);
  }

  by(index: string, value: string): T[] {
    if (!this.#indexes.has(index)) throw new RangeError(`there is no index "${index}"`);
    return this.#found(index, value);
  }

  /** Tells the handlers of everything that is there, then of every change. Returns the way to stop that. */
  subscribe(handlers: CacheHandlers<T>): () => void {
    for (const object of this.#objects.values()) this.#guard(() => handlers.add?.(object));
    this.#handlers.add(handlers);
    return () => this.#handlers.delete(handlers);
  }

  /** Takes an object as it was added, changed or written. One that is not newer than the known one is ignored. */
  put(object: T): void {
    const id = idOf(object.metadata ?? {});
    const known = this.#objects.get(id);
    if (known !== undefined && !isNews(known, object)) return;
    this.#replace(id, known, object);
  }

  /** Takes an object as it was when it was deleted. */
  remove(last: T): void {
    const id = idOf(last.metadata ?? {});
    const known = this.#objects.get(id);
    if (known === undefined || isOlder(versionOf(last), versionOf(known))) return;
    this.#replace(id, known, undefined, last);
  }

  /**
   * Takes the complete list as it was at `version`. Gone is what is not in it, except what we know to be newer than the
   * list. With `reset` the history of the server has gone back, and the list counts alone.
   */
  replaceAll(items: readonly T[], version: string | undefined, reset = false): void {
    const listed = new Set<string>();
    for (const item of items) {
      const id = idOf(item.metadata ?? {});
      listed.add(id);
      const known = this.#objects.get(id);
      const isKnown = known !== undefined && isSameState(known, item);
      if (known === undefined || (!isKnown && (reset || isNews(known, item)))) this.#replace(id, known, item);
    }
    for (const [id, known] of this.#objects) {
      const isNewerThanList = !reset && isOlder(version, versionOf(known));
      if (!listed.has(id) && !isNewerThanList) this.#replace(id, known, undefined);
    }
  }

  #replace(id: string, before: T | undefined, after: T | undefined, last = before): void {
    for (const index of this.#indexes.values()) index.move(id, before, after);
    if (after === undefined) this.#objects.delete(id);
    else this.#objects.set(id, deepFreeze(after));
    const isSame = before?.metadata?.uid === after?.metadata?.uid;
    if (before !== undefined && after !== undefined && isSame) {
      this.#tell(handlers => handlers.update?.(before, after));
      return;
    }
    // The same name with another uid is another object, although nobody told us of the end of the first one.
    if (last !== undefined) this.#tell(handlers => handlers.delete?.(deepFreeze(last)));
    if (after !== undefined) this.#tell(handlers => handlers.add?.(after));
  }

  #tell(news: (handlers: CacheHandlers<T>) => void): void {
    this.#news.push(news);
    if (this.#isTelling) return;
    this.#isTelling = true;
    for (let next = this.#news.shift(); next !== undefined; next = this.#news.shift()) {
      for (const handlers of this.#handlers) this.#guard(() => next?.(handlers));
    }
    this.#isTelling = false;
  }

  #guard<R>(work: () => R): R | undefined {
    try {
      return work();
    } catch (error) {
      this.#onError(error);
      return undefined;
    }
  }

  #found(index: string | symbol, value: string): T[] {
    const objects: T[] = [];
    for (const id of this.#indexes.get(index)?.ids(value) ?? []) {
      const object = this.#objects.get(id);
      if (object !== undefined) objects.push(object);
    }
    return objects;
  }
}

/** Which ids are found under which value. */
class Index<T> {
  readonly #values: (object: T) => readonly string[];
  readonly #ids = new Map<string, Set<string>>();

  constructor(values: (object: T) => readonly string[]) {
    this.#values = values;
  }

  ids(value: string): Iterable<string> {
    return this.#ids.get(value) ?? [];
  }

  move(id: string, before: T | undefined, after: T | undefined): void {
    for (const value of before === undefined ? [] : this.#values(before)) {
      const ids = this.#ids.get(value);
      ids?.delete(id);
      if (ids?.size === 0) this.#ids.delete(value);
    }
    for (const value of after === undefined ? [] : this.#values(after)) {
      const ids = this.#ids.get(value);
      if (ids === undefined) this.#ids.set(value, new Set([id]));
      else ids.add(id);
    }
  }
}

function idOf({ namespace, name }: { namespace?: string | undefined; name?: string }): string {
  return `${namespace ?? ''}/${name ?? ''}`;
}

function versionOf(object: KubeObject): string | undefined {
  return object.metadata?.resourceVersion;
}

function isSameState(a: KubeObject, b: KubeObject): boolean {
  return a.metadata?.uid === b.metadata?.uid && versionOf(a) === versionOf(b) && versionOf(a) !== undefined;
}

/** Where versions cannot be compared, what arrives later counts as newer. */
function isNews(known: KubeObject, object: KubeObject): boolean {
  return (compareVersions(versionOf(known), versionOf(object)) ?? -1) < 0;
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) deepFreeze(part);
  return Object.freeze(value);
}
