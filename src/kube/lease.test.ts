import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { VirtualClock } from './clock.ts';
import { hours, minutes, seconds } from './duration.ts';
import { ConnectionError, KubeError } from './error.ts';
import { recordingEvents } from './events.ts';
import { acquireLease, type Leadership, LeadershipLost, type LeaseOptions } from './lease.ts';
import { MemoryKube } from './memory.ts';
import type { WriteOptions } from './port.ts';
import { CONFIG_MAPS, type KubeObject, LEASES, type Resource } from './resource.ts';

const lease = { namespace: 'ns', name: 'operator-lock' };

/** An API that some candidates are cut off from. */
class SharedKube extends MemoryKube {
  /** What a cut-off candidate sees: refused at once, or no answer until it gives up. */
  for(isCutOff: () => 'refused' | 'hangs' | undefined): MemoryKube {
    const guard = async <R>(work: () => Promise<R>, signal?: AbortSignal): Promise<R> => {
      const state = isCutOff();
      if (state === 'refused') throw new ConnectionError('ECONNREFUSED', 'refused');
      if (state === 'hangs') {
        await new Promise((_resolve, reject) => {
          signal?.addEventListener('abort', () => {
            reject(signal.reason as Error);
          });
        });
      }
      return work();
    };
    return Object.assign(Object.create(this) as MemoryKube, {
      get: (resource: Resource, key: typeof lease) => guard(() => this.get(resource, key)),
      create: <T extends KubeObject>(resource: Resource<T>, object: T) => guard(() => this.create(resource, object)),
      update: <T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions) =>
        guard(() => this.update(resource, object), options?.signal),
    });
  }
}

function world() {
  const clock = new VirtualClock('2024-01-01T00:00:00Z');
  const kube = new SharedKube();
  const spec = async () => (await kube.get(LEASES, lease)).spec ?? {};
  const candidate = (identity: string, options: Partial<LeaseOptions> = {}) => {
    const stop = new AbortController();
    const state: { leadership?: Leadership; error?: unknown } = {};
    const done = (async () => {
      try {
        state.leadership = await acquireLease(
          { kube, lease, identity, clock, random: () => 0, ...options },
          stop.signal,
        );
      } catch (error) {
        state.error = error;
      }
    })();
    return { state, stop, done, leads: () => state.leadership !== undefined };
  };
  return { clock, kube, spec, candidate };
}

