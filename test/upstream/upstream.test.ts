/** Upstream's own code judges ours: live where its programs are given, else by the answers that were recorded. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { ACCEPTED, acceptedAs } from './accepted.ts';
import { FUNCTIONS } from './functions.ts';
import { askUpstream, classesOf, type Disagreement, describeClass, disagreements, inputsOf } from './judge.ts';
import { replay } from './recording.ts';

const { ROTUNDA_UPSTREAM: programs, ROTUNDA_UPSTREAM_SEED: seedText, ROTUNDA_UPSTREAM_COUNT: countText } = process.env;
const count = Number(countText ?? 600);
const seed = Number(seedText ?? Math.floor(Math.random() * 1_000_000));

/** The least number of inputs that a recording must have. */
const LEAST_INPUTS = 500;

if (programs === undefined) {
  describe('ours decides as upstream did', () => {
    for (const of of FUNCTIONS) {
      it(of.name, async () => {
        const { given, answers, at, seed: recorded } = await replay(of);
        assert.ok(
          given.length >= LEAST_INPUTS,
          `${given.length} inputs are recorded, at least ${LEAST_INPUTS} are wanted`,
        );
        requireKnown(of.name, recorded, await disagreements(of, given, answers, new Date(at)));
      });
    }
  });
} else {
  describe(`ours decides as upstream does: ${count} inputs, seed ${seed}`, () => {
    for (const of of FUNCTIONS) {
      it(of.name, async () => {
        const at = new Date(Math.floor(Date.now() / 1000) * 1000);
        const inputs = await inputsOf(of, seed, count, at);
        const answers = await askUpstream(programs, of, inputs);
        requireKnown(of.name, seed, await disagreements(of, inputs, answers, at));
      });
    }
  });
}

it('what is different on purpose is in docs/compatibility.md', () => {
  const page = readFileSync(new URL('../../docs/compatibility.md', import.meta.url), 'utf8');
  for (const { documented } of ACCEPTED) assert.ok(page.includes(documented), documented);
});

/** Every class of differences must be in the list of accepted ones. */
function requireKnown(name: string, ofSeed: number, found: readonly Disagreement[]): void {
  const unknown = found.filter(difference => acceptedAs(name, difference.class) === undefined);
  const classes = classesOf(unknown);
  assert.equal(classes.length, 0, `${name}, seed ${ofSeed}:\n${classes.map(describeClass).join('\n')}`);
}
