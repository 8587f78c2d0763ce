import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { KubeError } from '../../kube/error.ts';
import { applyJsonPatch, MAX_OPERATIONS } from './json.ts';

const CASES: { name: string; document: unknown; patch: unknown[]; expected?: unknown; fails?: RegExp }[] = [
  // RFC 6902, appendix A.
  {
    name: 'A.1 adding a member',
    document: { foo: 'bar' },
    patch: [{ op: 'add', path: '/baz', value: 'qux' }],
    expected: { baz: 'qux', foo: 'bar' },
  },
  {
    name: 'A.2 adding an element',
    document: { foo: ['bar', 'baz'] },
    patch: [{ op: 'add', path: '/foo/1', value: 'qux' }],
    expected: { foo: ['bar', 'qux', 'baz'] },
  },
  {
    name: 'A.3 removing a member',
    document: { baz: 'qux', foo: 'bar' },
    patch: [{ op: 'remove', path: '/baz' }],
    expected: { foo: 'bar' },
  },
  {
    name: 'A.4 removing an element',
    document: { foo: ['bar', 'qux', 'baz'] },
    patch: [{ op: 'remove', path: '/foo/1' }],
    expected: { foo: ['bar', 'baz'] },
  },
  {
    name: 'A.5 replacing a value',
    document: { baz: 'qux', foo: 'bar' },
    patch: [{ op: 'replace', path: '/baz', value: 'boo' }],
    expected: { baz: 'boo', foo: 'bar' },
  },
  {
    name: 'A.6 moving a value',
    document: { foo: { bar: 'baz', waldo: 'fred' }, qux: { corge: 'grault' } },
    patch: [{ op: 'move', from: '/foo/waldo', path: '/qux/thud' }],
    expected: { foo: { bar: 'baz' }, qux: { corge: 'grault', thud: 'fred' } },
  },
  {
    name: 'A.7 moving an element',
    document: { foo: ['all', 'grass', 'cows', 'eat'] },
    patch: [{ op: 'move', from: '/foo/1', path: '/foo/3' }],
    expected: { foo: ['all', 'cows', 'eat', 'grass'] },
  },
  {
    name: 'A.8 testing a value',
    document: { baz: 'qux', foo: ['a', 2, 'c'] },
    patch: [
      { op: 'test', path: '/baz', value: 'qux' },
      { op: 'test', path: '/foo/1', value: 2 },
    ],
    expected: { baz: 'qux', foo: ['a', 2, 'c'] },
  },
  {
    name: 'A.9 testing a value that differs',
    document: { baz: 'qux' },
    patch: [{ op: 'test', path: '/baz', value: 'bar' }],
    fails: /test failed/,
  },
  {
    name: 'A.10 adding a nested object',
    document: { foo: 'bar' },
    patch: [{ op: 'add', path: '/child', value: { grandchild: {} } }],
    expected: { foo: 'bar', child: { grandchild: {} } },
  },
  {
    name: 'A.11 unknown members are ignored',
    document: { foo: 'bar' },
    patch: [{ op: 'add', path: '/baz', value: 'qux', xyz: 123 }],
    expected: { foo: 'bar', baz: 'qux' },
  },
  {
    name: 'A.12 adding to nothing',
    document: { foo: 'bar' },
    patch: [{ op: 'add', path: '/baz/bat', value: 'qux' }],
    fails: /doc is missing path: "\/baz\/bat"/,
  },
  {
    name: 'A.14 escapes',
    document: { '/': 9, '~1': 10 },
    patch: [{ op: 'test', path: '/~01', value: 10 }],
    expected: { '/': 9, '~1': 10 },
  },
  {
    name: 'A.15 strings are not numbers',
    document: { '/': 9, '~1': 10 },
    patch: [{ op: 'test', path: '/~01', value: '10' }],
    fails: /test failed/,
  },
  {
    name: 'A.16 adding an array',
    document: { foo: ['bar'] },
    patch: [{ op: 'add', path: '/foo/-', value: ['abc', 'def'] }],
    expected: { foo: ['bar', ['abc', 'def']] },
  },
  // What the API server does.
  {
    name: 'replace adds a field that is not there',
    document: {},
    patch: [{ op: 'replace', path: '/a', value: 1 }],
    expected: { a: 1 },
  },
  {
    name: 'replace needs the element',
    document: [],
    patch: [{ op: 'replace', path: '/0', value: 1 }],
    fails: /invalid index/,
  },
  {
    name: 'an index with a leading zero',
    document: { a: [1] },
    patch: [{ op: 'remove', path: '/a/00' }],
    fails: /not the index/,
  },
  {
    name: 'removing what is not there',
    document: { a: 1 },
    patch: [{ op: 'remove', path: '/b' }],
    fails: /remove operation does not apply/,
  },
  {
    name: 'moving into itself',
    document: { a: { b: 1 } },
    patch: [{ op: 'move', from: '/a', path: '/a/b/c' }],
    fails: /cannot move into itself/,
  },
  {
    name: 'inherited names are not fields',
    document: {},
    patch: [{ op: 'remove', path: '/constructor' }],
    fails: /missing value/,
  },
  {
    name: 'nothing happens when one operation fails',
    document: { a: 1 },
    patch: [
      { op: 'remove', path: '/a' },
      { op: 'remove', path: '/a' },
    ],
    fails: /missing value/,
  },
];