describe('acquireLease', () => {
  it('takes a lease that nobody has, and keeps it', async () => {
    const { clock, spec, candidate } = world();
    const events = recordingEvents();
    const { state } = candidate('a', { events });
    await clock.advance(0);
    assert.deepEqual(await spec(), {
      holderIdentity: 'a',
      leaseDurationSeconds: 137,
      acquireTime: '2024-01-01T00:00:00.000000Z',
      renewTime: '2024-01-01T00:00:00.000000Z',
      leaseTransitions: 0,
    });
    await clock.advance(minutes(10));
    assert.equal(state.leadership?.signal.aborted, false);
    assert.equal((await spec()).renewTime, '2024-01-01T00:09:58.000000Z');
    assert.equal((await spec()).acquireTime, '2024-01-01T00:00:00.000000Z');
    await state.leadership.release();
    assert.deepEqual(
      events.events.map(event => event.message),
      ['a became leader', 'a stopped leading'],
    );
    assert.equal(clock.nextWait(), undefined, 'no timer is left');
  });

  it('a second candidate waits until the first one lets go, and gets a higher token', async () => {
    const { clock, spec, candidate } = world();
    const a = candidate('a');
    await clock.advance(0);
    const b = candidate('b');
    await clock.advance(minutes(30));
    assert.equal(b.leads(), false);
    const first = a.state.leadership?.token() ?? Number.NaN;
    await a.state.leadership?.release();
    assert.equal((await spec()).holderIdentity, '');
    assert.equal(a.state.leadership?.signal.aborted, true);
    await clock.advance(seconds(26));
    assert.equal((await spec()).holderIdentity, 'b');
    assert.ok((b.state.leadership?.token() ?? 0) > first);
    assert.throws(() => a.state.leadership?.token(), LeadershipLost);
    await b.state.leadership?.release();
  });

  it('never trusts the clocks of others: a lease counts as expired when it has not moved here for its duration', async () => {
    const { clock, kube, candidate } = world();
    await kube.create(LEASES, {
      metadata: lease,
      spec: {
        holderIdentity: 'gone',
        leaseDurationSeconds: 137,
        renewTime: '1999-01-01T00:00:00.000000Z',
        leaseTransitions: 4,
      },
    });
    const { state, leads } = candidate('b');
    await clock.advance(seconds(130));
    assert.equal(leads(), false);
    await clock.advance(seconds(30));
    assert.equal(state.leadership?.token(), 5);
    await state.leadership.release();
  });

  it('a jump of our own clock does not make the lease of another expire', async () => {
    const { clock, candidate } = world();
    const a = candidate('a');
    await clock.advance(0);
    const b = candidate('b');
    await clock.advance(seconds(1));
    clock.jumpTo(new Date(clock.now().getTime() + hours(5)));
    await clock.advance(seconds(27));
    assert.equal(b.leads(), false);
    b.stop.abort(new Error('enough'));
    await b.done;
    assert.equal((b.state.error as Error).message, 'enough');
    await a.state.leadership?.release();
  });

  for (const how of ['refused', 'hangs'] as const) {
    it(`a leader that is cut off (${how}) stops before anybody else begins`, async () => {
      const { clock, kube, candidate } = world();
      let state: 'refused' | 'hangs' | undefined;
      const a = candidate('a', { kube: kube.for(() => state) });
      await clock.advance(0);
      const b = candidate('b', { kube: kube.for(() => undefined) });
      const log: string[] = [];
      a.state.leadership?.signal.addEventListener('abort', () => log.push(`a stopped ${clock.now().toISOString()}`));
      await clock.advance(seconds(60));
      state = how;
      for (let i = 0; i < 400 && !b.leads(); i++) await clock.advance(seconds(1));
      log.push(`b began ${clock.now().toISOString()}`);
      // The last renewal was at 52 s; 107 s later the leader gives up, at the earliest 137 s later another may begin.
      assert.equal(log[0], 'a stopped 2024-01-01T00:02:39.000Z');
      assert.ok((log[1] ?? '') >= 'b began 2024-01-01T00:03:09', log[1]);
      state = undefined;
      await a.state.leadership?.release();
      await b.state.leadership?.release();
      assert.equal(clock.nextWait(), undefined);
    });
  }

  it('survives a short outage', async () => {
    const { clock, kube, candidate } = world();
    let state: 'refused' | undefined;
    const errors: unknown[] = [];
    const a = candidate('a', { kube: kube.for(() => state), onError: error => errors.push(error) });
    await clock.advance(seconds(30));
    state = 'refused';
    await clock.advance(seconds(70));
    state = undefined;
    await clock.advance(minutes(10));
    assert.equal(a.state.leadership?.signal.aborted, false);
    assert.ok(errors.length > 0);
    await a.state.leadership.release();
  });

  it('goes on when somebody only touched the lease, stops when somebody took it', async () => {
    const { clock, kube, candidate } = world();
    const a = candidate('a');
    await clock.advance(0);
    const touched = await kube.get(LEASES, lease);
    await kube.update(LEASES, { ...touched, metadata: { ...touched.metadata, labels: { touched: 'yes' } } });
    await clock.advance(minutes(5));
    assert.equal(a.state.leadership?.signal.aborted, false);
    const stored = await kube.get(LEASES, lease);
    assert.deepEqual(stored.metadata?.labels, { touched: 'yes' });
    await kube.update(LEASES, { ...stored, spec: { ...stored.spec, holderIdentity: 'thief' } });
    await clock.advance(seconds(26));
    assert.match(
      String(a.state.leadership.signal.reason),
      /LeadershipLost: no longer the leader of ns\/operator-lock: taken by thief/,
    );
    await a.state.leadership.release();
    assert.equal((await kube.get(LEASES, lease)).spec?.holderIdentity, 'thief', 'what is not ours is not released');
  });

  it('gives the lease away although the renewal it cut off was stored', async () => {
    const { clock, kube, spec, candidate } = world();
    const slow = Object.assign(
      kube.for(() => undefined),
      {
        update: async <T extends KubeObject>(resource: Resource<T>, object: T, options?: WriteOptions) => {
          const stored = await kube.update(resource, object);
          // Only a renewal carries the signal of the term: its answer never comes.
          if (options?.signal === undefined) return stored;
          return new Promise<T>((_resolve, reject) => {
            options.signal?.addEventListener('abort', () => reject(options.signal?.reason as Error));
          });
        },
      },
    );
    const a = candidate('a', { kube: slow });
    await clock.advance(seconds(30));
    assert.equal((await spec()).renewTime, '2024-01-01T00:00:26.000000Z');
    await a.state.leadership?.release();
    assert.equal((await spec()).holderIdentity, '');
    assert.equal((await spec()).leaseDurationSeconds, 1);
  });

  it('keeps trying while the API fails', async () => {
    const { clock, kube, candidate } = world();
    let state: 'refused' | undefined = 'refused';
    const errors: unknown[] = [];
    const a = candidate('a', { kube: kube.for(() => state), onError: error => errors.push(error) });
    await clock.advance(minutes(2));
    assert.equal(errors.length, 5);
    state = undefined;
    await clock.advance(seconds(26));
    await a.state.leadership?.release();
    assert.equal((await kube.get(LEASES, lease)).spec?.holderIdentity, '');
  });

  it('refuses durations that would let two lead at once', async () => {
    const { candidate } = world();
    const { state, done } = candidate('a', { renewDeadlineMs: minutes(5) });
    await done;
    assert.match(String(state.error), /expected retry < renew deadline < lease duration/);
  });
});

