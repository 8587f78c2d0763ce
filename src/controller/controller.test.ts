import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from '../kube/clock.ts';
import { minutes, seconds } from '../kube/duration.ts';
import { KubeError } from '../kube/error.ts';
import { recordingEvents } from '../kube/events.ts';
import { Informer } from '../kube/informer.ts';
import { MemoryKube } from '../kube/memory.ts';
import { type KubeObject, SECRETS } from '../kube/resource.ts';
import { Controller, type ControllerOptions, runAll } from './controller.ts';
import { type Log, silentLog } from './log.ts';
import { earlier, type Reconcile, RetryRequest } from './reconcile.ts';
import { named, namespaceIn, objectKey, onChange, type Source, waitFor } from './trigger.ts';

const START = '2026-01-01T00:00:00Z';

function world(reconcile: Reconcile, over: Partial<ControllerOptions> = {}) {
  const clock = new VirtualClock(START);
  const events = recordingEvents('operator');
  const controller = new Controller({ name: 'TestController', reconcile, clock, events, log: silentLog, ...over });
  const stop = new AbortController();
  return { clock, events, controller, stop, running: controller.run(stop.signal) };
}

/** Lets everything that can run now, run. */
const settle = () => new Promise(resolve => setImmediate(resolve));

/** An informer in the hand of the test. */
class HandSource implements Source<KubeObject> {
  #handlers: Parameters<Source<KubeObject>['subscribe']>[0][] = [];
  readonly #synced = Promise.withResolvers<void>();
  readonly synced = this.#synced.promise;

  sync(): this {
    this.#synced.resolve();
    return this;
  }

  fail(): void {
    this.#synced.reject(new Error('stopped'));
  }

  subscribe(handlers: Parameters<Source<KubeObject>['subscribe']>[0]): () => void {
    this.#handlers.push(handlers);
    return () => {
      this.#handlers = this.#handlers.filter(other => other !== handlers);
    };
  }

  get subscribers(): number {
    return this.#handlers.length;
  }

  add = (object: KubeObject) => this.#handlers.forEach(handlers => handlers.add(object));
  update = (before: KubeObject, after: KubeObject) =>
    this.#handlers.forEach(handlers => handlers.update(before, after));
  delete = (last: KubeObject) => this.#handlers.forEach(handlers => handlers.delete(last));
}

const object = (name: string, namespace?: string): KubeObject => ({
  metadata: namespace === undefined ? { name } : { name, namespace },
});

