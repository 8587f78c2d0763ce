/**
 * `decide` in random worlds (spec 90): whatever is lost, late, restarted or done by others, nobody refuses what was signed for them,
 * nobody is left behind without a name, and with everybody ready a hand-over ends. `ROTUNDA_SEQUENCES=100000` runs so many worlds,
 * `ROTUNDA_SEED=<number>` runs one of them and tells its story.
 */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { pick, randomOf } from './model-nodes.ts';
import { DAY, type Happening, LEAVES, ModelWorld } from './model-world.ts';

const { ROTUNDA_SEQUENCES, ROTUNDA_SEED } = process.env;
const SEQUENCES = Number(ROTUNDA_SEQUENCES ?? 2500);
const LONGEST = 120;
/** Always the same worlds, and some that nobody has seen. */
const FIXED = 1;
const FRESH = Math.floor(Math.random() * 2 ** 31);

const often = (count: number, happening: Happening): Happening[] => Array.from({ length: count }, () => happening);

const HAPPENINGS: readonly Happening[] = [
  ...often(14, world => world.pass(world.chance(LEAVES.length), Number.POSITIVE_INFINITY)),
  // Killed after none, one, two or three of its writes.
  ...often(6, world => world.pass(world.chance(LEAVES.length), world.chance(4))),
  ...often(8, world => world.deliver()),
  ...often(6, world => world.nodes.reload()),
  ...often(6, world => world.nodes.switchVerifier()),
  ...often(6, world => world.nodes.report()),
  ...often(6, world => world.show()),
  ...often(3, world => world.switchNode()),
  world => world.addNode(),
  world => world.nodes.delete(),
  world => world.nodes.forgetReports(),
  ...often(4, world => world.passTime(1 + world.chance(DAY / 10))),
  ...often(4, world => world.passTime(DAY + world.chance(3 * DAY))),
  world => world.passTime(world.chance(12 * DAY)),
  ...often(3, world => world.request()),
  world => world.takeBack(),
  ...often(2, world => world.removeOldTrust()),
  world => world.nodes.waive(),
  world => world.loseSigner(),
  world => world.loseLeaf(),
  ...often(2, world => world.recover(world.chance(3))),
  ...often(2, world => world.changeOwner()),
];

function live(seed: number, isTold: boolean): { failure: string | undefined; story: readonly string[] } {
  const random = randomOf(seed);
  const world = new ModelWorld(random, isTold);
  try {
    for (let left = Math.floor(random() * LONGEST); left > 0; left--) {
      pick(HAPPENINGS, random)(world);
      world.check();
    }
    world.settle();
    return { failure: undefined, story: world.story };
  } catch (error) {
    return { failure: (error as Error).message, story: world.story };
  }
}

function assertHolds(seed: number): void {
  if (live(seed, false).failure === undefined) return;
  const { failure, story } = live(seed, true);
  assert.fail(`ROTUNDA_SEED=${seed}: ${failure}\n${story.join('\n')}`);
}

if (ROTUNDA_SEED === undefined) {
  for (const first of [FIXED, FRESH]) {
    test(`${SEQUENCES} worlds from seed ${first} on`, t => {
      for (let seed = first; seed < first + SEQUENCES; seed++) assertHolds(seed);
      t.diagnostic(`seeds ${first} to ${first + SEQUENCES - 1}`);
    });
  }
} else {
  test(`seed ${ROTUNDA_SEED}`, t => {
    const { failure, story } = live(Number(ROTUNDA_SEED), true);
    for (const line of story) t.diagnostic(line);
    assert.equal(failure, undefined);
  });
}
