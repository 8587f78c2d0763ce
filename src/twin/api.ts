import { isDeepStrictEqual } from 'node:util';
import type { Lease } from 'kubernetes-types/coordination/v1.d.ts';
import { ConnectionError, KubeError } from '../kube/error.ts';
import type {
  DeleteOptions,
  Kube,
  ListOptions,
  ObjectList,
  Patch,
  PatchOptions,
  Selection,
  WatchEvent,
  WatchOptions,
} from '../kube/port.ts';
import { apiVersionOf, type KubeObject, keyOf, LEASES, type ObjectKey, PODS, type Resource } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { merged, plain } from './plain.ts';
import { selects } from './selection.ts';
import type { Time } from './time.ts';

/** What was written, as the story tells it. */
export interface Write {
  readonly by: string;
  readonly verb: 'create' | 'update' | 'updateStatus' | 'patch' | 'delete';
  readonly resource: Resource;
  readonly key: ObjectKey;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/**
 * What becomes of one call of one component; thrown errors are its answer. `after`: the call is carried out, and its answer is lost;
 * `onDone`: told when it is carried out, before the answer.
 */
export interface Weather {
  call(call: { readonly by: string; readonly verb: string; readonly resource: Resource; readonly name: string }): {
    readonly before?: Error | undefined;
    readonly after?: Error | undefined;
    readonly onDone?: (() => void) | undefined;
  };
  /** What becomes of the events of a watch that begins now. */
  watch(by: string): WatchWay;
  /** How many changes old a list is that somebody gets. */
  changesBehind(by: string): number;
}

/** The way of a watch. */
export interface WatchWay {
  /** How long the next event is under way, and whether it comes twice. `breaks`: the watch ends, with it; `silent`: it falls silent for ever. */
  next(): { readonly delayMs: number; readonly isTwice: boolean } | 'breaks' | 'silent';
}

const GOOD_WEATHER: Weather = {
  call: () => ({}),
  watch: () => ({ next: () => ({ delayMs: 0, isTwice: false }) }),
  changesBehind: () => 0,
};

/** How many changes a watch can be resumed from. */
const LONGEST_HISTORY = 4096;

/**
 * A Kubernetes API in memory: optimistic writes, versions, generations, graceful deletion, watches that can be resumed, and what lies
 * between it and its clients. What is stored is frozen and shared, so that a read costs nothing.
 */
export class Api {
  readonly #time: Time;
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  readonly #watchers = new Set<Watcher>();
  #history: Change[] = [];
  /** The version up to which the history has been forgotten. */
  #forgotten = 0;
  #revision = 1;
  #uids = 0;
  weather: Weather = GOOD_WEATHER;
  /** Why nobody can be served, whatever the weather; undefined: everybody can. */
  whyAway: () => string | undefined = () => undefined;
  /** Told of every write that changed something, before anybody hears of it. */
  onWrite: (write: Write) => void = () => {};

  constructor(time: Time) {
    this.#time = time;
  }

  /** How often something has changed. */
  get revision(): number {
    return this.#revision;
  }

  /** Reads without weather: for models and for whoever looks at everything. */
  stored<T extends KubeObject>(resource: Resource<T>, key: ObjectKey): T | undefined {
    return this.#objects.get(bucketOf(resource))?.get(idOf(key)) as T | undefined;
  }

