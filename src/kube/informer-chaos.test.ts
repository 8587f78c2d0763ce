import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { fixedAccess } from './access.ts';
import { HttpKube } from './client.ts';
import { Informer } from './informer.ts';
import { CONFIG_MAPS, type KubeObject } from './resource.ts';
import { answer, eventually, TestApi } from './test-api.ts';

const COLLECTION = '/api/v1/namespaces/ns/configmaps';
const MUTATIONS = 2000;
const NAMES = 60;

/** A small generator of numbers that a seed repeats (mulberry32). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Heard {
  readonly type: 'ADDED' | 'MODIFIED' | 'DELETED';
  readonly name: string;
  readonly revision: number;
}

interface Chaos {
  readonly heard: Heard[];
  readonly struck: Readonly<Record<string, number>>[];
  readonly api: TestApi;
  readonly cached: ConfigMap[];
}

const EXPIRED = '{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"chaos"}}\n';

/** Strikes in turn with each of `kinds`, after gaps of random length. */
class Faults {
  readonly struck = new Map<string, number>();
  readonly #kinds: readonly string[];
  readonly #gap: () => number;
  #left: number;
  #next = 0;

  constructor(kinds: readonly string[], gap: () => number) {
    this.#kinds = kinds;
    this.#gap = gap;
    this.#left = gap();
  }

  next(): string | undefined {
    if (--this.#left > 0) return undefined;
    this.#left = this.#gap();
    const kind = this.#kinds[this.#next++ % this.#kinds.length] ?? '';
    this.struck.set(kind, (this.struck.get(kind) ?? 0) + 1);
    return kind;
  }
}

/** Lets an informer follow random changes over a connection that breaks in every way there is. */
async function chaos(seed: number, { withCompaction }: { withCompaction: boolean }): Promise<Chaos> {
  const random = seeded(seed);
  const api = await TestApi.start();
  const onRequest = new Faults(['500', 'reset', 'cut off', 'close'], () => 2 + Math.floor(random() * 4));
  const inStream = new Faults(
    ['reset', 'torn line', 'end', 'end after event', 'stall', ...(withCompaction ? ['410', 'compaction'] : [])],
    () => 5 + Math.floor(random() * 40),
  );
  api.intercept = (_seen, response, { socket }) => {
    const fault = onRequest.next();
    if (fault === '500') answer(response, 500, 'InternalError', 'chaos');
    else if (fault === 'reset') socket.resetAndDestroy();
    else if (fault === 'close') socket.destroy();
    else if (fault === 'cut off') response.write('{"metadata":{"resourceV', () => socket.destroy());
    return fault !== undefined;
  };
  api.sendLine = (response, line) => {
    const { socket } = response;
    const fault = inStream.next();
    if (fault === undefined) {
      const cut = Math.floor(random() * line.length);
      response.write(line.slice(0, cut));
      response.write(line.slice(cut));
    } else if (fault === 'reset') socket?.resetAndDestroy();
    else if (fault === 'torn line') response.write(line.slice(0, line.length / 2), () => socket?.destroy());
    else if (fault === 'end') response.end();
    else if (fault === 'end after event') response.end(line);
    else if (fault === '410') response.end(EXPIRED);
    else if (fault === 'compaction') {
      api.compact();
      socket?.destroy();
    }
    return fault === undefined;
  };

  const kube = new HttpKube(fixedAccess(api.url));
  const informer = new Informer(kube, CONFIG_MAPS, {
    selection: { namespace: 'ns' },
    backoff: { firstMs: 1, longestMs: 3, random },
    silenceMs: 20,
    pageSize: 25,
  });
  const heard: Heard[] = [];
  const record = (type: Heard['type']) => (object: ConfigMap) => {
    heard.push({ type, name: object.metadata?.name ?? '', revision: Number(object.metadata?.resourceVersion) });
  };
  informer.subscribe({
    add: record('ADDED'),
    update: (_before, after) => record('MODIFIED')(after),
    delete: record('DELETED'),
  });
  await informer.start().synced;
  for (let i = 0; i < MUTATIONS; i++) {
    const name = `c${Math.floor(random() * NAMES)}`;
    if (random() < 0.3) api.remove(COLLECTION, name);
    else api.put(COLLECTION, { metadata: { name, namespace: 'ns' }, data: { i: String(i) } } as ConfigMap);
    if (random() < 0.2) await new Promise(resolve => setImmediate(resolve));
    // Now and then the informer may catch up with the changes, so that all faults meet a watch.
    if (i % 20 === 0) await eventually(() => api.watchers === 1, 'a watch is open');
  }
  const expected = JSON.stringify(sorted(api.all(COLLECTION)));
  await eventually(() => JSON.stringify(sorted(informer.list())) === expected, 'the cache equals the store');
  const cached = informer.list();
  await informer.stop();
  await eventually(() => api.watchers === 0, 'no watch is left');
  await kube.close();
  await eventually(() => api.sockets.size === 0, 'no connection is left');
  await api.stop();
  return { heard, struck: [onRequest, inStream].map(faults => Object.fromEntries(faults.struck)), api, cached };
}

function sorted(objects: readonly KubeObject[]): (string | undefined)[][] {
  return objects
    .map(object => [object.metadata?.name, object.metadata?.resourceVersion, (object as ConfigMap).data?.i])
    .sort(([a = ''], [b = '']) => (a < b ? -1 : 1));
}

/** An object is added when absent, changed and deleted when there, and every version is newer than the one before. */
function assertPlausible(heard: readonly Heard[], cached: readonly ConfigMap[]): void {
  const present = new Map<string, number>();
  const latest = new Map<string, number>();
  for (const { type, name, revision } of heard) {
    const text = `${type} ${name} at ${revision}`;
    assert.equal(present.has(name), type !== 'ADDED', text);
    // A deletion that was found out by a list is reported with the last version that was known.
    const isNewer = revision > (latest.get(name) ?? 0);
    assert.ok(isNewer || (type === 'DELETED' && revision === present.get(name)), text);
    latest.set(name, revision);
    if (type === 'DELETED') present.delete(name);
    else present.set(name, revision);
  }
  assert.deepEqual([...present.keys()].sort(), cached.map(object => object.metadata?.name ?? '').sort());
}

describe(`informer through ${MUTATIONS} mutations over a broken connection`, () => {
  for (const seed of [1, 2]) {
    it(`hears every single change, once and in order (seed ${seed})`, async t => {
      const { heard, struck, api, cached } = await chaos(seed, { withCompaction: false });
      t.diagnostic(JSON.stringify(struck));
      assertPlausible(heard, cached);
      const happened = api.history.map(({ type, object, revision }) => ({
        type,
        name: object.metadata.name,
        revision,
      }));
      assert.deepEqual(heard, happened);
      assert.deepEqual(
        struck.map(kinds => Object.keys(kinds).length),
        [4, 5],
        'every kind of fault struck',
      );
    });

    it(`stays exact where history is lost, too (seed ${seed})`, async t => {
      const { heard, struck, cached } = await chaos(seed + 100, { withCompaction: true });
      t.diagnostic(JSON.stringify(struck));
      assertPlausible(heard, cached);
      assert.deepEqual(
        struck.map(kinds => Object.keys(kinds).length),
        [4, 7],
        'every kind of fault struck',
      );
    });
  }
});
