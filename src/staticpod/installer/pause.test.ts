import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { minutes, seconds } from '../../kube/duration.ts';
import { at, NOW, node, operandPod } from '../testing.ts';
import { operandOf } from './operand.ts';
import { fallbackBackoffMs, installerBackoffMs, minReadyWaitMs, retryAfter } from './pause.ts';

describe('the pause before another attempt (spec 30, 9.6.2)', () => {
  for (const [count, expected] of [
    [0, 10],
    [1, 15],
    [2, 22.5],
    [3, 33.75],
    [10, 576.650390625],
    [11, 600],
    [1000, 600],
  ] as const) {
    test(`after ${count} failed installers: ${expected} s`, () =>
      assert.equal(installerBackoffMs(count), seconds(expected)));
  }
  for (const [count, expected] of [
    [0, 10],
    [1, 20],
    [2, 40],
    [3, 80],
    [4, 120],
    [50, 120],
  ] as const) {
    test(`after ${count} fallbacks: ${expected} min`, () => assert.equal(fallbackBackoffMs(count), minutes(expected)));
  }

  const failed = {
    targetRevision: 4,
    lastFailedRevision: 4,
    lastFailedTime: '2026-01-01T00:00:00Z',
    lastFailedCount: 1,
  };
  test('counts from the failure', () => assert.deepEqual(retryAfter(node('m0', failed)), at(15)));
  test('a fallback has its own count', () => {
    const entry = { ...failed, lastFailedReason: 'OperandFailedFallback', lastFallbackCount: 2 } as const;
    assert.deepEqual(retryAfter(node('m0', entry)), at(40 * 60));
  });
  test('a failure of another revision does not count', () => {
    assert.equal(retryAfter(node('m0', { ...failed, lastFailedRevision: 3 })), undefined);
  });
  test('nor does one without a time', () => {
    assert.equal(retryAfter(node('m0', { ...failed, lastFailedTime: null })), undefined);
  });
});

describe('the pause after an operand became ready (spec 30, 9.5)', () => {
  const since = (...ages: number[]) =>
    ages.map((age, index) => operandOf(operandPod(`m${index}`, 1, true, at(-age)), NOW));
  const cases: [string, number, ReturnType<typeof since>, number][] = [
    ['off', 0, since(1), 0],
    ['all have been ready for long', 30, since(100, 200), 0],
    ['the youngest counts', 30, since(100, 10), 20],
    ['exactly long enough', 30, since(30), 0],
    ['nobody is taken to have been ready for longer than 600 s', 700, since(5000), 100],
    ['none is ready', 30, [operandOf(operandPod('m0', 1, false, at(-1)), NOW)], 0],
  ];
  for (const [what, minReady, operands, expected] of cases) {
    test(what, () => assert.equal(minReadyWaitMs(operands, seconds(minReady), NOW), seconds(expected)));
  }
  test('a pod that is missing is passed over', () => assert.equal(minReadyWaitMs([undefined], seconds(30), NOW), 0));
});
