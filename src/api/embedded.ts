import type { Eviction } from 'kubernetes-types/policy/v1.d.ts';
import { sleep } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import type {
  CallOptions,
  DeleteOptions,
  Kube,
  ListOptions,
  ObjectList,
  Patch,
  PatchOptions,
  WatchEvent,
  WatchOptions,
  WriteOptions,
} from '../kube/port.ts';
import { type KubeObject, type ObjectKey, PODS, type Resource } from '../kube/resource.ts';
import { SYSTEM_MASTERS, type User } from './auth/user.ts';
import { apiVersionOfKind, type Kind } from './kinds/kind.ts';
import { answer } from './rest/answer.ts';
import { authorize } from './rest/authorize.ts';
import type { Body } from './rest/body.ts';
import { bookmarkObject } from './rest/bookmark.ts';
import type { Call, Core, WriteParameters } from './rest/core.ts';
import { create } from './rest/create.ts';
import { remove } from './rest/delete.ts';
import { deleteParameters } from './rest/delete-options.ts';
import { endpointOf } from './rest/endpoint.ts';
import { patch } from './rest/patch.ts';
import { evict } from './rest/pod/eviction.ts';
import { get, list } from './rest/read.ts';
import { update } from './rest/update.ts';
import { isAsStored, present } from './rest/view.ts';
import { watch } from './rest/watch.ts';
import { selectedName } from './select/field.ts';
import { badRequest, expired, noSuchPath } from './status.ts';
import type { Entry } from './store/entry.ts';

export const ADMIN: User = {
  name: 'system:admin',
  uid: '',
  groups: [SYSTEM_MASTERS, 'system:authenticated'],
  extra: {},
};

/** A watch whose reader falls this far behind is ended, as a connection would be. */
const MAX_WAITING_EVENTS = 100_000;

/**
 * The API in process: the same verbs, rights, checks and answers as over HTTPS, without the wire. Objects that come in
 * and go out are copies.
 */
export class EmbeddedKube implements Kube {
  readonly #core: Core;
  readonly #user: User;
  readonly #fieldManager: string;

  constructor(core: Core, { user = ADMIN, fieldManager = 'rotunda' }: { user?: User; fieldManager?: string } = {}) {
    this.#core = core;
    this.#user = user;
    this.#fieldManager = fieldManager;
  }

