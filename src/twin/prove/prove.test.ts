/** The hand-over in every order in which its steps can happen (spec 90): it holds, and each rule that is left out is missed. */
import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { proveHandOver } from './prove.ts';
import { REMOVABLE, type RemovableRule } from './rules.ts';

const ONCE = { crashes: 1, losses: 1, happenings: 1 };

test('two nodes, a crash, a lost message: nobody refuses anybody in any order, and it ends from everywhere', () => {
  const proof = proveHandOver({ ...ONCE, nodes: 2, happenings: 0 });
  assert.equal(proof.verdict, 'proved', proof.story.join('\n'));
  assert.ok(proof.states > 3000, `only ${proof.states} states`);
});

test('three nodes, a crash, a lost message', () => {
  const proof = proveHandOver({ ...ONCE, nodes: 3, happenings: 0 });
  assert.equal(proof.verdict, 'proved', proof.story.join('\n'));
  assert.ok(proof.states > 10_000, `only ${proof.states} states`);
});

test('one node and all that people, leaders and time can do once', () => {
  const proof = proveHandOver({ ...ONCE, nodes: 1 });
  assert.equal(proof.verdict, 'proved', proof.story.join('\n'));
  assert.ok(proof.states > 100_000, `only ${proof.states} states`);
});

describe('without one rule somebody is refused, and the story says how', () => {
  for (const without of Object.keys(REMOVABLE) as RemovableRule[]) {
    test(without, () => {
      const proof = proveHandOver({ ...ONCE, nodes: 1, without });
      assert.equal(proof.verdict, 'refuted');
      assert.match(proof.refusal ?? '', /process of n1 refuses the leaf of CA \d that n1 shows/);
      assert.ok(proof.story.length < 15, proof.story.join('\n'));
    });
  }
});

test('the same search tells the same story', () => {
  const tell = () => proveHandOver({ ...ONCE, nodes: 2, happenings: 0, without: 'HO-3' });
  assert.deepEqual(tell(), tell());
});

test('with less memory than it takes nothing is claimed', () => {
  const { verdict } = proveHandOver({ ...ONCE, nodes: 2, mostStates: 500 });
  assert.equal(verdict, 'unfinished');
});