describe('controller', () => {
  it('works on keys as they come, and ends when told', async () => {
    const seen: string[] = [];
    const { controller, stop, running } = world(async key => {
      seen.push(key);
    });
    controller.enqueue('a');
    controller.enqueue();
    await settle();
    stop.abort();
    await running;
    controller.enqueue('b');
    await settle();
    assert.deepEqual(seen, ['a', 'key']);
  });

  it('looks again at the time the pass asks for', async () => {
    const times: string[] = [];
    const { controller, clock, stop, running } = world(async (_, context) => {
      times.push(context.clock.now().toISOString().slice(11, 19));
      return { againAt: new Date(context.clock.now().getTime() + minutes(5)) };
    });
    controller.enqueue();
    await clock.advance(minutes(11));
    stop.abort();
    await running;
    assert.deepEqual(times, ['00:00:00', '00:05:00', '00:10:00']);
  });

  it('retries what fails with growing pauses, and forgets after success (3.8)', async () => {
    const times: number[] = [];
    const { controller, clock, stop, running } = world(async (_, context) => {
      times.push(context.clock.now().getTime() - Date.parse(START));
      if (times.length <= 3) throw new Error('not yet');
    });
    controller.enqueue();
    await clock.advance(seconds(1));
    controller.enqueue();
    await settle();
    stop.abort();
    await running;
    assert.deepEqual(times, [0, 5, 15, 35, 1000]);
  });

  it('spec 10, 10: a failure is told in the words of upstream, and once', async () => {
    const lines: string[] = [];
    const log: Log = { ...silentLog, error: (_, message) => void lines.push(message), child: () => log };
    const failing = async () => {
      throw new Error('no hostnames set');
    };
    const { controller, clock, stop, running } = world(failing, { name: 'CertRotationController', log });
    controller.enqueue();
    await clock.advance(seconds(1));
    stop.abort();
    await running;
    assert.deepEqual(lines, ['CertRotationController reconciliation failed: no hostnames set']);
  });

  for (const [rule, ask] of [
    ['retry: true', () => ({ retry: true })],
    [
      'a RetryRequest from deep inside',
      () => {
        throw new RetryRequest();
      },
    ],
  ] as const) {
    it(`${rule} tries again with the pause of a failure (3.8)`, async () => {
      let passes = 0;
      const { controller, clock, stop, running } = world(async () => {
        passes += 1;
        return passes < 3 ? ask() : undefined;
      });
      controller.enqueue();
      await clock.advance(14);
      assert.equal(passes, 2);
      await clock.advance(1);
      assert.equal(passes, 3);
      stop.abort();
      await running;
    });
  }

  it('tells of a failure once as long as it stays the same, and of a lost race not at all', async () => {
    const failures = ['a', 'a', 'b', undefined, 'b', 'conflict', 'b'];
    const told: unknown[] = [];
    const log: Log = {
      ...silentLog,
      child: () => log,
      error: (fields: { err?: Error }) => told.push(fields.err?.message),
    };
    const { clock, controller, stop, running } = world(
      async () => {
        const failure = failures.shift();
        if (failure === 'conflict') throw new KubeError(409, 'Conflict', 'the object has been modified');
        if (failure !== undefined) throw new Error(failure);
      },
      { log },
    );
    controller.enqueue();
    await settle();
    while (failures.length > 0) {
      controller.enqueue();
      await clock.advance(seconds(10));
      await settle();
    }
    assert.deepEqual(told, ['a', 'b', 'b']);
    stop.abort();
    await running;
  });

  it('a mistake in a pass concerns its key alone', async () => {
    const seen: string[] = [];
    const { controller, clock, stop, running } = world(key => {
      seen.push(key);
      if (key === 'bad') (undefined as unknown as { x(): void }).x();
      return Promise.resolve();
    });
    controller.enqueue('bad');
    controller.enqueue('good');
    await clock.advance(5);
    controller.enqueue('good');
    await settle();
    stop.abort();
    await running;
    assert.deepEqual(seen, ['bad', 'good', 'bad', 'good']);
  });

  it('several workers work on several keys, never on the same', async () => {
    const started: string[] = [];
    const gate = Promise.withResolvers<void>();
    const { controller, stop, running } = world(
      async key => {
        started.push(key);
        await gate.promise;
      },
      { workers: 2 },
    );
    for (const key of ['a', 'a', 'b', 'c']) controller.enqueue(key);
    await settle();
    assert.deepEqual(started, ['a', 'b']);
    controller.enqueue('a');
    gate.resolve();
    await settle();
    assert.deepEqual([...started].sort(), ['a', 'a', 'b', 'c']);
    stop.abort();
    await running;
  });

  it('a stop lets the pass under way finish, and drops what waits (3.12)', async () => {
    const gate = Promise.withResolvers<void>();
    const seen: string[] = [];
    const { controller, stop, running } = world(async (key, context) => {
      await gate.promise;
      seen.push(`${key} ${context.signal.aborted}`);
    });
    controller.enqueue('a');
    controller.enqueue('b');
    await settle();
    stop.abort();
    let ended = false;
    const done = running.then(() => {
      ended = true;
    });
    await settle();
    assert.equal(ended, false);
    gate.resolve();
    await done;
    assert.deepEqual(seen, ['a false']);
  });

  it('a stop does not wait for ever', async () => {
    let wasTold = false;
    const { controller, clock, stop, running } = world((_, { signal }) => {
      signal.addEventListener('abort', () => {
        wasTold = true;
      });
      return new Promise(() => {});
    });
    controller.enqueue();
    await settle();
    stop.abort();
    await clock.advance(seconds(30));
    await running;
    assert.equal(wasTold, true);
  });

  it('events of a pass carry the name of the controller (3.13)', async () => {
    const seen: string[] = [];
    const { controller, events, stop, running } = world(async (key, context) => {
      seen.push(key);
      context.events.event('Normal', 'Seen', 'x');
      if (key === 'first') context.enqueue('second');
    });
    controller.enqueue('first');
    await settle();
    stop.abort();
    await running;
    assert.deepEqual(seen, ['first', 'second']);
    assert.equal(events.events[0]?.component, 'operator-testcontroller');
  });

  describe('resync', () => {
    it('at once and then ever after (3.6)', async () => {
      let passes = 0;
      const { clock, events, stop, running } = world(
        async () => {
          passes += 1;
        },
        { resyncMs: minutes(1) },
      );
      await settle();
      assert.equal(passes, 1);
      await clock.advance(minutes(2));
      assert.equal(passes, 3);
      stop.abort();
      await running;
      assert.deepEqual(events.events, []);
      assert.equal(clock.nextWait(), undefined);
    });

    it('a fast one is warned about once', async () => {
      const { clock, events, stop, running } = world(async () => {}, {
        resyncMs: seconds(30),
        resyncKeys: () => ['a', 'b'],
      });
      await clock.advance(minutes(2));
      stop.abort();
      await running;
      assert.deepEqual(
        events.events.map(({ type, reason, message }) => [type, reason, message]),
        [
          [
            'Warning',
            'FastControllerResync',
            'Controller "TestController" resync interval is set to 30s which might lead to client request throttling',
          ],
        ],
      );
    });
  });

  describe('caches', () => {
    it('nothing happens before they are there', async () => {
      const [a, b] = [new HandSource().sync(), new HandSource()];
      let passes = 0;
      const { controller, stop, running } = world(
        async () => {
          passes += 1;
        },
        { triggers: [onChange(a), waitFor(b)] },
      );
      a.add(object('x'));
      controller.enqueue('other');
      await settle();
      assert.equal(passes, 0);
      b.sync();
      await settle();
      assert.equal(passes, 2);
      stop.abort();
      await running;
      assert.equal(a.subscribers, 0);
    });

    it('too late is an error (3.4)', async () => {
      const { clock, running } = world(async () => {}, { triggers: [waitFor(new HandSource())] });
      const failed = assert.rejects(running, {
        name: 'CachesNotSynced',
        message: 'unable to sync caches for TestController',
      });
      await clock.advance(minutes(10));
      await failed;
      assert.equal(clock.nextWait(), undefined);
    });

    it('an informer that gave up is an error too', async () => {
      const source = new HandSource();
      const { running } = world(async () => {}, { triggers: [waitFor(source)] });
      source.fail();
      await assert.rejects(running, { name: 'CachesNotSynced' });
    });

    it('a stop while waiting is quiet (3.4)', async () => {
      const { clock, stop, running } = world(async () => {}, { triggers: [waitFor(new HandSource())] });
      await settle();
      stop.abort();
      await running;
      assert.equal(clock.nextWait(), undefined);
    });

    it('one that fails stops the others', async () => {
      const clock = new VirtualClock(START);
      const options = { reconcile: async () => {}, clock, events: recordingEvents(), log: silentLog };
      const good = new Controller({ ...options, name: 'Good', resyncMs: minutes(1) });
      const bad = new Controller({ ...options, name: 'Bad', triggers: [waitFor(new HandSource())] });
      const all = runAll([good, bad], new AbortController().signal);
      const failed = assert.rejects(all, { message: 'unable to sync caches for Bad' });
      await clock.advance(minutes(10));
      await failed;
      assert.equal(clock.nextWait(), undefined);
    });
  });
});

