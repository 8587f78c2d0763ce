import { randomUUID } from 'node:crypto';
import { KubeError } from './error.ts';
import type { DeleteOptions, Kube, ListOptions, ObjectList, WatchEvent } from './port.ts';
import { apiVersionOf, type KubeObject, keyOf, type ObjectKey, type Resource } from './resource.ts';

/**
 * A Kubernetes API reduced to optimistic writes, in process and without validation except for the one rule that shapes
 * our code: the type of a Secret cannot be changed (spec 10, 8.4). For tests, offline reading and simulation.
 */
export class MemoryKube implements Kube {
  readonly #objects = new Map<string, KubeObject>();
  #revision = 0;

  async get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey): Promise<T> {
    return structuredClone(this.#stored(resource, key));
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    const prefix = pathOf(resource, { name: '', namespace: options.namespace });
    const items = [...this.#objects].filter(([path]) => path.startsWith(prefix)).map(([, object]) => object as T);
    return { items: structuredClone(items), metadata: { resourceVersion: String(this.#revision) } };
  }

  // oxlint-disable-next-line require-yield -- the in-process store has no streams
  async *watch<T extends KubeObject>(): AsyncIterable<WatchEvent<T>> {
    throw new KubeError(405, 'MethodNotAllowed', 'the in-memory API does not watch');
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const path = pathOf(resource, keyOf(object));
    if (this.#objects.has(path)) {
      throw new KubeError(409, 'AlreadyExists', `${resource.plural} "${keyOf(object).name}" already exists`);
    }
    const created = {
      ...structuredClone(object),
      apiVersion: apiVersionOf(resource),
      kind: resource.kind,
      metadata: { ...structuredClone(object.metadata), uid: randomUUID() },
    };
    return this.#store(path, created);
  }

  async update<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    const stored = this.#stored(resource, keyOf(object));
    const expected = object.metadata?.resourceVersion;
    if (expected !== undefined && expected !== stored.metadata?.resourceVersion) {
      const message = `Operation cannot be fulfilled on ${resource.plural} "${keyOf(object).name}": the object has been modified; please apply your changes to the latest version and try again`;
      throw new KubeError(409, 'Conflict', message);
    }
    const [before, after] = [(stored as { type?: string }).type, (object as { type?: string }).type];
    if (resource.kind === 'Secret' && before !== after) {
      const message = `Secret "${keyOf(object).name}" is invalid: type: Invalid value: "${after}": field is immutable`;
      throw new KubeError(422, 'Invalid', message);
    }
    return this.#store(pathOf(resource, keyOf(object)), {
      ...structuredClone(object),
      metadata: { ...structuredClone(object.metadata), ...(stored.metadata?.uid ? { uid: stored.metadata.uid } : {}) },
    });
  }

  updateStatus<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    return this.update(resource, object);
  }

  async patch<T extends KubeObject>(): Promise<T> {
    throw new KubeError(405, 'MethodNotAllowed', 'the in-memory API does not patch');
  }

  async delete(resource: Resource, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    const { uid, resourceVersion } = this.#stored(resource, key).metadata ?? {};
    const wanted = options.preconditions ?? {};
    if ((wanted.uid ?? uid) !== uid || (wanted.resourceVersion ?? resourceVersion) !== resourceVersion) {
      throw new KubeError(409, 'Conflict', `${resource.plural} "${key.name}": the preconditions do not hold`);
    }
    this.#objects.delete(pathOf(resource, key));
    this.#revision++;
  }

  async evict(): Promise<void> {
    throw new KubeError(405, 'MethodNotAllowed', 'the in-memory API does not evict');
  }

  #stored<T extends KubeObject>(resource: Resource<T>, key: ObjectKey): T {
    const object = this.#objects.get(pathOf(resource, key));
    if (object === undefined) throw new KubeError(404, 'NotFound', `${resource.plural} "${key.name}" not found`);
    return object as T;
  }

  #store<T extends KubeObject>(path: string, object: T): T {
    const stored = { ...object, metadata: { ...object.metadata, resourceVersion: String(++this.#revision) } };
    this.#objects.set(path, stored);
    return structuredClone(stored);
  }
}

function pathOf(resource: Resource, key: ObjectKey): string {
  return `${resource.group}/${resource.plural}/${key.namespace ?? ''}${key.namespace === undefined ? '' : '/'}${key.name}`;
}
