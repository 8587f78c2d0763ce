import assert from 'node:assert/strict';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { Kube, WatchEvent } from '../../src/kube/port.ts';
import { CONFIG_MAPS } from '../../src/kube/resource.ts';

/** One thing a follower was told, or, as `LISTED`, the version of a list it has read to the end. */
export type Heard =
  | { readonly type: 'ADDED' | 'DELETED'; readonly object: ConfigMap }
  | { readonly type: 'MODIFIED'; readonly before: ConfigMap; readonly object: ConfigMap }
  | { readonly type: 'LISTED'; readonly version: number };

export type Selects = (object: ConfigMap) => boolean;

/** Everything that happened to the ConfigMaps of an API, watched without a network in between. */
export class Chronicle {
  readonly #kube: Kube;
  readonly #stop = new AbortController();
  readonly #first = new Map<string, ConfigMap>();
  readonly #changes: WatchEvent<ConfigMap>[] = [];
  #run: Promise<void> | undefined;

  private constructor(kube: Kube) {
    this.#kube = kube;
  }

  static async begin(kube: Kube): Promise<Chronicle> {
    const chronicle = new Chronicle(kube);
    const { items, metadata } = await kube.list(CONFIG_MAPS);
    for (const item of items) chronicle.#first.set(idOf(item), plain(item));
    chronicle.#run = chronicle.#record(metadata.resourceVersion);
    return chronicle;
  }

  /** The version of the last change. */
  get version(): number {
    const last = this.#changes.at(-1)?.object;
    return last === undefined ? 0 : versionOf(last);
  }

  async end(): Promise<void> {
    this.#stop.abort();
    await this.#run;
  }

  /** What was there at a version, or is there now. */
  stateAt(version = Number.POSITIVE_INFINITY, selects: Selects = () => true): Map<string, ConfigMap> {
    const state = new Map(this.#first);
    for (const { type, object } of this.#changes) {
      if (versionOf(object) > version) break;
      if (type === 'DELETED') state.delete(idOf(object));
      else state.set(idOf(object), object);
    }
    return new Map([...state].filter(([, object]) => selects(object)));
  }

  /** What a watch of a selection shows: objects come into it and leave it. */
  changes(selects: Selects = () => true): WatchEvent<ConfigMap>[] {
    const state = new Map(this.#first);
    return this.#changes.flatMap(({ type, object }): WatchEvent<ConfigMap>[] => {
      const before = state.get(idOf(object));
      if (type === 'DELETED') state.delete(idOf(object));
      else state.set(idOf(object), object);
      const [was, is] = [before !== undefined && selects(before), type !== 'DELETED' && selects(object)];
      if (is) return [{ type: was ? 'MODIFIED' : 'ADDED', object }];
      if (!was) return [];
      return [{ type: 'DELETED', object: type === 'DELETED' ? object : lastSelected(before, object) }];
    });
  }