describe('fenced', () => {
  it('lets writes through while leading, refuses them after the loss, reads always', async () => {
    const { clock, kube, candidate } = world();
    const a = candidate('a');
    await clock.advance(0);
    const fenced = a.state.leadership?.fenced(kube) ?? assert.fail();
    const created = await fenced.create(CONFIG_MAPS, { metadata: { namespace: 'ns', name: 'c' } });
    await fenced.update(CONFIG_MAPS, created);
    await a.state.leadership?.release();
    const key = { namespace: 'ns', name: 'c' };
    for (const write of [
      () => fenced.create(CONFIG_MAPS, created),
      () => fenced.update(CONFIG_MAPS, created),
      () => fenced.updateStatus(CONFIG_MAPS, created),
      () => fenced.patch(CONFIG_MAPS, key, { type: 'merge', body: {} }),
      () => fenced.delete(CONFIG_MAPS, key),
      () => fenced.evict(key),
    ]) {
      await assert.rejects(write(), LeadershipLost);
    }
    assert.equal((await fenced.get(CONFIG_MAPS, key)).metadata?.name, 'c');
    assert.equal((await fenced.list(CONFIG_MAPS)).items.length, 1);
  });

  it('after a suspend, the first write is refused although no timer has run yet', async () => {
    const { clock, kube, candidate } = world();
    const a = candidate('a');
    await clock.advance(0);
    const fenced = a.state.leadership?.fenced(kube) ?? assert.fail();
    clock.jumpTo(new Date(clock.now().getTime() + hours(1)));
    await assert.rejects(fenced.create(CONFIG_MAPS, { metadata: { namespace: 'ns', name: 'c' } }), LeadershipLost);
    assert.equal(a.state.leadership?.signal.aborted, true);
    await clock.advance(seconds(1));
    assert.equal(clock.nextWait(), undefined);
  });

  it('cuts off a write under way when the lease is lost', async () => {
    const { clock, kube, candidate } = world();
    const a = candidate('a');
    await clock.advance(0);
    const slow = Object.assign(Object.create(kube) as MemoryKube, {
      create: (_resource: Resource, _object: KubeObject, options?: WriteOptions) =>
        new Promise((_resolve, reject) => {
          options?.signal?.addEventListener('abort', () => {
            reject(options.signal?.reason as Error);
          });
        }),
    });
    const writing = a.state.leadership?.fenced(slow).create(CONFIG_MAPS, { metadata: { namespace: 'ns', name: 'c' } });
    const refused = assert.rejects(writing ?? assert.fail(), LeadershipLost);
    await a.state.leadership?.release();
    await refused;
  });

  it('hands on what the API answers', async () => {
    const { clock, kube, candidate } = world();
    const a = candidate('a');
    await clock.advance(0);
    const fenced = a.state.leadership?.fenced(kube) ?? assert.fail();
    await assert.rejects(fenced.delete(CONFIG_MAPS, { namespace: 'ns', name: 'x' }), KubeError);
    await a.state.leadership?.release();
  });
});
