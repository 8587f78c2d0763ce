import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { applyMergePatch } from './merge.ts';

/** RFC 7386, appendix A. */
const CASES: [document: unknown, patch: unknown, expected: unknown][] = [
  [{ a: 'b' }, { a: 'c' }, { a: 'c' }],
  [{ a: 'b' }, { b: 'c' }, { a: 'b', b: 'c' }],
  [{ a: 'b' }, { a: null }, {}],
  [{ a: 'b', b: 'c' }, { a: null }, { b: 'c' }],
  [{ a: ['b'] }, { a: 'c' }, { a: 'c' }],
  [{ a: 'c' }, { a: ['b'] }, { a: ['b'] }],
  [{ a: { b: 'c' } }, { a: { b: 'd', c: null } }, { a: { b: 'd' } }],
  [{ a: [{ b: 'c' }] }, { a: [1] }, { a: [1] }],
  [
    ['a', 'b'],
    ['c', 'd'],
    ['c', 'd'],
  ],
  [{ a: 'b' }, ['c'], ['c']],
  [{ a: 'foo' }, null, null],
  [{ a: 'foo' }, 'bar', 'bar'],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: 'b', c: null }, { a: 'b' }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

describe('merge patch', () => {
  for (const [document, patch, expected] of CASES) {
    test(`${JSON.stringify(document)} with ${JSON.stringify(patch)}`, () => {
      assert.deepEqual(applyMergePatch(document, patch), expected);
    });
  }

  test('applied twice it is the same as applied once, and the document given stays as it is', () => {
    fc.assert(
      fc.property(fc.jsonValue(), fc.jsonValue(), (document, patch) => {
        const before = JSON.stringify(document);
        const once = applyMergePatch(document, patch);
        assert.deepEqual(applyMergePatch(once, patch), once);
        assert.equal(JSON.stringify(document), before);
      }),
      { numRuns: 300 },
    );
  });

  test('a field named __proto__ is a field', () => {
    const merged = applyMergePatch({}, JSON.parse('{"__proto__":{"polluted":true}}')) as object;
    assert.deepEqual(Object.keys(merged), ['__proto__']);
    assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  });
});
