import assert from 'node:assert/strict';
import { test } from 'node:test';
import { proofText } from './run.ts';

const COUNTS = { states: 1234567, transitions: 7654321, depth: 62 };

test('the verdict comes first, then the way to it', () => {
  const proved = { ...COUNTS, verdict: 'proved' as const, refusal: undefined, story: [] };
  assert.match(proofText(proved, 12.4), /^no refusal reachable: 1,234,567 states, 12 s\n/);
  const refuted = { ...COUNTS, verdict: 'refuted' as const, refusal: 'n1 refuses n2', story: ['a', 'b'] };
  assert.equal(
    proofText(refuted, 0.44),
    'a refusal is reachable: n1 refuses n2\nthe shortest way there, after 1,234,567 states, 0.4 s:\n 1. a\n 2. b\n',
  );
});
