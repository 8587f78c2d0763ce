import assert from 'node:assert/strict';
import { test } from 'node:test';
import { SelectorError, selectorProblem, selects } from './selector.ts';

const LABELS = { a: '1', b: '' };
const expression = (operator: string, key: string, values?: string[]) => ({
  matchExpressions: [{ key, operator, ...(values && { values }) }],
});

test('labels and expressions must all hold', () => {
  assert.equal(selects({ matchLabels: { a: '1' } }, LABELS), true);
  assert.equal(selects({ matchLabels: { a: '2' } }, LABELS), false);
  assert.equal(selects({ matchLabels: { b: '' }, ...expression('Exists', 'a') }, LABELS), true);
  assert.equal(selects(expression('In', 'a', ['0', '1']), LABELS), true);
  assert.equal(selects(expression('NotIn', 'c', ['x']), LABELS), true);
  assert.equal(selects(expression('NotIn', 'a', ['1']), LABELS), false);
  assert.equal(selects(expression('DoesNotExist', 'toString'), LABELS), true);
});

test('an empty selector selects nothing here', () => {
  assert.equal(selects({}, LABELS), false);
  assert.equal(selects({ matchLabels: {}, matchExpressions: [] }, LABELS), false);
  assert.equal(selects(undefined, LABELS), false);
});

test('a malformed one is told', () => {
  assert.match(selectorProblem(expression('Like', 'a', ['x'])) ?? '', /"Like"/);
  assert.match(selectorProblem(expression('In', 'a')) ?? '', /needs values/);
  assert.match(selectorProblem(expression('Exists', 'a', ['x'])) ?? '', /takes no values/);
  assert.throws(() => selects(expression('In', 'a'), LABELS), SelectorError);
});