  all<T extends KubeObject>(resource: Resource<T>, selection: Selection = {}): T[] {
    return [...(this.#objects.get(bucketOf(resource))?.values() ?? [])].filter(object =>
      selects(selection, object),
    ) as T[];
  }

  /** Something has changed that is not stored here. */
  stir(): void {
    this.#time.changed();
  }

  /** What a list was so many changes ago, as a server answers that lags behind. */
  allBehind(resource: Resource, selection: Selection, changes: number): { items: KubeObject[]; revision: number } {
    const undone = this.#history.slice(-changes);
    const objects = new Map(this.#objects.get(bucketOf(resource)));
    for (const { bucket, before, object } of undone.toReversed()) {
      if (bucket !== bucketOf(resource)) continue;
      if (before === undefined) objects.delete(idOf(keyOf(object)));
      else objects.set(idOf(keyOf(before)), before);
    }
    const revision = (undone[0]?.revision ?? this.#revision + 1) - 1;
    return { items: [...objects.values()].filter(object => selects(selection, object)), revision };
  }

  /** Forgets how it came to now: watches that are resumed from before get 410. */
  compact(): void {
    this.#history = [];
    this.#forgotten = this.#revision;
  }

  /** Ends all watches, as an API server that restarts does. */
  endWatches(): void {
    for (const watcher of this.#watchers) watcher.end();
  }

  /** The API in the hands of one component, until `signal` aborts: then the component is dead. */
  connect(by: string, signal?: AbortSignal): Kube {
    return new Connection(this, by, signal);
  }

  /** Puts an object there as it was elsewhere, status and all. */
  load<T extends KubeObject>(resource: Resource<T>, object: T): void {
    const {
      resourceVersion: _version,
      managedFields: _fields,
      ownerReferences: _owners,
      ...metadata
    } = object.metadata ?? {};
    const generation = metadata.generation ?? 1;
    const uid = metadata.uid ?? `uid-${++this.#uids}`;
    const loaded = { ...plain(object), metadata: { ...metadata, uid, generation } } as unknown as T;
    this.#store('load', 'create', resource, keyOf(object), undefined, loaded);
  }

  create<T extends KubeObject>(by: string, resource: Resource<T>, object: T): T {
    const key = keyOf(object);
    if (resource.namespaced && this.#objects.get('/namespaces')?.has(idOf({ name: key.namespace ?? '' })) !== true)
      throw new KubeError(404, 'NotFound', `namespaces "${key.namespace}" not found`);
    if (this.stored(resource, key) !== undefined)
      throw new KubeError(409, 'AlreadyExists', `${resource.plural} "${key.name}" already exists`);
    const { status, ...rest } = plain(object) as KubeObject & { status?: unknown };
    const created = {
      ...rest,
      ...(resource === (PODS as Resource) ? { status: { phase: 'Pending', ...(status as object | undefined) } } : {}),
      metadata: {
        ...rest.metadata,
        uid: `uid-${++this.#uids}`,
        creationTimestamp: formatRfc3339(new Date(this.#time.nowMs)),
        generation: 1,
      },
    } as unknown as T;
    return this.#store(by, 'create', resource, key, undefined, created);
  }

  update<T extends KubeObject>(by: string, resource: Resource<T>, object: T, part: 'all' | 'status'): T {
    const key = keyOf(object);
    const before = this.#existing(resource, key);
    this.#checkVersion(resource, before, object.metadata?.resourceVersion);
    type Any = T & { spec?: unknown; status?: unknown; type?: string };
    const given = plain(object) as Any;
    const kept = before as Any;
    if (resource.kind === 'Secret' && given.type !== kept.type) {
      const message = `Secret "${key.name}" is invalid: type: Invalid value: "${given.type}": field is immutable`;
      throw new KubeError(422, 'Invalid', message);
    }
    const after: Any =
      part === 'status'
        ? { ...kept, status: given.status }
        : { ...given, ...('status' in kept ? { status: kept.status } : {}) };
    if (part === 'all' && !('status' in kept)) delete after.status;
    const { uid, creationTimestamp, generation = 1, deletionTimestamp } = kept.metadata ?? {};
    const isSpecSame = part === 'status' || isDeepStrictEqual(given.spec, kept.spec);
    const metadata = {
      ...(part === 'status' ? kept.metadata : after.metadata),
      uid,
      creationTimestamp,
      generation: isSpecSame ? generation : generation + 1,
      ...(deletionTimestamp === undefined ? {} : { deletionTimestamp }),
    };
    return this.#store(by, part === 'status' ? 'updateStatus' : 'update', resource, key, before, {
      ...after,
      metadata,
    });
  }

  patch<T extends KubeObject>(
    by: string,
    resource: Resource<T>,
    key: ObjectKey,
    { type, body }: Patch,
    { subresource = '' }: PatchOptions = {},
  ): T {
    if (type !== 'merge' && type !== 'apply')
      throw new KubeError(415, 'UnsupportedMediaType', `the twin's API takes no ${type} patch`);
    if (type === 'apply' && this.stored(resource, key) === undefined)
      return this.create(by, resource, { ...body, metadata: { ...(body as T).metadata, ...key } } as unknown as T);
    const before = this.#existing(resource, key);
    const after = merged(before, plain(body)) as T;
    return this.update(by, resource, after, subresource === 'status' ? 'status' : 'all');
  }

  delete(by: string, resource: Resource, key: ObjectKey, options: DeleteOptions = {}): void {
    const before = this.#existing(resource, key);
    const { uid, resourceVersion, finalizers = [], deletionTimestamp } = before.metadata ?? {};
    const wanted = options.preconditions ?? {};
    if ((wanted.uid ?? uid) !== uid || (wanted.resourceVersion ?? resourceVersion) !== resourceVersion)
      throw new KubeError(409, 'Conflict', `${resource.plural} "${key.name}": the preconditions do not hold`);
    const isOnNode =
      resource === (PODS as Resource) && (before as { spec?: { nodeName?: string } }).spec?.nodeName !== undefined;
    if (finalizers.length > 0 || (isOnNode && options.gracePeriodSeconds !== 0)) {
      if (deletionTimestamp !== undefined) return;
      const metadata = { ...before.metadata, deletionTimestamp: formatRfc3339(new Date(this.#time.nowMs)) };
      this.#store(by, 'delete', resource, key, before, { ...before, metadata });
      return;
    }
    this.#objects.get(bucketOf(resource))?.delete(idOf(key));
    const last = frozen({ ...before, metadata: { ...before.metadata, resourceVersion: String(++this.#revision) } });
    this.onWrite({ by, verb: 'delete', resource, key, before, after: undefined });
    this.#tell(resource, 'DELETED', before, last);
  }

  watch(
    resource: Resource,
    { resourceVersion, ...selection }: WatchOptions,
    by: string,
    signal?: AbortSignal,
  ): Watcher {
    const from = resourceVersion === undefined ? this.#revision : Number(resourceVersion);
    if (from < this.#forgotten) {
      throw new KubeError(410, 'Expired', `too old resource version: ${from} (${this.#forgotten})`);
    }
    const watcher = new Watcher(this.#time, bucketOf(resource), selection, this.weather.watch(by), () =>
      this.#watchers.delete(watcher),
    );
    for (const change of this.#history) if (change.revision > from) watcher.hear(change);
    this.#watchers.add(watcher);
    selection.signal?.addEventListener('abort', () => watcher.end(), { once: true });
    signal?.addEventListener('abort', () => watcher.end(), { once: true });
    return watcher;
  }

  #existing<T extends KubeObject>(resource: Resource<T>, key: ObjectKey): T {
    const object = this.stored(resource, key);
    if (object === undefined) throw new KubeError(404, 'NotFound', `${resource.plural} "${key.name}" not found`);
    return object;
  }

  #checkVersion(resource: Resource, { metadata }: KubeObject, wanted: string | undefined): void {
    if (wanted === undefined || wanted === metadata?.resourceVersion) return;
    const message = `Operation cannot be fulfilled on ${resource.plural} "${metadata?.name}": the object has been modified; please apply your changes to the latest version and try again`;
    throw new KubeError(409, 'Conflict', message);
  }

  #store<T extends KubeObject>(
    by: string,
    verb: Write['verb'],
    resource: Resource<T>,
    key: ObjectKey,
    before: T | undefined,
    wanted: T,
  ): T {
    // A write that changes nothing is none, and nobody hears of it.
    const same = before !== undefined && isDeepStrictEqual(unversioned(before), unversioned(wanted));
    if (same) return before;
    const stored = frozen({
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      ...wanted,
      metadata: {
        ...wanted.metadata,
        resourceVersion: String(++this.#revision),
        managedFields: [{ manager: by, operation: 'Update', time: formatRfc3339(new Date(this.#time.nowMs)) }],
      },
    }) as T;
    const isLast =
      stored.metadata?.deletionTimestamp !== undefined &&
      verb !== 'delete' &&
      stored.metadata.finalizers?.length === 0 &&
      (before?.metadata?.finalizers?.length ?? 0) > 0;
    const bucket = this.#objects.get(bucketOf(resource)) ?? new Map<string, KubeObject>();
    this.#objects.set(bucketOf(resource), bucket);
    if (isLast) bucket.delete(idOf(key));
    else bucket.set(idOf(key), stored);
    this.onWrite({ by, verb, resource, key, before, after: isLast ? undefined : stored });
    this.#tell(resource, isLast ? 'DELETED' : before === undefined ? 'ADDED' : 'MODIFIED', before, stored);
    return stored;
  }

  #tell(resource: Resource, type: Change['type'], before: KubeObject | undefined, object: KubeObject): void {
    if (!isRenewal(resource, before, object)) this.#time.changed();
    const change = { revision: this.#revision, bucket: bucketOf(resource), type, before, object };
    this.#history.push(change);
    if (this.#history.length > LONGEST_HISTORY) {
      this.#history = this.#history.slice(LONGEST_HISTORY / 2);
      this.#forgotten = (this.#history[0] as Change).revision - 1;
    }
    for (const watcher of this.#watchers) watcher.hear(change);
  }
}

interface Change {
  readonly revision: number;
  readonly bucket: string;
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly before: KubeObject | undefined;
  readonly object: KubeObject;
}

/** One watch: events in order, each of them under way for a while. */
class Watcher {
  readonly #time: Time;
  readonly #bucket: string;
  readonly #selection: Selection;
  readonly #way: WatchWay;
  readonly #onEnd: () => void;
  readonly #waiting: WatchEvent<KubeObject>[] = [];
  #arrivesMs = 0;
  #isSilent = false;
  #wake = () => {};
  isOver = false;

  constructor(time: Time, bucket: string, selection: Selection, way: WatchWay, onEnd: () => void) {
    this.#time = time;
    this.#bucket = bucket;
    this.#selection = selection;
    this.#way = way;
    this.#onEnd = onEnd;
  }

  hear({ bucket, type, before, object }: Change): void {
    if (bucket !== this.#bucket || this.isOver || this.#isSilent) return;
    const isIn = selects(this.#selection, object);
    const wasIn = before !== undefined && selects(this.#selection, before);
    if (!isIn && !wasIn) return;
    // An object that leaves a selection is deleted for whoever watches the selection.
    const seen = isIn ? (wasIn || type !== 'MODIFIED' ? type : 'ADDED') : 'DELETED';
    const way = this.#way.next();
    if (way === 'silent') this.#isSilent = true;
    else if (way === 'breaks') this.end();
    else {
      const event = { type: seen, object };
      this.#sendOff(event, way.delayMs);
      if (way.isTwice) this.#sendOff(event, way.delayMs);
    }
  }

  #sendOff(event: WatchEvent<KubeObject>, delayMs: number): void {
    this.#arrivesMs = Math.max(this.#arrivesMs, this.#time.nowMs + delayMs);
    const leftMs = this.#arrivesMs - this.#time.nowMs;
    if (leftMs <= 0) this.#arrive(event);
    else void this.#time.after(leftMs).then(() => this.#arrive(event));
  }

  #arrive(event: WatchEvent<KubeObject>): void {
    this.#waiting.push(event);
    this.#wake();
  }

  end(): void {
    this.isOver = true;
    this.#onEnd();
    this.#wake();
  }

  async next(): Promise<WatchEvent<KubeObject> | undefined> {
    while (this.#waiting.length === 0 && !this.isOver) {
      await new Promise<void>(resolve => {
        this.#wake = resolve;
      });
    }
    return this.isOver ? undefined : this.#waiting.shift();
  }
}

class Connection implements Kube {
  readonly #api: Api;
  readonly #by: string;
  readonly #signal: AbortSignal | undefined;

  constructor(api: Api, by: string, signal: AbortSignal | undefined) {
    this.#api = api;
    this.#by = by;
    this.#signal = signal;
  }

  get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey): Promise<T> {
    return this.#call('get', resource, key.name, () => {
      const object = this.#api.stored(resource, key);
      if (object === undefined) throw new KubeError(404, 'NotFound', `${resource.plural} "${key.name}" not found`);
      return object;
    });
  }

  list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    const changes = this.#api.weather.changesBehind(this.#by);
    return this.#call('list', resource, '', () => {
      const { items, revision } =
        changes > 0
          ? this.#api.allBehind(resource, options, changes)
          : { items: this.#api.all(resource, options), revision: this.#api.revision };
      return { items: items as T[], metadata: { resourceVersion: String(revision) } };
    });
  }

  async *watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    if (options.signal?.aborted === true) return;
    const watcher = await this.#call('watch', resource, '', () =>
      this.#api.watch(resource, options, this.#by, this.#signal),
    );
    try {
      for (let event = await watcher.next(); event !== undefined; event = await watcher.next())
        yield event as WatchEvent<T>;
    } finally {
      watcher.end();
    }
  }

  create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    return this.#call('create', resource, object.metadata?.name ?? '', () =>
      this.#api.create(this.#by, resource, object),
    );
  }

  update<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    return this.#call('update', resource, object.metadata?.name ?? '', () =>
      this.#api.update(this.#by, resource, object, 'all'),
    );
  }

  updateStatus<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    return this.#call('updateStatus', resource, object.metadata?.name ?? '', () =>
      this.#api.update(this.#by, resource, object, 'status'),
    );
  }

  patch<T extends KubeObject>(
    resource: Resource<T>,
    key: ObjectKey,
    patch: Patch,
    options: PatchOptions = {},
  ): Promise<T> {
    return this.#call('patch', resource, key.name, () => this.#api.patch(this.#by, resource, key, patch, options));
  }

  delete(resource: Resource, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    return this.#call('delete', resource, key.name, () => this.#api.delete(this.#by, resource, key, options));
  }

  evict(pod: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    return this.delete(PODS, pod, options);
  }

  async #call<R>(verb: string, resource: Resource, name: string, work: () => R): Promise<R> {
    this.#assertAlive();
    const fate = this.#api.weather.call({ by: this.#by, verb, resource, name });
    // A component may have been killed by what it was about to do.
    this.#assertAlive();
    const away = this.#api.whyAway();
    const failure = fate.before ?? (away === undefined ? undefined : new KubeError(500, 'InternalError', away));
    if (failure !== undefined) {
      // A leader who cannot keep its lease will soon have lost it.
      if (resource === (LEASES as Resource) && verb === 'update') this.#api.stir();
      throw failure;
    }
    const answer = work();
    fate.onDone?.();
    this.#assertAlive();
    if (fate.after !== undefined) throw fate.after;
    return answer;
  }

  #assertAlive(): void {
    if (this.#signal?.aborted === true) throw new ConnectionError('CLOSED', `${this.#by} is dead`);
  }
}

/** A holder keeps its lease: nobody has anything to do for that. */
function isRenewal(resource: Resource, before: KubeObject | undefined, after: KubeObject): boolean {
  if (resource !== (LEASES as Resource) || before === undefined) return false;
  return (before as Lease).spec?.holderIdentity === (after as Lease).spec?.holderIdentity;
}

function bucketOf({ group, plural }: Resource): string {
  return `${group}/${plural}`;
}

function idOf({ namespace, name }: ObjectKey): string {
  return `${namespace ?? ''}/${name}`;
}

function unversioned(object: KubeObject): object {
  const { resourceVersion: _version, managedFields: _fields, ...metadata } = object.metadata ?? {};
  const { kind: _kind, apiVersion: _apiVersion, ...rest } = object;
  return { ...rest, metadata };
}

function frozen<T>(value: T): T {
  if (typeof value !== 'object' || value === null || Object.isFrozen(value)) return value;
  for (const part of Object.values(value)) frozen(part);
  return Object.freeze(value);
}
