/**
 * The informer stays exact while 10,000 random changes happen and its connection breaks in every way there is; and so,
 * as far as it promises anything, does somebody else's informer against our API.
 */
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { V1ConfigMap } from '@kubernetes/client-node';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { type Api, startApi } from '../../src/api/api.ts';
import type { Connection } from '../../src/kube/access.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { CONFIG_MAPS } from '../../src/kube/resource.ts';
import { eventually, PATIENCE_MS } from '../tools/eventually.ts';
import { assertExact, assertOrdered, Chronicle, type Heard, idOf, type Selects } from './chronicle.ts';
import { type Fault, FaultProxy, type FaultProxyOptions } from './fault-proxy.ts';
import { Follower, type FollowerOptions } from './follower.ts';
import { ForeignFollower } from './foreign-follower.ts';
import { Mutations } from './mutations.ts';
import { below, type Random, seeded } from './seeded.ts';

const MUTATIONS = 10_000;
/** Changes wait while the informer is further behind than this, so that faults meet it all along the way. */
const MOST_BEHIND = 200;
/** It waits for seconds between attempts. */
const FOREIGN_MOST_BEHIND = 2000;
const STOPS = 60;
const BREAKING: readonly Fault[] = ['reset', 'close', 'end', 'stall', '500'];
const FORGETTING: readonly Fault[] = [...BREAKING, '410', 'compaction'];
const GOLD = { selector: 'tier=gold', selects: ({ metadata }: ConfigMap) => metadata?.labels?.tier === 'gold' };

let dir: string;
let api: Api;
let connection: Connection;
/** What ends a test, also one that failed half-way. */
let endings: (() => Promise<void>)[];
beforeEach(async () => {
  endings = [];
  dir = mkdtempSync(join(tmpdir(), 'rotunda-informer-'));
  api = await startApi({ dir });
  connection = await (await loadAccess({ path: join(dir, 'kubeconfig') })).connection();
});
afterEach(async () => {
  for (const end of endings.reverse()) await end();
  await api.close();
  rmSync(dir, { recursive: true });
});

describe(`an informer through ${MUTATIONS} changes over a connection that breaks`, () => {
  it('hears every single change, once and in order, after one list', async t => {
    const chronicle = await chronicleOf(api);
    const mutations = new Mutations(api.kube, seeded(1));
    await mutations.begin();
    const { proxy, follower } = await follow({ seed: 2, faults: BREAKING });
    await change(mutations, MOST_BEHIND, () => chronicle.version - follower.version);
    await caughtUp(follower.informer, chronicle);
    await stop(proxy, follower);
    await eventually('the API has no watch left', () => api.watches() === 0);
    await chronicle.end();
    t.diagnostic(`${mutations.count} changes, ${follower.failures} failures heard of, ${summary(proxy)}`);
    chronicle.assertHolds(mutations.acknowledged);
    assertOrdered(follower.heard);
    assertExact(follower.heard, chronicle);
    assert.equal(follower.lists, 1);
    assertStruck(proxy, BREAKING);
    // The judge is not blind: one event too few, one twice, two in the wrong order.
    const { heard } = follower;
    for (const [from, count, instead] of [
      [5000, 1, []],
      [5000, 0, [heard[4999]]],
      [5000, 2, [heard[5001], heard[5000]]],
    ] as [number, number, Heard[]][]) {
      assert.throws(() => assertExact(heard.toSpliced(from, count, ...instead), chronicle), assert.AssertionError);
    }
  });

  it('stays exact where history is lost, whole and with a selector', async t => {
    const chronicle = await chronicleOf(api);
    const mutations = new Mutations(api.kube, seeded(11));
    await mutations.begin();
    const loseHistory = () => compactAfter(mutations);
    const all = await follow({ seed: 12, faults: FORGETTING, loseHistory });
    const gold = await follow({ seed: 13, faults: FORGETTING, loseHistory, labelSelector: GOLD.selector });
    await change(mutations, MOST_BEHIND, () => chronicle.version - all.follower.version);
    await caughtUp(all.follower.informer, chronicle);
    await caughtUp(gold.follower.informer, chronicle, GOLD.selects);
    for (const { follower, proxy } of [all, gold]) {
      await stop(proxy, follower);
      t.diagnostic(`${mutations.count} changes, ${follower.lists} lists, ${summary(proxy)}`);
      assertOrdered(follower.heard);
      assertStruck(proxy, FORGETTING);
    }
    await chronicle.end();
    chronicle.assertHolds(mutations.acknowledged);
    assertExact(all.follower.heard, chronicle);
    assertExact(gold.follower.heard, chronicle, GOLD.selects);
    assert.ok(all.proxy.expired.watch > 0, 'the API itself answered 410');
  });

  it('gets its list in one piece where pages expire faster than they are read', async () => {
    const chronicle = await chronicleOf(api);
    const mutations = new Mutations(api.kube, seeded(41));
    await mutations.begin();
    let times = 3;
    const loseHistory = async () => {
      if (times-- > 0) await compactAfter(mutations);
    };
    // A page that a slow machine gives too late would begin the three anew.
    const patience = { requestTimeoutMs: PATIENCE_MS };
    const { proxy, follower } = await follow({
      seed: 42,
      faults: ['compaction'],
      listFaultShare: 1,
      loseHistory,
      ...patience,
    });
    await caughtUp(follower.informer, chronicle);
    await stop(proxy, follower);
    await chronicle.end();
    assertExact(follower.heard, chronicle);
    assert.deepEqual(
      [follower.lists, proxy.expired.list],
      [1, 3],
      'the API answered 410 to the second page, three times',
    );
  });

  it('of @kubernetes/client-node ends with the same state', async t => {
    const chronicle = await chronicleOf(api);
    const mutations = new Mutations(api.kube, seeded(21));
    await mutations.begin();
    // It notices a silent connection only after 30 s, and lets nobody change that: something on the way has to end it.
    const options = { random: seeded(22), faults: FORGETTING, stallLimitMs: 100 };
    const loseHistory = () => compactAfter(mutations);
    const proxy = await proxyWith({ ...options, loseHistory });
    const foreign = new ForeignFollower(proxy.url);
    endings.push(() => foreign.stop());
    await foreign.start();
    await change(mutations, FOREIGN_MOST_BEHIND, () => chronicle.version - foreign.version);
    await caughtUp(foreign, chronicle);
    // Stopped while it waits for its next attempt, it would go on.
    await eventually('its watch is open', () => proxy.open === 1);
    await foreign.stop();
    await chronicle.end();
    t.diagnostic(`${mutations.count} changes, restarted ${foreign.restarts} times, ${summary(proxy)}`);
    assertStruck(proxy, FORGETTING);
  });
});