describe('JSON patch', () => {
  for (const { name, document, patch, expected, fails } of CASES) {
    test(name, () => {
      const before = structuredClone(document);
      if (fails === undefined) assert.deepEqual(applyJsonPatch(document, patch), expected);
      else {
        assert.throws(
          () => applyJsonPatch(document, patch),
          error => {
            assert.ok(error instanceof KubeError);
            assert.equal(error.code, 422);
            assert.match(String(error.details?.causes?.[0]?.message), fails);
            return true;
          },
        );
      }
      assert.deepEqual(document, before, 'the document given is not changed');
    });
  }

  test('a malformed patch is a bad request', () => {
    const bad = [{}, [1], [{ op: 'add', path: '/a' }], [{ op: 'remove', path: 5 }]];
    for (const patch of bad) assert.throws(() => applyJsonPatch({}, patch), { code: 400, reason: 'BadRequest' });
  });

  test('an operation that is unknown or says not where is invalid', () => {
    const bad = [
      [{ op: 'jump', path: '/a' }],
      [{ path: '/a' }],
      [{ op: 'remove' }],
      [{ op: 'remove', path: 'a' }],
      [{ op: 'copy', path: '/a' }],
    ];
    for (const patch of bad) assert.throws(() => applyJsonPatch({ a: 1 }, patch), { code: 422, reason: 'Invalid' });
  });

  test('too many operations, and copies that double the document, are refused', () => {
    const many = Array.from({ length: MAX_OPERATIONS + 1 }, () => ({ op: 'test', path: '', value: {} }));
    assert.throws(() => applyJsonPatch({}, many), { code: 413 });
    const doubling = Array.from({ length: 40 }, (_, index) => ({ op: 'copy', from: '', path: `/x${index}` }));
    assert.throws(() => applyJsonPatch({ a: 'x'.repeat(1000) }, doubling), { code: 413 });
  });

  test('a field named __proto__ is a field', () => {
    const patched = applyJsonPatch(
      {},
      JSON.parse('[{"op":"add","path":"/__proto__","value":{"polluted":true}}]'),
    ) as object;
    assert.deepEqual(Object.keys(patched), ['__proto__']);
    assert.equal(({} as { polluted?: boolean }).polluted, undefined);
  });

  test('the patch from any object to any other one leads there', () => {
    const objects = fc.dictionary(fc.string(), fc.jsonValue());
    fc.assert(
      fc.property(objects, objects, (from, to) => {
        const pointer = (field: string) => `/${field.replaceAll('~', '~0').replaceAll('/', '~1')}`;
        const patch = [
          ...Object.keys(from).map(field => ({ op: 'remove', path: pointer(field) })),
          ...Object.entries(to).map(([field, value]) => ({ op: 'add', path: pointer(field), value })),
          ...Object.entries(to).map(([field, value]) => ({ op: 'test', path: pointer(field), value })),
        ];
        const [document, expected] = JSON.parse(JSON.stringify([from, to])) as [unknown, unknown];
        assert.deepEqual(applyJsonPatch(document, JSON.parse(JSON.stringify(patch))), expected);
      }),
      { numRuns: 200 },
    );
  });
});
