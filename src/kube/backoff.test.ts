import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { backoffMs } from './backoff.ts';

describe('backoffMs', () => {
  it('doubles up to the longest, between half and whole', () => {
    const at = (random: number) =>
      [0, 1, 2, 3, 4, 5, 1000].map(n => backoffMs(n, { firstMs: 100, longestMs: 800, random: () => random }));
    assert.deepEqual(at(0), [0, 50, 100, 200, 400, 400, 400]);
    assert.deepEqual(at(0.5), [0, 75, 150, 300, 600, 600, 600]);
  });
});
