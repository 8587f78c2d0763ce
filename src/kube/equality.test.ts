import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { semanticallyEqual } from './equality.ts';

describe('semanticallyEqual', () => {
  const cases: [a: unknown, b: unknown, equal: boolean][] = [
    [{}, undefined, true],
    [null, [], true],
    [{ a: {} }, {}, true],
    [{ a: { b: null } }, { a: { b: [] } }, true],
    [{ a: { b: null } }, {}, true],
    [{ a: [{}] }, {}, false],
    [{ a: '' }, {}, false],
    [{ a: 0 }, {}, false],
    [{ a: false }, {}, false],
    [[1, 2], [2, 1], false],
    [[1], [1, 2], false],
    [[], {}, true],
    [[1], { 0: 1 }, false],
    [{ a: 1 }, { b: 1 }, false],
    [{ a: 'x' }, { a: 'y' }, false],
    [1, '1', false],
    [JSON.parse('{"__proto__":{"a":1}}'), {}, false],
  ];
  for (const [a, b, equal] of cases) {
    it(`${JSON.stringify(a)} and ${JSON.stringify(b)}`, () => {
      assert.equal(semanticallyEqual(a, b), equal);
      assert.equal(semanticallyEqual(b, a), equal);
    });
  }

  it('everything equals its copy', () => {
    fc.assert(fc.property(fc.jsonValue(), value => semanticallyEqual(value, structuredClone(value))));
  });

  it('is symmetric', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (a, b) => semanticallyEqual(a, b) === semanticallyEqual(b, a)),
    );
  });
});
