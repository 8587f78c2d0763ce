import { type BackoffOptions, backoffMs } from './backoff.ts';
import { Cache, type CacheHandlers, type Lister } from './cache.ts';
import { type Clock, lull, randomOf, sleep, systemClock } from './clock.ts';
import { minutes, seconds } from './duration.ts';
import { isGone, isVersionTooLarge } from './error.ts';
import { listAll, PAGE_SIZE } from './list.ts';
import type { Kube, Selection, WatchEvent } from './port.ts';
import type { KubeObject, ObjectKey, Resource } from './resource.ts';
import { isOlder } from './resource-version.ts';

export interface InformerOptions<T extends KubeObject> {
  readonly selection?: Pick<Selection, 'namespace' | 'labelSelector' | 'fieldSelector'> | undefined;
  readonly indexes?: Readonly<Record<string, (object: T) => readonly string[]>> | undefined;
  /**
   * Whether the selection holds an object: asked about what `remember` is told. Needed with a label or field selector
   * other than `metadata.name=<name>`; without it, only objects that are already here are remembered.
   */
  readonly selects?: ((object: T) => boolean) | undefined;
  readonly clock?: Clock | undefined;
  readonly backoff?: BackoffOptions | undefined;
  /** A watch from which nothing was heard for so long is given up and begun again. */
  readonly silenceMs?: number | undefined;
  readonly pageSize?: number | undefined;
  /** More objects than this are refused: the memory of the process is not the place for them. */
  readonly mostObjects?: number | undefined;
  /** Hears of every failed attempt and of every handler that threw; the informer goes on. */
  readonly onError?: ((error: unknown) => void) | undefined;
}

/** How long the server is asked to keep a watch; spread, so that not all watches of a fleet end together. */
const SHORTEST_WATCH_SECONDS = 300;
const WATCH_SPREAD_SECONDS = 300;
/** API servers send a bookmark about every minute; without any, a quiet watch is simply begun again. */
const SILENCE_MS = minutes(3);
const BACKOFF: BackoffOptions = { firstMs: seconds(0.4), longestMs: seconds(30) };
const MOST_OBJECTS = 100_000;

/**
 * Keeps a copy of a part of the API in memory, exactly: it lists, then watches from there, resumes where a watch ended,
 * and when the server no longer knows that point, lists again and works out what happened in between.
 */
export class Informer<T extends KubeObject> implements Lister<T> {
  readonly resource: Resource<T>;
  readonly #kube: Kube;
  readonly #options: InformerOptions<T>;
  readonly #clock: Clock;
  readonly #backoff: BackoffOptions;
  readonly #cache: Cache<T>;
  readonly #stop = new AbortController();
  readonly #synced = Promise.withResolvers<void>();
  #hasSynced = false;
  /** Everything up to here is in the cache. Undefined: list first. */
  #version: string | undefined;
  /** The same, kept while a new list is under way. */
  #reached: string | undefined;
  /** Attempts in a row that brought nothing. */
  #failures = 0;
  #run: Promise<void> | undefined;

  constructor(kube: Kube, resource: Resource<T>, options: InformerOptions<T> = {}) {
    this.resource = resource;
    this.#kube = kube;
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#backoff = { random: randomOf(this.#clock), ...(options.backoff ?? BACKOFF) };
    this.#cache = new Cache({ indexes: options.indexes, onError: error => this.#report(error) });
    this.#synced.promise.catch(() => {});
  }

  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Resolves when the first list is complete; rejects when the informer is stopped before. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  start(): this {
    this.#run ??= this.#loop();
    return this;
  }

  /** Ends the watch and resolves when nothing of it is left. Reads go on giving the last state. */
  async stop(): Promise<void> {
    this.#stop.abort(new Error(`the informer of ${this.resource.plural} has been stopped`));
    this.#synced.reject(this.#stop.signal.reason);
    await this.#run;
  }

  /** Tells of everything that is there and of every change from now on. Returns the way to stop that. */
  subscribe(handlers: CacheHandlers<T>): () => void {
    return this.#cache.subscribe(handlers);
  }

  get(key: ObjectKey): T | undefined {
    return this.#cache.get(key);
  }

  list(namespace?: string): T[] {
    return this.#cache.list(namespace);
  }

  by(index: string, value: string): T[] {
    return this.#cache.by(index, value);
  }

  remember(written: T): void {
    // What the watch has passed is in the cache already, or deleted since: putting it back would raise the dead.
    const isPassed = this.#reached !== undefined && !isOlder(this.#reached, written.metadata?.resourceVersion);
    if (!isPassed && this.#selects(written)) this.#cache.put(withoutManagedFields(structuredClone(written)));
  }

  #selects(object: T): boolean {
    const { selects, selection = {} } = this.#options;
    const { namespace, name = '' } = object.metadata ?? {};
    if (selection.namespace !== undefined && selection.namespace !== namespace) return false;
    if (selects !== undefined) return selects(object);
    const [, wanted] = /^metadata\.name=([^,=!\\]+)$/.exec(selection.fieldSelector ?? '') ?? [];
    const isByName = selection.fieldSelector === undefined || wanted !== undefined;
    if (selection.labelSelector === undefined && isByName) return wanted === undefined || wanted === name;
    return this.#cache.get({ name, namespace }) !== undefined;
  }