describe('stopping an informer', () => {
  it('leaves no connection, whatever it was doing', async () => {
    const random = seeded(31);
    const mutations = new Mutations(api.kube, random);
    await mutations.begin();
    const proxy = await proxyWith({ random, faults: BREAKING });
    for (let i = 0; i < STOPS; i++) {
      const follower = followerAt(proxy, random);
      let steps = 1 + below(random, 30);
      let stopping: Promise<void> | undefined;
      proxy.onStep = () => {
        if (--steps === 0) stopping = follower.informer.stop();
      };
      follower.informer.start();
      while (stopping === undefined) await mutations.burst();
      await stopping;
      await stop(proxy, follower);
    }
    await eventually('the API has no watch left', () => api.watches() === 0);
  });
});

async function chronicleOf({ kube }: Api): Promise<Chronicle> {
  const chronicle = await Chronicle.begin(kube);
  endings.push(() => chronicle.end());
  return chronicle;
}

async function proxyWith(options: Omit<FaultProxyOptions, 'api'>): Promise<FaultProxy> {
  const proxy = await FaultProxy.start({ api: connection, ...options });
  endings.push(() => proxy.close());
  return proxy;
}

function followerAt(proxy: FaultProxy, random: Random, options?: FollowerOptions): Follower {
  const follower = new Follower(proxy.url, random, options);
  endings.push(
    () => follower.kube.close(),
    () => follower.informer.stop(),
  );
  return follower;
}

interface FollowOptions extends Omit<FaultProxyOptions, 'api' | 'random'>, FollowerOptions {
  readonly seed: number;
}

async function follow({ seed, labelSelector, requestTimeoutMs, ...options }: FollowOptions) {
  const random = seeded(seed);
  const proxy = await proxyWith({ random, ...options });
  const follower = followerAt(proxy, random, { labelSelector, requestTimeoutMs });
  await follower.informer.start().synced;
  return { proxy, follower };
}

/** Loses the history of the store, and with it, as long as there are changes, some that nobody can have heard of yet. */
async function compactAfter(mutations: Mutations): Promise<void> {
  if (mutations.count < MUTATIONS) await mutations.burst();
  const { store } = api.engine.core;
  store.compact(store.revision);
}

async function change(mutations: Mutations, mostBehind: number, behind: () => number): Promise<void> {
  while (mutations.count < MUTATIONS) {
    await mutations.burst();
    if (behind() > mostBehind) await eventually('the informer catches up', () => behind() < mostBehind / 2);
  }
  await mutations.settled();
}

interface Listing {
  list(): readonly (ConfigMap | V1ConfigMap)[];
}

async function caughtUp(cache: Listing, chronicle: Chronicle, selects?: Selects): Promise<void> {
  await eventually('the cache equals the store', async () => {
    const { items } = await api.kube.list(CONFIG_MAPS);
    const [stored, known] = [
      items.filter(item => selects?.(item) ?? true),
      chronicle.stateAt(undefined, selects).values(),
    ];
    return isSame(states(cache.list()), states(stored)) && isSame(states(known), states(stored));
  });
}

/** Name, identity, version and content, whoever parsed the object. */
function states(objects: Iterable<ConfigMap | V1ConfigMap>): string[] {
  return Array.from(objects, object => {
    const { uid, resourceVersion } = object.metadata ?? {};
    return JSON.stringify([idOf(object as ConfigMap), uid, resourceVersion, object.data?.n, object.data?.text]);
  }).sort();
}

function isSame(a: readonly string[], b: readonly string[]): boolean {
  return a.length === b.length && a.every((state, index) => state === b[index]);
}

async function stop(proxy: FaultProxy, follower: Follower): Promise<void> {
  await follower.informer.stop();
  const told = follower.heard.length;
  await eventually('no request is under way after the stop', () => proxy.open === 0);
  await follower.kube.close();
  await eventually('no connection is open after the close', () => proxy.sockets.size === 0);
  assert.equal(follower.heard.length, told, 'nothing is told after a stop');
}

function assertStruck({ struck }: FaultProxy, faults: readonly Fault[]): void {
  const kinds = new Set(Array.from(struck.keys(), what => what.split(' ', 1)[0]));
  assert.deepEqual(kinds, new Set(faults), 'every kind of fault struck');
}

function summary({ struck, expired }: FaultProxy): string {
  return JSON.stringify({ ...Object.fromEntries(struck), expired });
}
