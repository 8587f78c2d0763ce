import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { VirtualClock } from '../../kube/clock.ts';
import { minutes } from '../../kube/duration.ts';
import type { KubeObject } from '../../kube/resource.ts';
import type { Change, Entry } from './entry.ts';
import type { Batch, Journal } from './journal.ts';
import { CompactedError, EVERYTHING, LARGEST_OBJECT_BYTES, ObjectTooLargeError, Store } from './store.ts';

const START = '2026-01-01T00:00:00Z';

function memoryStore(limits?: { maxChanges?: number; maxAgeMs?: number }): { store: Store; clock: VirtualClock } {
  const clock = new VirtualClock(START);
  const history = { maxChanges: 1000, maxBytes: 2 ** 30, maxAgeMs: minutes(10), ...limits };
  return { store: new Store({ clock, history }), clock };
}

function put(store: Store, path: string, value: string, bucket = 'b'): Promise<Entry> {
  return store.write(bucket, path, () => ({ put: object(value) }));
}

function remove(store: Store, path: string, bucket = 'b'): Promise<Entry> {
  return store.write(bucket, path, newest => ({ remove: newest?.object ?? {} }));
}

function object(value: string): KubeObject & { value: string } {
  return { metadata: {}, value };
}

const values = (entries: Iterable<Entry>) =>
  [...entries].map(entry => [entry.path, (entry.object as KubeObject & { value: string }).value]);