  async #loop(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      try {
        if (this.#version === undefined) await this.#relist();
        await this.#watch();
      } catch (error) {
        if (signal.aborted) return;
        this.#failures++;
        if (isGone(error) || isVersionTooLarge(error) || error instanceof HistoryWentBack) {
          this.#version = undefined;
          // After a good time this is everyday life: list at once. A second one in a row waits like any failure.
          if (this.#failures === 1) continue;
        }
        this.#report(error);
      }
      const pauseMs = backoffMs(this.#failures, this.#backoff);
      if (pauseMs > 0) await sleep(this.#clock, pauseMs, signal).catch(() => {});
    }
  }

  async #relist(): Promise<void> {
    const { selection, pageSize = PAGE_SIZE, mostObjects = MOST_OBJECTS } = this.#options;
    const options = { ...selection, signal: this.#stop.signal };
    // Without a resourceVersion the answer is the newest state, never an older one from the cache of some API server.
    const { items, metadata } = await listAll(this.#kube, this.resource, options, { pageSize, mostObjects });
    this.#stop.signal.throwIfAborted();
    const reset = isOlder(metadata.resourceVersion, this.#reached);
    this.#cache.replaceAll(items.map(withoutManagedFields), metadata.resourceVersion, reset);
    this.#version = this.#reached = metadata.resourceVersion;
    if (!this.#hasSynced) {
      this.#hasSynced = true;
      this.#synced.resolve();
    }
  }

  /** Watches until the stream ends, fails or falls silent. */
  async #watch(): Promise<void> {
    const { selection, silenceMs = SILENCE_MS } = this.#options;
    const silence = new Silence(this.#clock, silenceMs, this.#stop.signal);
    const random = this.#backoff.random ?? Math.random;
    const begunMs = this.#clock.now().getTime();
    let isUseful = false;
    try {
      for await (const event of this.#kube.watch(this.resource, {
        ...selection,
        resourceVersion: this.#version,
        allowWatchBookmarks: true,
        timeoutSeconds: SHORTEST_WATCH_SECONDS + Math.floor(random() * WATCH_SPREAD_SECONDS),
        signal: silence.signal,
      })) {
        if (this.#stop.signal.aborted) break;
        silence.break();
        this.#take(event);
        isUseful = true;
      }
    } finally {
      silence.end();
      isUseful ||= this.#clock.now().getTime() - begunMs >= SHORTEST_USEFUL_WATCH_MS;
      if (isUseful) this.#failures = 0;
    }
    if (!isUseful) this.#failures++;
    if (silence.wasTooLong) await this.#assertHistoryGoesOn();
  }

  /** A server that was started anew may keep a watch from its future open for ever, and silent. */
  async #assertHistoryGoesOn(): Promise<void> {
    const options = { ...this.#options.selection, limit: 1, signal: this.#stop.signal };
    const { metadata } = await this.#kube.list(this.resource, options);
    if (isOlder(metadata.resourceVersion, this.#reached)) throw new HistoryWentBack(this.resource.plural);
  }

  #take({ type, object }: WatchEvent<T>): void {
    const version = object.metadata?.resourceVersion;
    const isOld = isOlder(version, this.#version);
    // A deletion may carry the version of the last change; the cache knows by it whether that object is meant.
    if (isOld && type !== 'DELETED') throw new HistoryWentBack(this.resource.plural);
    if (type === 'DELETED') this.#cache.remove(withoutManagedFields(object));
    else if (type !== 'BOOKMARK') this.#cache.put(withoutManagedFields(object));
    if (version !== undefined && !isOld) this.#version = this.#reached = version;
    const { mostObjects = MOST_OBJECTS } = this.#options;
    if (this.#cache.size > mostObjects) {
      this.#version = undefined;
      throw new RangeError(`expected at most ${mostObjects} ${this.resource.plural}, the API has more`);
    }
  }

  #report(error: unknown): void {
    try {
      this.#options.onError?.(error);
    } catch {
      // Whoever listens to errors cannot stop the informer by failing at it.
    }
  }
}

/** A watch that ends sooner, and without an event, is treated as a failure so that no server is asked in a tight loop. */
const SHORTEST_USEFUL_WATCH_MS = seconds(1);

/** The server sent something older than what it had sent before: it was restored from a backup, or is another one. */
class HistoryWentBack extends Error {
  override readonly name = 'HistoryWentBack';

  constructor(plural: string) {
    super(`the API sent ${plural} from before the point that had been reached; listing again`);
  }
}

/** A signal that aborts when nobody broke the silence for too long. One timer, however many events there are. */
class Silence {
  readonly #controller = new AbortController();
  readonly #outer: AbortSignal;
  readonly #clock: Clock;
  readonly #onAbort = () => {
    this.#controller.abort(this.#outer.reason);
  };
  #heardMs: number;
  wasTooLong = false;

  constructor(clock: Clock, limitMs: number, outer: AbortSignal) {
    this.#clock = clock;
    this.#outer = outer;
    this.#heardMs = clock.now().getTime();
    if (outer.aborted) this.#onAbort();
    outer.addEventListener('abort', this.#onAbort, { once: true });
    void this.#listen(limitMs);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  break(): void {
    this.#heardMs = this.#clock.now().getTime();
  }

  end(): void {
    this.#controller.abort(ENDED);
    this.#outer.removeEventListener('abort', this.#onAbort);
  }

  async #listen(limitMs: number): Promise<void> {
    try {
      for (let leftMs = limitMs; leftMs > 0; leftMs = this.#heardMs + limitMs - this.#clock.now().getTime()) {
        await lull(this.#clock, Math.min(leftMs, limitMs), this.signal);
      }
      this.wasTooLong = true;
      this.#controller.abort(ENDED);
    } catch {
      // The watch is over.
    }
  }
}

const ENDED = new Error('the watch is over');

/** Who set which field is of no use to a reader and often larger than the object itself. */
function withoutManagedFields<T extends KubeObject>(object: T): T {
  if (object.metadata?.managedFields === undefined) return object;
  const { managedFields: _, ...metadata } = object.metadata;
  return { ...object, metadata };
}
