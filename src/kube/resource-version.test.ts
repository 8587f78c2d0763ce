import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { compareVersions, isOlder } from './resource-version.ts';

describe('resource versions', () => {
  it('compare like numbers, of any length', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: 0n, max: 2n ** 80n }), fc.bigInt({ min: 0n, max: 2n ** 80n }), (a, b) => {
        const sign = a < b ? -1 : a > b ? 1 : 0;
        assert.equal(Math.sign(compareVersions(String(a), String(b)) ?? Number.NaN), sign);
        assert.equal(isOlder(String(a), String(b)), a < b);
      }),
    );
  });

  it('say nothing when they are no numbers', () => {
    for (const [a, b] of [
      ['a', '1'],
      ['01', '1'],
      [undefined, '1'],
      ['', '5'],
      ['-1', '1'],
    ] as const) {
      assert.equal(compareVersions(a, b), undefined);
      assert.equal(isOlder(a, b), false);
      assert.equal(isOlder(b, a), false);
    }
    assert.equal(compareVersions('same', 'same'), 0);
  });
});
