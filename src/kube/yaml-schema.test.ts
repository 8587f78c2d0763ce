import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { load } from 'js-yaml';
import { KUBERNETES_YAML } from './yaml-schema.ts';

/** What sigs.k8s.io/yaml 1.4.0 makes of each. */
const CASES: [text: string, expected: unknown][] = [
  ['0644', 420],
  ['-010', -8],
  ['0o17', 15],
  ['0x1F', 31],
  ['0b11', 3],
  ['1_000', 1000],
  ['089', 89],
  ['+7', 7],
  ['1e3', 1000],
  ['1:30', '1:30'],
  ['2001-01-01', '2001-01-01'],
  ['yes', true],
  ['On', true],
  ['y', true],
  ['off', false],
  ['N', false],
  ['"yes"', 'yes'],
  ['yesterday', 'yesterday'],
  ['~', null],
];

describe('YAML as Kubernetes reads it', () => {
  for (const [text, expected] of CASES) {
    test(`${text} is ${JSON.stringify(expected)}`, () => {
      assert.deepEqual(load(`a: ${text}`, { schema: KUBERNETES_YAML }), { a: expected });
    });
  }

  test('mappings can be merged', () => {
    const text = 'a: &a {x: 1}\nb: {<<: *a, z: 2}';
    assert.deepEqual(load(text, { schema: KUBERNETES_YAML }), { a: { x: 1 }, b: { x: 1, z: 2 } });
  });
});