describe('triggers', () => {
  const cases: [
    rule: string,
    options: Parameters<typeof onChange<KubeObject>>[1],
    act: (source: HandSource) => void,
    keys: string[],
  ][] = [
    [
      'add, update and delete all count (3.2)',
      {},
      s => (s.add(object('a')), s.update(object('a'), object('a')), s.delete(object('a'))),
      ['key'],
    ],
    ['a key for each object', { keys: objectKey }, s => (s.add(object('a', 'n')), s.delete(object('b'))), ['n/a', 'b']],
    ['several keys for one object', { keys: () => ['x', 'y'] }, s => s.add(object('a')), ['x', 'y']],
    [
      'only those named',
      { when: named('a', 'b'), keys: objectKey },
      s => (s.add(object('a')), s.add(object('c'))),
      ['a'],
    ],
    [
      'a deletion that was missed is filtered like any other (3.3)',
      { when: namespaceIn(['gone']), keys: objectKey },
      s => s.delete(object('gone')),
      ['gone'],
    ],
    [
      'one that leaves the selection is seen leaving',
      { when: o => o.metadata?.labels?.on === 'yes', keys: objectKey },
      s => s.update({ metadata: { name: 'a', labels: { on: 'yes' } } }, object('a')),
      ['a'],
    ],
  ];
  for (const [rule, options, act, keys] of cases) {
    it(rule, () => {
      const source = new HandSource();
      const seen = new Set<string>();
      const stop = onChange(source, options).start(key => seen.add(key));
      act(source);
      assert.deepEqual([...seen], keys);
      stop();
      source.add(object('a', 'late'));
      assert.equal(seen.size, keys.length);
    });
  }

  it('an informer is a source', () => {
    const informer = new Informer(new MemoryKube(), SECRETS);
    const trigger = onChange(informer, { when: secret => secret.type === 'kubernetes.io/tls', keys: objectKey });
    trigger.start(() => {})();
    assert.equal(trigger.synced, informer.synced);
  });

  it('the earlier of two times', () => {
    const [a, b] = [new Date(1), new Date(2)];
    assert.deepEqual(
      [earlier(a, b), earlier(b, undefined), earlier(undefined, a), earlier(undefined, undefined)],
      [a, b, a, undefined],
    );
  });
});
