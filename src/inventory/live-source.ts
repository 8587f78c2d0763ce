import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { isNotFound } from '../kube/error.ts';
import { Informer } from '../kube/informer.ts';
import type { Kube } from '../kube/port.ts';
import { type KubeObject, type Resource, SECRETS } from '../kube/resource.ts';
import { withoutPrivateData } from './public-secret.ts';
import type { ObjectSource, SourceSelection } from './source.ts';

/** A change of an object; Secrets come without anything private. */
export interface ObjectChange {
  readonly type: 'added' | 'updated' | 'deleted';
  readonly resource: Resource;
  readonly before: KubeObject | undefined;
  readonly after: KubeObject | undefined;
}

/** A source that stays up to date: the first question about a kind starts a watch, later ones are answered from memory. */
export class LiveSource implements ObjectSource {
  readonly warnings: readonly string[] = [];
  readonly #kube: Kube;
  readonly #informers = new Map<string, Promise<Informer<KubeObject> | undefined>>();
  readonly #listeners = new Set<(change: ObjectChange) => void>();
  readonly #onError: (error: unknown) => void;
  /** By the object as the watch keeps it: looking at a key costs, and an object that did not change needs no second look. */
  readonly #public = new WeakMap<KubeObject, KubeObject>();

  constructor(kube: Kube, onError: (error: unknown) => void = () => {}) {
    this.#kube = kube;
    this.#onError = onError;
  }

  async list<T extends KubeObject>(resource: Resource<T>, selection: SourceSelection = {}): Promise<readonly T[]> {
    const informer = await this.#informer(resource, selection);
    const items = (informer?.list() ?? []) as T[];
    return resource.kind === SECRETS.kind ? items.map(item => this.#publicOf(item) as T) : items;
  }

  /** Hears of every change after the first listing of its kind. */
  subscribe(listener: (change: ObjectChange) => void): void {
    this.#listeners.add(listener);
  }

  async stop(): Promise<void> {
    for (const started of await Promise.allSettled(this.#informers.values())) {
      if (started.status === 'fulfilled') await started.value?.stop();
    }
  }

  #publicOf(secret: KubeObject): KubeObject {
    let known = this.#public.get(secret);
    if (known === undefined) this.#public.set(secret, (known = withoutPrivateData(secret as Secret)));
    return known;
  }

  #informer(resource: Resource, selection: SourceSelection): Promise<Informer<KubeObject> | undefined> {
    const id = `${resource.group}/${resource.plural} ${selection.namespace ?? ''} ${selection.fieldSelector ?? ''}`;
    let informer = this.#informers.get(id);
    if (informer === undefined) {
      this.#informers.set(id, (informer = this.#start(resource, selection)));
      // What failed is tried again by the next question.
      informer.catch(() => this.#informers.delete(id));
    }
    return informer;
  }

  async #start(resource: Resource, selection: SourceSelection): Promise<Informer<KubeObject> | undefined> {
    // An informer would try again for ever; here a person waits for an answer.
    try {
      await this.#kube.list(resource, { ...selection, limit: 1 });
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
    const informer = new Informer<KubeObject>(this.#kube, resource, { selection, onError: this.#onError });
    const open = (object: KubeObject | undefined): KubeObject | undefined =>
      object !== undefined && resource.kind === SECRETS.kind ? this.#publicOf(object) : object;
    const tell = (type: ObjectChange['type'], before: KubeObject | undefined, after: KubeObject | undefined) => {
      if (!informer.hasSynced) return;
      for (const listener of this.#listeners) listener({ type, resource, before: open(before), after: open(after) });
    };
    informer.subscribe({
      add: object => tell('added', undefined, object),
      update: (before, after) => tell('updated', before, after),
      delete: object => tell('deleted', object, undefined),
    });
    informer.start();
    await informer.synced;
    return informer;
  }
}