describe('Store', () => {
  it('numbers every change by one counter and writes the number into the object', async () => {
    const { store } = memoryStore();
    const first = await put(store, 'a', '1');
    const second = await put(store, 'x', '1', 'other');
    assert.deepEqual([first.revision, second.revision, store.revision], [1, 2, 2]);
    assert.equal(second.object.metadata?.resourceVersion, '2');
  });

  it('shows a writer what is accepted and everybody else only what is committed', async () => {
    const { store } = memoryStore();
    const pending = put(store, 'a', '1');
    assert.equal(store.get('b', 'a'), undefined);
    assert.equal(store.newest('b', 'a')?.revision, 1);
    assert.equal(store.revision, 0);
    const seen: (number | undefined)[] = [];
    const next = store.write('b', 'a', newest => {
      seen.push(newest?.revision);
      return { put: object('2') };
    });
    await Promise.all([pending, next]);
    assert.deepEqual(seen, [1]);
    assert.equal(store.get('b', 'a')?.revision, 2);
    assert.deepEqual(values(store.newestOf('b')), [['a', '2']]);
  });

  it('rejects with what the writer throws and makes no revision of it', async () => {
    const { store } = memoryStore();
    const error = new Error('no');
    await assert.rejects(
      store.write('b', 'a', () => {
        throw error;
      }),
      error,
    );
    const entry = await put(store, 'a', '1');
    await store.write('b', 'a', newest => ({ keep: newest as Entry }));
    assert.equal(store.revision, entry.revision);
  });

  it('refuses an object that is too large', async () => {
    const { store } = memoryStore();
    await assert.rejects(put(store, 'a', 'x'.repeat(LARGEST_OBJECT_BYTES)), ObjectTooLargeError);
    assert.equal(store.revision, 0);
  });

  it('lists in the order of paths, below a prefix, after a path', async () => {
    const { store } = memoryStore();
    for (const path of ['n/c', 'n/a', 'm/z', 'n/b', 'n-1/a']) await put(store, path, path);
    assert.deepEqual(
      [...store.list('b')].map(({ path }) => path),
      ['m/z', 'n-1/a', 'n/a', 'n/b', 'n/c'],
    );
    assert.deepEqual(
      [...store.list('b', { prefix: 'n/', after: 'n/a' })].map(({ path }) => path),
      ['n/b', 'n/c'],
    );
  });

  it('replays the past to a watch and then shows what happens, each change once', async () => {
    const { store } = memoryStore();
    await put(store, 'a', '1');
    const { revision } = await put(store, 'b', '1');
    await put(store, 'a', '2');
    const seen: string[] = [];
    const note = ({ type, entry }: Change) => seen.push(`${type} ${entry.path} ${entry.revision}`);
    let inner = () => {};
    const stop = store.watch('b', revision, change => {
      note(change);
      // A watch begun from inside another one must not see the change twice that is being shown.
      if (change.type !== 'created') return;
      inner = store.watch('b', revision, again => seen.push(`inner ${again.entry.revision}`));
    });
    await put(store, 'c', '1');
    await remove(store, 'c');
    await put(store, 'z', '1', 'other');
    stop();
    inner();
    await put(store, 'a', '3');
    assert.deepEqual(seen, ['updated a 3', 'created c 4', 'inner 3', 'inner 4', 'deleted c 5', 'inner 5']);
  });

  it('shows everything to whoever watches everything', async () => {
    const { store } = memoryStore();
    const seen: string[] = [];
    store.watch(EVERYTHING, 0, ({ entry }) => seen.push(entry.bucket));
    await Promise.all([put(store, 'a', '1'), put(store, 'a', '1', 'other')]);
    assert.deepEqual(seen, ['b', 'other']);
  });

  it('forgets history by count and by age, and says so', async () => {
    const { store, clock } = memoryStore({ maxChanges: 16 });
    for (let index = 0; index < 40; index++) await put(store, 'a', String(index));
    assert.ok(store.compacted >= 40 - 17 - 1 && store.compacted < 40 - 8, `compacted ${store.compacted}`);
    assert.throws(() => store.watch('b', 1, () => {}), CompactedError);
    assert.throws(() => store.list('b', { at: 1 }), CompactedError);
    store.watch('b', store.compacted, () => {})();
    await clock.advance(minutes(11));
    await put(store, 'a', 'last');
    assert.equal(store.compacted, 40);
  });

  it('rejects every write of a batch that could not be kept, and goes on', async () => {
    const journal = new FailingJournal();
    const store = new Store({ clock: new VirtualClock(START), journal });
    await put(store, 'a', '1');
    journal.broken = true;
    const results = await Promise.allSettled([put(store, 'a', '2'), put(store, 'b', '1'), remove(store, 'a')]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'rejected', 'rejected'],
    );
    assert.deepEqual(values(store.list('b')), [['a', '1']]);
    journal.broken = false;
    assert.equal((await put(store, 'c', '1')).revision, 2);
    store.close();
  });

  it('acknowledges a write that changes nothing no sooner than the version it saw is kept', async () => {
    const journal = new FailingJournal();
    const store = new Store({ clock: new VirtualClock(START), journal });
    const keep = () =>
      store.write('b', 'a', newest => {
        assert.ok(newest);
        return { keep: newest };
      });
    const first = put(store, 'a', '1');
    const batches = keep().then(entry => [entry.revision, journal.batches.length]);
    assert.deepEqual(await batches, [1, 1]);
    await first;
    journal.broken = true;
    const results = await Promise.allSettled([put(store, 'a', '2'), keep()]);
    assert.deepEqual(
      results.map(({ status }) => status),
      ['rejected', 'rejected'],
    );
    assert.equal((await keep()).revision, 1);
    store.close();
  });

  it('syncs once for all writes of one turn', async () => {
    const journal = new FailingJournal();
    const store = new Store({ clock: new VirtualClock(START), journal });
    await Promise.all(Array.from({ length: 20 }, (_, index) => put(store, String(index), '1')));
    assert.equal(journal.batches.length, 1);
    store.close();
  });

  it('can list every kept revision as it was', async () => {
    const operation = fc.record({
      path: fc.constantFrom('a', 'b', 'c', 'd'),
      remove: fc.boolean(),
      value: fc.integer({ min: 0, max: 9 }).map(String),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(operation, { maxLength: 40 }), async operations => {
        const { store } = memoryStore();
        const model = new Map<string, string>();
        const past: (readonly [number, [string, string][]])[] = [];
        for (const { path, remove: removes, value } of operations) {
          if (removes && !model.has(path)) continue;
          if (removes) {
            await remove(store, path);
            model.delete(path);
          } else {
            await put(store, path, value);
            model.set(path, value);
          }
          past.push([store.revision, [...model].sort(([a], [b]) => (a < b ? -1 : 1))]);
        }
        for (const [at, expected] of past) assert.deepEqual(values(store.list('b', { at })), expected);
      }),
      { numRuns: 50 },
    );
  });
});

class FailingJournal implements Journal {
  broken = false;
  readonly batches: Batch[] = [];

  load() {
    return { versions: [], compacted: 0 };
  }

  commit(batch: Batch): void {
    if (this.broken) throw new Error('disk full');
    this.batches.push(batch);
  }

  close(): void {}
}
