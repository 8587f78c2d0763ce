import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as fc from 'fast-check';
import { type Engine, startEngine } from '../../api/api.ts';
import { isConflict } from '../../kube/error.ts';
import type { Kube } from '../../kube/port.ts';
import { NODES } from '../../kube/resource.ts';
import { MACHINE_CONFIG_POOLS } from '../../machine-config-api/machine-config.ts';
import {
  CURRENT_CONFIG,
  DAEMON_STATE,
  DESIRED_CONFIG,
  DESIRED_DRAIN,
  DESIRED_IMAGE,
} from '../../machine-config-api/names.ts';
import { customPool, installDefinitions } from '../testing.ts';
import { promiseOf } from './promise.ts';
import { targetNodes } from './targeting.ts';

const LIMIT = 2;
const NODE_COUNT = 6;
/** Here the node of the operator's pod comes last: controllers that know of different ones choose differently. */
const POOL = 'master';

describe('targeting by several controllers at a time', () => {
  let engine: Engine;
  let round = 0;
  before(async () => {
    engine = await startEngine();
    await installDefinitions(engine);
    const { kube } = engine;
    await kube.create(MACHINE_CONFIG_POOLS, customPool(POOL, LIMIT));
    for (let index = 0; index < NODE_COUNT; index++) {
      await kube.create(NODES, { metadata: { name: `n${index}`, labels: { 'node-role.kubernetes.io/master': '' } } });
    }
  });
  after(() => engine.close());

  /** All nodes done with the old config and ready, and the pool heading for a new one. */
  async function reset(): Promise<void> {
    const { kube } = engine;
    const [old, target] = [`old-${round}`, `new-${round++}`];
    const body = {
      metadata: { annotations: { 'rotunda.dev/targeting': null } },
      spec: { configuration: { name: target } },
    };
    await kube.patch(MACHINE_CONFIG_POOLS, { name: POOL }, { type: 'merge', body });
    for (let index = 0; index < NODE_COUNT; index++) {
      await setReady(index, true);
      await annotate(index, { [CURRENT_CONFIG]: old, [DESIRED_CONFIG]: old, [DAEMON_STATE]: 'Done' });
    }
  }
  const annotate = (index: number, annotations: Record<string, string | null>) =>
    engine.kube.patch(NODES, { name: `n${index}` }, { type: 'merge', body: { metadata: { annotations } } });
  const setReady = (index: number, isReady: boolean) => {
    const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
    return engine.kube.patch(
      NODES,
      { name: `n${index}` },
      { type: 'merge', body: { status: { conditions } } },
      { subresource: 'status' },
    );
  };
  async function underWay(): Promise<string[]> {
    const { items } = await engine.kube.list(NODES);
    return items
      .filter(({ metadata }) => metadata?.annotations?.[CURRENT_CONFIG] !== metadata?.annotations?.[DESIRED_CONFIG])
      .map(({ metadata }) => metadata?.name ?? '');
  }

  test('never sends more nodes on their way than may be, whatever the order of calls', async () => {
    let most = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.scheduler(),
        fc.array(fc.tuple(fc.constantFrom('finish', 'away', 'back'), fc.nat(NODE_COUNT - 1)), {
          minLength: 6,
          maxLength: 14,
        }),
        async (scheduler, world) => {
          await reset();
          const excesses: string[][] = [];
          /** Every call waits for its turn, so that any two calls of different controllers may come in any order. */
          const inTurn = (who: string): Kube =>
            new Proxy<Kube>(engine.kube, {
              get:
                (target, name: keyof Kube) =>
                async (...args: never[]) => {
                  await scheduler.schedule(Promise.resolve(), `${who} ${name}`);
                  const answer = await (target[name] as (...args: never[]) => Promise<unknown>).apply(target, args);
                  const nodes = await underWay();
                  most = Math.max(most, nodes.length);
                  if (nodes.length > LIMIT) excesses.push(nodes);
                  return answer;
                },
            });
          const controller = async (who: string) => {
            for (let passes = 0; passes < 3; passes++) {
              await targetNodes(inTurn(who), POOL, who).catch((error: unknown) => {
                if (!isConflict(error)) throw error;
              });
            }
          };
          const environment = async () => {
            for (const [what, index] of world) {
              await scheduler.schedule(Promise.resolve(), `${what} n${index}`);
              if (what !== 'finish') {
                await setReady(index, what === 'back');
                continue;
              }
              const node = await engine.kube.get(NODES, { name: `n${index}` });
              await annotate(index, { [CURRENT_CONFIG]: node.metadata?.annotations?.[DESIRED_CONFIG] ?? '' });
            }
          };
          const all = Promise.all([controller('n0'), controller('n1'), controller('n2'), environment()]);
          await scheduler.waitFor(all);
          assert.deepEqual(excesses, []);
        },
      ),
      { numRuns: 60 },
    );
    assert.equal(most, LIMIT, 'the limit was made use of');
  });

  /** The API with something that happens before the first call of a kind. */
  function beforeFirst(verb: keyof Kube, resource: unknown, happening: () => Promise<unknown>): Kube {
    let hasHappened = false;
    return new Proxy<Kube>(engine.kube, {
      get:
        (target, name: keyof Kube) =>
        async (...args: never[]) => {
          if (name === verb && args[0] === resource && !hasHappened) {
            hasHappened = true;
            await happening();
          }
          return (target[name] as (...args: never[]) => Promise<unknown>).apply(target, args);
        },
    });
  }
  const dying = () =>
    beforeFirst('patch', NODES, async () => {
      throw new Error('the process died');
    });

  test('a promise is kept by whoever comes next', async () => {
    await reset();
    await assert.rejects(targetNodes(dying(), POOL, undefined), /died/);
    const promised = promiseOf(await engine.kube.get(MACHINE_CONFIG_POOLS, { name: POOL })).nodes;
    assert.equal(promised.length, LIMIT);
    const { targeted } = await targetNodes(engine.kube, POOL, undefined);
    assert.deepEqual(targeted, promised);
  });

  test('a node whose promise was dropped cannot be targeted by the one who made it', async () => {
    await reset();
    const stalled = beforeFirst('patch', NODES, async () => {
      await setReady(0, false);
      await targetNodes(engine.kube, POOL, 'n0');
      await setReady(0, true);
      await targetNodes(engine.kube, POOL, 'n0');
    });
    await targetNodes(stalled, POOL, undefined);
    assert.ok((await underWay()).length <= LIMIT, String(await underWay()));
  });

  test('a promise that was read before it was dropped is not renewed', async () => {
    await reset();
    await assert.rejects(targetNodes(dying(), POOL, undefined));
    const stalled = beforeFirst('list', NODES, async () => {
      await setReady(0, false);
      await targetNodes(engine.kube, POOL, undefined);
      await setReady(0, true);
    });
    await assert.rejects(targetNodes(stalled, POOL, undefined), isConflict);
    assert.ok((await underWay()).length <= LIMIT, String(await underWay()));
  });

  test('a limit that was lowered holds for promises too', async () => {
    await reset();
    await assert.rejects(targetNodes(dying(), POOL, undefined));
    const setLimit = (maxUnavailable: number) =>
      engine.kube.patch(MACHINE_CONFIG_POOLS, { name: POOL }, { type: 'merge', body: { spec: { maxUnavailable } } });
    await setLimit(1);
    assert.equal((await targetNodes(engine.kube, POOL, undefined)).targeted.length, 1);
    assert.equal((await targetNodes(engine.kube, POOL, undefined)).targeted.length, 0);
    await setLimit(LIMIT);
  });

  test('a pool that is paused gets no targets', async () => {
    await reset();
    const patch = (spec: object) =>
      engine.kube.patch(MACHINE_CONFIG_POOLS, { name: POOL }, { type: 'merge', body: { spec } });
    await patch({ paused: true });
    assert.deepEqual((await targetNodes(engine.kube, POOL, undefined)).targeted, []);
    await patch({ paused: false });
    assert.equal((await targetNodes(engine.kube, POOL, undefined)).targeted.length, LIMIT);
  });

  test('a node that is not ready is never chosen', async () => {
    await reset();
    for (let index = 0; index < NODE_COUNT - 1; index++) await setReady(index, false);
    const setLimit = (maxUnavailable: number) =>
      engine.kube.patch(MACHINE_CONFIG_POOLS, { name: POOL }, { type: 'merge', body: { spec: { maxUnavailable } } });
    await setLimit(NODE_COUNT);
    const { targeted } = await targetNodes(engine.kube, POOL, undefined);
    assert.deepEqual(targeted, [`n${NODE_COUNT - 1}`]);
    await setLimit(LIMIT);
  });

  test('an image that was left over on a node does not block a pool without one', async () => {
    await reset();
    for (let index = 0; index < NODE_COUNT; index++) await annotate(index, { [DESIRED_IMAGE]: 'left-over' });
    const { targeted } = await targetNodes(engine.kube, POOL, undefined);
    assert.equal(targeted.length, LIMIT);
    const { metadata } = await engine.kube.get(NODES, { name: targeted[0] ?? '' });
    assert.equal(metadata?.annotations?.[DESIRED_IMAGE], undefined);
    for (let index = 0; index < NODE_COUNT; index++) await annotate(index, { [DESIRED_IMAGE]: null });
  });

  describe('a node that failed with a config which the pool no longer wants', () => {
    const cordon = (unschedulable: boolean | null) =>
      engine.kube.patch(NODES, { name: 'n0' }, { type: 'merge', body: { spec: { unschedulable } } });
    const fail = async (drain: string | null) => {
      await reset();
      const failed = { [DESIRED_CONFIG]: 'bad', [DAEMON_STATE]: 'Degraded', [DESIRED_DRAIN]: drain };
      await annotate(0, failed);
      // So that there is no room for any other.
      for (const index of [1, 2]) await setReady(index, false);
    };
    const isTargeted = async () => (await targetNodes(engine.kube, POOL, undefined)).targeted.includes('n0');

    test('is pointed at the one it wants, though the drain left it cordoned and there is no room', async () => {
      await fail('drain-bad');
      await cordon(true);
      assert.equal(await isTargeted(), true);
      await cordon(null);
    });

    test('also where it says that it is in that config', async () => {
      await fail(null);
      await annotate(0, { [CURRENT_CONFIG]: 'bad' });
      assert.equal(await isTargeted(), true);
    });

    test('not while somebody else keeps it cordoned, or it is not ready', async () => {
      await fail(null);
      await cordon(true);
      assert.equal(await isTargeted(), false);
      await cordon(null);
      await fail('drain-bad');
      await setReady(0, false);
      assert.equal(await isTargeted(), false);
    });
  });
});
