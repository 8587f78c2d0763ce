import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { configMap } from '../testing.ts';
import { highestReadyRevision, parseRevision, READY_ANNOTATION } from './number.ts';

describe('a revision number', () => {
  for (const [text, expected] of [
    ['7', 7],
    ['007', 7],
    ['+7', 7],
    ['-7', -7],
    ['0', 0],
    ['2147483647', 2147483647],
    ['2147483648', undefined],
    ['-2147483649', undefined],
    ['', undefined],
    ['seven', undefined],
    ['7a', undefined],
    [' 7', undefined],
    ['7.0', undefined],
    ['1e3', undefined],
    ['0x7', undefined],
    ['9'.repeat(40), undefined],
  ] as const) {
    test(`"${text}" is ${expected}`, () => assert.equal(parseRevision(text), expected));
  }

  test('survives being written and read', () => {
    fc.assert(
      fc.property(fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }), number =>
        assert.equal(parseRevision(String(number)), number),
      ),
    );
  });
});

describe('the highest complete revision', () => {
  const status = (number: string, ready?: string) =>
    configMap(
      `revision-status-${number}`,
      { revision: number },
      ready === undefined ? undefined : { [READY_ANNOTATION]: ready },
    );

  test('is 0 when there is none', () => assert.equal(highestReadyRevision([]), 0));
  test('counts only what is ready (T01)', () => {
    const statuses = [status('1', 'true'), status('2', 'true'), status('3', 'false'), status('4')];
    assert.equal(highestReadyRevision(statuses), 2);
  });
  test('looks at the number, not at the order of names', () => {
    assert.equal(highestReadyRevision([status('10', 'true'), status('9', 'true')]), 10);
  });
  test('ignores other objects, and those without a number', () => {
    const other = configMap('config', { revision: 'nine' });
    assert.equal(highestReadyRevision([other, configMap('revision-status-9', {}, { [READY_ANNOTATION]: 'true' })]), 0);
  });
  test('fails on something that is no number, saying where', () => {
    assert.throws(() => highestReadyRevision([status('two')]), /openshift-test\/revision-status-two, found "two"/);
  });
});
