import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { FieldSet } from './field-set.ts';
import { decodeFieldsV1, encodeFieldsV1 } from './fields-v1.ts';

const step = fc.oneof(
  fc.constantFrom('f:a', 'f:b', 'f:.', 'f:with space', 'k:{"name":"x"}', 'k:{"a":1,"b":"2"}', 'v:"x"', 'v:1', 'i:0'),
  fc.string().map(text => `f:${text}`),
);
const path = fc.array(step, { minLength: 1, maxLength: 4 });
const set = fc.array(path, { maxLength: 8 }).map(paths => FieldSet.of(...paths));
const texts = (fields: FieldSet) => new Set([...fields.paths()].map(found => JSON.stringify(found)));

describe('field sets', () => {
  test('what is written as FieldsV1 is read back', () => {
    fc.assert(
      fc.property(set, fields => {
        const decoded = decodeFieldsV1(JSON.parse(JSON.stringify(encodeFieldsV1(fields))));
        assert.ok(decoded !== undefined && decoded.equals(fields));
        assert.deepEqual(texts(decoded), texts(fields));
      }),
      { numRuns: 300 },
    );
  });

  test('union, intersection and difference are those of sets of paths', () => {
    fc.assert(
      fc.property(set, set, (a, b) => {
        const [left, right] = [texts(a), texts(b)];
        assert.deepEqual(texts(a.union(b)), left.union(right));
        assert.deepEqual(texts(a.intersection(b)), left.intersection(right));
        assert.deepEqual(texts(a.difference(b)), left.difference(right));
        assert.equal(a.equals(b), left.symmetricDifference(right).size === 0);
      }),
      { numRuns: 300 },
    );
  });

  test('without takes what is below as well', () => {
    const fields = FieldSet.of(['f:spec', 'f:a'], ['f:spec', 'f:b', 'f:c'], ['f:spec', 'f:b'], ['f:status']);
    assert.deepEqual([...fields.without(FieldSet.of(['f:spec', 'f:b'], ['f:status'])).paths()], [['f:spec', 'f:a']]);
  });

  test('the example of the documentation', () => {
    const text =
      '{"f:metadata":{"f:labels":{".":{},"f:app":{}}},"f:spec":{"f:ports":{"k:{\\"port\\":80,\\"protocol\\":\\"TCP\\"}":{".":{},"f:port":{}}}}}';
    const fields = decodeFieldsV1(JSON.parse(text));
    assert.deepEqual(
      [...(fields?.paths() ?? [])].map(found => found.join(' ')),
      [
        'f:metadata f:labels',
        'f:metadata f:labels f:app',
        'f:spec f:ports k:{"port":80,"protocol":"TCP"}',
        'f:spec f:ports k:{"port":80,"protocol":"TCP"} f:port',
      ],
    );
  });

  test('what is no field set is refused', () => {
    for (const bad of [null, 1, 'f:a', [], { x: {} }, { 'f:a': 1 }, { 'k:{': {} }, { 'i:x': {} }, { 'v:': {} }]) {
      assert.equal(decodeFieldsV1(bad), undefined, JSON.stringify(bad));
    }
  });
});
