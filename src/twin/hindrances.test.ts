import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Hindrances } from './hindrances.ts';

const NEEDED = 10;
const anybody = (_who: string) => true;

function hindered(...spans: readonly (readonly [number, number, string?])[]): Hindrances {
  const hindrances = new Hindrances();
  for (const [fromMs, untilMs, who = 'a'] of spans) hindrances.add({ who, fromMs, untilMs });
  return hindrances;
}

test('an excuse is a time in which those who were needed never had long enough', () => {
  const keeps = (hindrances: Hindrances, sinceMs: number, nowMs: number, isOneOf = anybody) =>
    hindrances.keptApart(isOneOf, sinceMs, nowMs, NEEDED)?.map(({ who }) => who);
  assert.equal(keeps(hindered(), 0, 5), undefined, 'nobody was hindered, so there is nobody to blame');
  assert.deepEqual(keeps(hindered([0, 100]), 0, 100), ['a']);
  assert.deepEqual(keeps(hindered([0, 100]), 0, 109), ['a'], 'and a moment for catching up');
  assert.equal(keeps(hindered([0, 100]), 0, 110), undefined, 'which does not last for ever');
  assert.equal(keeps(hindered([10, 100]), 0, 100), undefined, 'there was time before');
  assert.deepEqual(keeps(hindered([9, 100]), 0, 100), ['a']);
  assert.equal(keeps(hindered([0, 50], [60, 100]), 0, 100), undefined, 'there was time between');
  assert.deepEqual(keeps(hindered([0, 50, 'a'], [59, 200, 'b']), 0, 200), ['b', 'a'], 'the longest first');
  assert.deepEqual(keeps(hindered([0, 80, 'a'], [20, 40, 'b'], [75, 100, 'c']), 0, 100), ['a', 'c', 'b']);
  assert.equal(
    keeps(hindered([0, 100, 'b']), 0, 100, who => who === 'a'),
    undefined,
    'b was not needed',
  );
});
