import type { KubeObject } from '../kube/resource.ts';
import { ONLY_KEY } from './reconcile.ts';

/** What a controller needs of an informer. */
export interface Source<T extends KubeObject> {
  readonly synced: Promise<void>;
  subscribe(handlers: {
    add(object: T): void;
    update(before: T, after: T): void;
    /** `last` is the last known state, also where the deletion itself was missed. */
    delete(last: T): void;
  }): () => void;
}

/** Something that asks a controller for passes. */
export interface Trigger {
  /** Resolves when everything that is there has been told. */
  readonly synced: Promise<void>;
  /** Returns the way to stop it. */
  start(enqueue: (key: string) => void): () => void;
}

export interface TriggerOptions<T extends KubeObject> {
  /** Which objects matter; all of them when absent. */
  readonly when?: ((object: T) => boolean) | undefined;
  /** The keys an object stands for; the controller's only key when absent. */
  readonly keys?: ((object: T) => string | readonly string[]) | undefined;
}

/**
 * Asks for passes over the keys of every object that is added, changed or deleted. After a change the keys of both states
 * count, and a deletion counts by the last known state: an object that leaves a selection is seen leaving (spec 30, 3.3).
 */
export function onChange<T extends KubeObject>(source: Source<T>, options: TriggerOptions<T> = {}): Trigger {
  const { when = () => true, keys = () => ONLY_KEY } = options;
  return {
    synced: source.synced,
    start(enqueue) {
      const tell = (object: T) => {
        if (!when(object)) return;
        for (const key of [keys(object)].flat()) enqueue(key);
      };
      return source.subscribe({
        add: tell,
        update(before, after) {
          tell(before);
          tell(after);
        },
        delete: tell,
      });
    },
  };
}

/** Asks for the keys of a change by what was before and what is now; `before` or `after` is missing at the ends. */
export function onTransition<T extends KubeObject>(
  source: Source<T>,
  keys: (before: T | undefined, after: T | undefined) => readonly string[],
): Trigger {
  return {
    synced: source.synced,
    start(enqueue) {
      const tell = (before: T | undefined, after: T | undefined) => {
        for (const key of keys(before, after)) enqueue(key);
      };
      return source.subscribe({
        add: object => tell(undefined, object),
        update: (before, after) => tell(before, after),
        delete: last => tell(last, undefined),
      });
    },
  };
}

/** Only has the controller wait until the cache is there. */
export function waitFor(source: { readonly synced: Promise<void> }): Trigger {
  return { synced: source.synced, start: () => () => {} };
}

/** `<namespace>/<name>`, or the name alone. */
export function objectKey({ metadata }: KubeObject): string {
  const { namespace, name = '' } = metadata ?? {};
  return namespace === undefined ? name : `${namespace}/${name}`;
}

/** Which Namespaces are among those of that name: for `when`. */
export function namespaceIn(names: Iterable<string>): (namespace: KubeObject) => boolean {
  const wanted = new Set(names);
  return namespace => wanted.has(namespace.metadata?.name ?? '');
}

/** Which objects are called that: for `when`. */
export function named(...names: readonly string[]): (object: KubeObject) => boolean {
  const wanted = new Set(names);
  return object => wanted.has(object.metadata?.name ?? '');
}
