/**
 * The operator in random clusters (spec 80, 5 and 6): whatever stops, dies, comes back or is changed by others, no two control-plane nodes
 * are at work at once, nobody refuses what anybody shows, and when the faults end everything comes to rest. `ROTUNDA_SEQUENCES=1000` runs
 * so many clusters, `ROTUNDA_SEED=<number>` runs one of them and tells its story.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pick, randomOf } from '../../hand-over/model-nodes.ts';
import { days, hours, minutes } from '../../kube/duration.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS } from '../chains.ts';
import { ModelCluster } from './model-cluster.ts';

const { ROTUNDA_SEQUENCES, ROTUNDA_SEED } = process.env;
const SEQUENCES = Number(ROTUNDA_SEQUENCES ?? 6);
const LONGEST = 250;
const FIXED = 1;
const FRESH = Math.floor(Math.random() * 2 ** 31);

interface World {
  readonly cluster: ModelCluster;
  chance(below: number): number;
  one<T>(of: readonly T[]): T;
}

type Happening = (world: World) => void | Promise<unknown>;

const often = (count: number, happening: Happening): Happening[] => Array.from({ length: count }, () => happening);
const anyNode = ({ cluster, one }: World) => one([...cluster.nodes.values()]);
const anySigner = ({ one }: World) => one(KUBEADM_SIGNERS).name;

const HAPPENINGS: readonly Happening[] = [
  ...often(14, ({ cluster }) => cluster.pass()),
  ...often(4, ({ cluster, chance }) => cluster.pass(chance(3))),
  ...often(14, ({ cluster }) => cluster.sight()),
  ...often(24, world => world.cluster.act(anyNode(world).name, 1 + world.chance(8))),
  ...often(3, world => {
    const node = anyNode(world);
    node.isUp = !node.isUp;
    world.cluster.waived.delete(node.name);
    world.cluster.tell(`${node.name} is ${node.isUp ? 'up' : 'down'}`);
  }),
  ...often(2, world => {
    const node = anyNode(world);
    node.problem = node.problem === undefined ? 'something is wrong' : undefined;
    world.cluster.tell(`${node.name} has ${node.problem === undefined ? 'no' : 'a'} problem`);
  }),
  world => {
    const node = anyNode(world);
    const { name } = world.one(KUBEADM_CHAINS);
    if (node.leaves.has(name)) node.renew(name, world.cluster.now());
  },
  // As after kubeadm upgrade: the manifest is written anew.
  world => {
    anyNode(world).isSeparate = false;
  },
  world => {
    const node = anyNode(world);
    for (const process of node.processes.keys()) node.start(process, world.cluster.now());
  },
  ({ cluster, chance }) => {
    if (cluster.nodes.size < 6)
      cluster.join(`new-${cluster.story.length}`, chance(3) === 0 ? 'control-plane' : 'worker');
  },
  world => {
    const { name } = anyNode(world);
    if (name !== 'cp-0' && world.cluster.nodes.size > 3) world.cluster.delete(name);
  },
  world => {
    const node = anyNode(world);
    if (node.isUp || world.cluster.waived.has(node.name)) return;
    world.cluster.waive(node.name);
  },
  ...often(6, ({ cluster, chance }) => cluster.clock.jumpTo(new Date(cluster.now().getTime() + minutes(chance(60))))),
  ...often(2, ({ cluster, chance }) => cluster.clock.jumpTo(new Date(cluster.now().getTime() + days(chance(40))))),
  ...often(2, world => world.cluster.rotate(anySigner(world))),
  ...often(2, world => world.cluster.tokens.rotate()),
  world => world.cluster.tokens.takeBack(),
  world => world.cluster.tokens.turnRound(),
  ({ cluster, chance }) => cluster.tokens.retire(cluster.counted(), chance(2) === 0),
  world => world.cluster.tokens.look(),
  world => world.cluster.tokens.makeSecret(`token-${world.chance(4)}`),
  world => world.cluster.takeBack(anySigner(world)),
  world => world.cluster.turnRound(anySigner(world)),
  world => world.cluster.retire(anySigner(world)),
];

async function live(seed: number): Promise<{ failure: string | undefined; story: readonly string[] }> {
  const random = randomOf(seed);
  const cluster = await ModelCluster.make({ seed: String(seed), controlPlane: 3, workers: 1 });
  const world: World = { cluster, chance: below => Math.floor(random() * below), one: of => pick(of, random) };
  try {
    await cluster.settle(minutes(10));
    for (let left = Math.floor(random() * LONGEST); left > 0; left--) {
      await pick(HAPPENINGS, random)(world);
      cluster.check();
      await cluster.checkRounds();
    }
    cluster.tell('the faults end');
    for (const node of cluster.nodes.values()) {
      node.isUp = true;
      node.problem = undefined;
    }
    cluster.waived.clear();
    await cluster.settle(hours(4));
    await cluster.assertAtRest();
    return { failure: undefined, story: cluster.story };
  } catch (error) {
    return { failure: (error as Error).message, story: cluster.story };
  }
}

if (ROTUNDA_SEED === undefined) {
  for (const first of [FIXED, FRESH]) {
    test(`${SEQUENCES} clusters from seed ${first} on`, async t => {
      for (let seed = first; seed < first + SEQUENCES; seed++) {
        const { failure, story } = await live(seed);
        if (failure !== undefined) assert.fail(`ROTUNDA_SEED=${seed}: ${failure}\n${story.slice(-200).join('\n')}`);
      }
      t.diagnostic(`seeds ${first} to ${first + SEQUENCES - 1}`);
    });
  }
} else {
  test(`seed ${ROTUNDA_SEED}`, async t => {
    const { failure, story } = await live(Number(ROTUNDA_SEED));
    for (const line of story) t.diagnostic(line);
    assert.equal(failure, undefined);
  });
}
