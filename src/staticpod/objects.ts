import type { ApplyContext } from '../kube/apply.ts';
import type { Lister } from '../kube/cache.ts';
import { KubeError } from '../kube/error.ts';
import { eventsTo } from '../kube/events.ts';
import { getIfPresent } from '../kube/get.ts';
import { listAll } from '../kube/list.ts';
import type { Kube } from '../kube/port.ts';
import type { KubeObject, ObjectKey, Resource } from '../kube/resource.ts';

/** Where a controller reads from: a cache, or the API itself. Any failure but "not found" is thrown (spec 30, T04). */
export interface Objects {
  get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey): Promise<T | undefined>;
  /** In order of name. */
  list<T extends KubeObject>(resource: Resource<T>, selection: ObjectSelection): Promise<T[]>;
}

export interface ObjectSelection {
  readonly namespace?: string | undefined;
  readonly labels?: Readonly<Record<string, string>> | undefined;
}

/** Reads from the API itself. */
export function liveObjects(kube: Kube, signal?: AbortSignal): Objects {
  return {
    get: (resource, key) => getIfPresent(kube, resource, key, { signal }),
    async list(resource, { namespace, labels }) {
      const { items } = await listAll(kube, resource, { namespace, labelSelector: selectorOf(labels), signal });
      return chosen(items, labels);
    },
  };
}

/** What is kept in memory of a resource: all of it, or one namespace. */
export interface CachedResource<T extends KubeObject = KubeObject> {
  readonly resource: Resource<T>;
  readonly namespace?: string | undefined;
  readonly lister: Pick<Lister<T>, 'get' | 'list'>;
}

/** Reads from caches, and from the API what is in none of them. */
export function cachedObjects(kube: Kube, caches: readonly CachedResource[]): Objects {
  const live = liveObjects(kube);
  const cacheOf = ({ group, plural }: Resource, namespace: string | undefined) =>
    caches.find(
      cache =>
        cache.resource.group === group &&
        cache.resource.plural === plural &&
        (cache.namespace === undefined || cache.namespace === namespace),
    )?.lister;
  return {
    async get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey) {
      const cache = cacheOf(resource, key.namespace);
      return cache === undefined ? live.get(resource, key) : (cache.get(key) as T | undefined);
    },
    async list<T extends KubeObject>(resource: Resource<T>, selection: ObjectSelection) {
      const cache = cacheOf(resource, selection.namespace);
      if (cache === undefined) return live.list(resource, selection);
      return chosen(cache.list(selection.namespace) as T[], selection.labels);
    },
  };
}

/**
 * Does work that brings objects into a wanted state, but asks the API nothing as long as the cache says that all is well:
 * the work is tried on the cache first, and done on the API itself as soon as it wants to write something.
 */
export async function writeIfNeeded<T>(
  cached: Objects,
  context: ApplyContext,
  work: (context: ApplyContext) => Promise<T>,
): Promise<T> {
  try {
    return await work({ kube: readOnly(cached), events: silent });
  } catch (error) {
    if (!(error instanceof WouldWrite)) throw error;
  }
  return work(context);
}

const silent = eventsTo('', () => {});

class WouldWrite extends Error {
  override readonly name = 'WouldWrite';
}

function readOnly(objects: Objects): Kube {
  const refuse = () => Promise.reject(new WouldWrite('a cache cannot be written to'));
  return {
    async get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey) {
      const object = await objects.get(resource, key);
      if (object === undefined) throw notFound(resource, key.name);
      return object;
    },
    list: refuse,
    watch: () => {
      throw new WouldWrite('a cache cannot be watched');
    },
    create: refuse,
    update: refuse,
    updateStatus: refuse,
    patch: refuse,
    async delete(resource: Resource, key: ObjectKey) {
      if ((await objects.get(resource, key)) === undefined) throw notFound(resource, key.name);
      await refuse();
    },
    evict: refuse,
  };
}

/** What the API answers when there is no such object. */
export function notFound({ plural, group }: Resource, name: string): KubeError {
  return new KubeError(404, 'NotFound', `${group === '' ? plural : `${plural}.${group}`} "${name}" not found`);
}

function chosen<T extends KubeObject>(items: readonly T[], labels: Readonly<Record<string, string>> = {}): T[] {
  const wanted = Object.entries(labels);
  return items
    .filter(({ metadata }) => wanted.every(([name, value]) => metadata?.labels?.[name] === value))
    .sort((a, b) => compareText(a.metadata?.name ?? '', b.metadata?.name ?? ''));
}

function selectorOf(labels: Readonly<Record<string, string>> | undefined): string | undefined {
  const pairs = Object.entries(labels ?? {}).map(([name, value]) => `${name}=${value}`);
  return pairs.length === 0 ? undefined : pairs.join(',');
}

/** Byte order, the order of Go's `sort.Strings`. */
export function compareText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