  /** Every write that was acknowledged is written down here, as the API returned it. */
  assertHolds(acknowledged: ReadonlyMap<string, ConfigMap>): void {
    const known = new Map(this.#changes.map(({ object }) => [versionOf(object), object]));
    for (const object of acknowledged.values()) assert.deepEqual(known.get(versionOf(object)), plain(object));
  }

  async #record(version: string | undefined): Promise<void> {
    const options = { resourceVersion: version, signal: this.#stop.signal };
    for await (const { type, object } of this.#kube.watch(CONFIG_MAPS, options)) {
      this.#changes.push({ type, object: plain(object) });
    }
  }
}

/**
 * What was heard is exactly what happened: after each list, the differences between what was known and what was there at
 * the version of the list, each once; from there on every single change, in order, up to the next list or to the end.
 */
export function assertExact(heard: readonly Heard[], chronicle: Chronicle, selects?: Selects): void {
  const changes = chronicle.changes(selects);
  const cache = new Map<string, ConfigMap>();
  let differences = new Map<string, Heard[]>();
  let next = 0;
  let reached = 0;
  for (const [index, told] of heard.entries()) {
    const where = `number ${index} of ${heard.length}`;
    if (told.type === 'LISTED') {
      assert.equal(differences.size, 0, `${where}: everything a list brought has been told before the next one`);
      assert.ok(told.version >= reached, `${where}: a list never goes back`);
      reached = told.version;
      differences = differencesOf(cache, chronicle.stateAt(told.version, selects));
      next = changes.findIndex(({ object }) => versionOf(object) > told.version);
      if (next < 0) next = changes.length;
    } else {
      const id = idOf(told.object);
      if (differences.size > 0) {
        assert.deepEqual(told, differences.get(id)?.shift(), `${where}: a difference that a list found`);
        if (differences.get(id)?.length === 0) differences.delete(id);
      } else {
        const change = changes[next++];
        const before = told.type === 'MODIFIED' ? { before: cache.get(id) } : {};
        assert.deepEqual(told, { ...change, ...before }, `${where}: the next change`);
        reached = versionOf(told.object);
      }
      if (told.type === 'DELETED') cache.delete(id);
      else cache.set(id, told.object);
    }
  }
  assert.equal(differences.size, 0, 'everything the last list brought has been told');
  assert.equal(next, changes.length, 'every change has been heard');
  assert.deepEqual(cache, chronicle.stateAt(undefined, selects));
}

/** Who hears `heard` can count on this, whatever it was that happened. */
export function assertOrdered(heard: readonly Heard[]): void {
  const present = new Map<string, ConfigMap>();
  const latest = new Map<string, number>();
  for (const told of heard) {
    if (told.type === 'LISTED') continue;
    const id = idOf(told.object);
    const version = versionOf(told.object);
    const known = present.get(id);
    assert.equal(known !== undefined, told.type !== 'ADDED', `${told.type} ${id} at ${version}: there before`);
    if (told.type === 'MODIFIED') assert.equal(told.before.metadata?.uid, told.object.metadata?.uid);
    // A deletion that was found by a list is told with the last state that was known.
    const isLastKnown = told.type === 'DELETED' && known !== undefined && versionOf(known) === version;
    assert.ok(
      version > (latest.get(id) ?? 0) || isLastKnown,
      `${told.type} ${id} at ${version} after ${latest.get(id)}`,
    );
    latest.set(id, version);
    if (told.type === 'DELETED') present.delete(id);
    else present.set(id, told.object);
  }
}

/** What leaves a selection is shown as it was when it was last in it, with the version of the change. */
function lastSelected(before: ConfigMap | undefined, after: ConfigMap): ConfigMap {
  return { ...before, metadata: { ...before?.metadata, resourceVersion: after.metadata?.resourceVersion ?? '' } };
}

function differencesOf(
  cache: ReadonlyMap<string, ConfigMap>,
  state: ReadonlyMap<string, ConfigMap>,
): Map<string, Heard[]> {
  const differences = new Map<string, Heard[]>();
  for (const id of new Set([...cache.keys(), ...state.keys()])) {
    const [before, after] = [cache.get(id), state.get(id)];
    const isSame = before?.metadata?.uid === after?.metadata?.uid;
    if (before !== undefined && after !== undefined && isSame) {
      if (versionOf(before) !== versionOf(after)) differences.set(id, [{ type: 'MODIFIED', before, object: after }]);
      continue;
    }
    differences.set(id, [
      ...(before === undefined ? [] : [{ type: 'DELETED' as const, object: before }]),
      ...(after === undefined ? [] : [{ type: 'ADDED' as const, object: after }]),
    ]);
  }
  return differences;
}

export function idOf({ metadata }: ConfigMap): string {
  return `${metadata?.namespace}/${metadata?.name}`;
}

export function versionOf({ metadata }: ConfigMap): number {
  return Number(metadata?.resourceVersion);
}

/** The informer leaves out who set which field. */
function plain(object: ConfigMap): ConfigMap {
  const { managedFields: _, ...metadata } = object.metadata ?? {};
  return { ...object, metadata };
}