  /** The same API in the hands of somebody else. */
  as(user: User): EmbeddedKube {
    return new EmbeddedKube(this.#core, { user, fieldManager: this.#fieldManager });
  }

  async get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey, options: CallOptions = {}): Promise<T> {
    const call = this.#call(resource, key.namespace ?? '', key.name, options);
    authorize(this.#core, call, 'get');
    return shown(call, get(this.#core, call)) as T;
  }

  async list<T extends KubeObject>(resource: Resource<T>, options: ListOptions = {}): Promise<ObjectList<T>> {
    const call = this.#call(resource, options.namespace ?? '', '', options);
    authorize(this.#core, { ...call, name: selectedName(options.fieldSelector) }, 'list');
    const page = list(this.#core, call, options);
    return {
      items: page.entries.map(entry => shown(call, entry) as T),
      metadata: {
        resourceVersion: String(page.revision),
        ...(page.continue === undefined ? {} : { continue: page.continue }),
        ...(page.remaining === undefined ? {} : { remainingItemCount: page.remaining }),
      },
    };
  }

  async *watch<T extends KubeObject>(
    resource: Resource<T>,
    options: WatchOptions = {},
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const call = this.#call(resource, options.namespace ?? '', '', {});
    authorize(this.#core, { ...call, name: selectedName(options.fieldSelector) }, 'watch');
    const waiting: (() => WatchEvent<T>)[] = [];
    let wake = () => {};
    let overflow = false;
    const push = (event: () => WatchEvent<T>) => {
      overflow ||= waiting.length >= MAX_WAITING_EVENTS;
      if (!overflow) waiting.push(event);
      wake();
    };
    const ended = new AbortController();
    const end = () => {
      ended.abort();
      wake();
    };
    const { allowWatchBookmarks = false, sendInitialEvents = false, timeoutSeconds, signal } = options;
    if (signal?.aborted) return;
    const stop = watch(
      this.#core,
      call,
      { ...options, allowBookmarks: allowWatchBookmarks, sendInitialEvents },
      {
        event: (type, entry) => push(() => ({ type, object: shown(call, entry) as T })),
        bookmark: (revision, initial) =>
          push(() => ({ type: 'BOOKMARK', object: bookmarkObject(call.kind, revision, initial) as T })),
      },
    );
    signal?.addEventListener('abort', end, { once: true });
    if (timeoutSeconds) sleep(this.#core.clock, seconds(timeoutSeconds), ended.signal).then(end, () => {});
    try {
      while (!ended.signal.aborted) {
        const next = waiting.shift();
        if (next !== undefined) yield next();
        else if (overflow) throw expired(`the reader of this watch fell ${MAX_WAITING_EVENTS} events behind`);
        else
          await new Promise<void>(resolve => {
            wake = resolve;
          });
      }
    } finally {
      stop();
      ended.abort();
      signal?.removeEventListener('abort', end);
    }
  }

  async create<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<T> {
    const call = this.#call(resource, object.metadata?.namespace ?? '', '', options);
    authorize(this.#core, call, 'create');
    if (call.kind.bucket === '')
      return (await answer(this.#core, call, bodyOf(object), this.#parameters(options))) as T;
    return shown(call, await create(this.#core, call, typedBody(call, object), this.#parameters(options))) as T;
  }

  update<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<T> {
    return this.#update(resource, object, '', options);
  }

  updateStatus<T extends KubeObject>(resource: Resource<T>, object: T, options: WriteOptions = {}): Promise<T> {
    return this.#update(resource, object, 'status', options);
  }

  async #update<T extends KubeObject>(
    resource: Resource<T>,
    object: T,
    subresource: string,
    options: WriteOptions,
  ): Promise<T> {
    const { namespace = '', name = '' } = object.metadata ?? {};
    const call = this.#call(resource, namespace, name, options, subresource);
    authorize(this.#core, call, 'update');
    const { entry } = await update(this.#core, call, typedBody(call, object), this.#parameters(options));
    return shown(call, entry) as T;
  }

  async patch<T extends KubeObject>(
    resource: Resource<T>,
    key: ObjectKey,
    { type, body }: Patch,
    options: PatchOptions = {},
  ): Promise<T> {
    const call = this.#call(resource, key.namespace ?? '', key.name, options, options.subresource ?? '');
    authorize(this.#core, call, 'patch');
    const parameters = { ...this.#parameters(options), type, force: options.force ?? false };
    const { entry } = await patch(this.#core, call, bodyOf(body), parameters);
    return shown(call, entry) as T;
  }

  async delete(resource: Resource, key: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    const call = this.#call(resource, key.namespace ?? '', key.name, options);
    authorize(this.#core, call, 'delete');
    await remove(this.#core, call, deleteParameters(optionsObject(options)));
  }

  async evict(pod: ObjectKey, options: DeleteOptions = {}): Promise<void> {
    const call = this.#call(PODS, pod.namespace ?? '', pod.name, options, 'eviction');
    authorize(this.#core, call, 'create');
    const eviction: Eviction = { metadata: { name: pod.name }, deleteOptions: optionsObject(options) };
    await evict(this.#core, call, eviction, options.dryRun ?? false);
  }

  #call(
    { group, version, plural }: Resource,
    namespace: string,
    name: string,
    { signal }: CallOptions,
    subresource = '',
  ): Call {
    signal?.throwIfAborted();
    const kind = this.#core.registry.find(group, version, plural);
    if (kind === undefined) throw noSuchPath();
    checkScope(kind, namespace, name);
    return { user: this.#user, kind, namespace, name, subresource, warn: () => {} };
  }

  #parameters({ dryRun = false, fieldManager, fieldValidation = 'Warn' }: WriteOptions): WriteParameters {
    return { dryRun, fieldManager: fieldManager ?? this.#fieldManager, fieldValidation };
  }
}

function checkScope(kind: Kind, namespace: string, name: string): void {
  if (kind.namespaced ? name !== '' && namespace === '' : namespace !== '') {
    const expected = kind.namespaced ? 'needs a namespace' : 'has no namespace';
    throw badRequest(`${kind.kind} ${JSON.stringify(name)} ${expected}`);
  }
}

function shown({ kind, subresource }: Call, entry: Entry): KubeObject {
  if (subresource === '' && isAsStored(kind, entry)) return entry.copy();
  const object = present(kind, entry);
  return structuredClone(subresource === '' ? object : endpointOf(kind, subresource).read(object));
}

/** What would arrive over the wire: undefined fields and class instances do not. */
/** The resource says what an object is that does not say it itself, as it does for the client over HTTP. */
function typedBody({ kind }: Call, object: KubeObject): Body {
  return bodyOf({ kind: kind.kind, apiVersion: apiVersionOfKind(kind), ...object });
}

function bodyOf(object: object): Body {
  return { value: JSON.parse(JSON.stringify(object)) };
}

function optionsObject({ preconditions, propagationPolicy, gracePeriodSeconds, dryRun }: DeleteOptions): object {
  return JSON.parse(
    JSON.stringify({
      preconditions,
      propagationPolicy,
      gracePeriodSeconds,
      ...(dryRun === true ? { dryRun: ['All'] } : {}),
    }),
  ) as object;
}
