import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import * as fc from 'fast-check';
import { findJsonPath, JsonPathError, parseJsonPath } from './jsonpath.ts';

const POOL = {
  metadata: { name: 'worker', labels: { 'machineconfiguration.openshift.io/role': 'worker' } },
  spec: { paused: false, replicas: 3, list: [1, 2, 3, 4] },
  status: {
    conditions: [
      { type: 'Updated', status: 'True', weight: 1 },
      { type: 'Degraded', status: 'False', weight: 5 },
      { type: 'Odd', weight: 9 },
    ],
  },
};

describe('JSONPath', () => {
  const cases: [path: string, found: unknown[]][] = [
    ['.metadata.name', ['worker']],
    ['$.metadata.name', ['worker']],
    ["['metadata']['name']", ['worker']],
    ['.metadata["name"]', ['worker']],
    ['.metadata.labels.machineconfiguration\\.openshift\\.io/role', ['worker']],
    ["['metadata'].labels['machineconfiguration.openshift.io/role']", ['worker']],
    ['.spec.paused', [false]],
    ['.missing.name', []],
    ['.spec.replicas.deeper', []],
    ['.spec.constructor', []],
    ['.spec.list[0]', [1]],
    ['.spec.list[-1]', [4]],
    ['.spec.list[-2]', [3]],
    ['.spec.list[9]', []],
    ['.spec.list[-9]', []],
    ['.spec.list[1:3]', [2, 3]],
    ['.spec.list[:2]', [1, 2]],
    ['.spec.list[2:]', [3, 4]],
    ['.spec.list[0:4:2]', [1, 3]],
    ['.spec.list[0,2]', [1, 3]],
    ['.spec.list[*]', [1, 2, 3, 4]],
    ['.spec[0]', []],
    ["..['weight']", [1, 5, 9]],
    ['..weight', [1, 5, 9]],
    ['.status.conditions[*].type', ['Updated', 'Degraded', 'Odd']],
    ['.status.conditions[?(@.type=="Degraded")].status', ['False']],
    ["..conditions[?(@.type=='Updated')].status", ['True']],
    ['.status.conditions[?(@.type == "Degraded")].weight', [5]],
    ['.status.conditions[?(@.status!="True")].type', ['Degraded']],
    ['.status.conditions[?(@.status)].type', ['Updated', 'Degraded']],
    ['.status.conditions[?(@.weight>1)].type', ['Degraded', 'Odd']],
    ['.status.conditions[?(@.weight<=5)].type', ['Updated', 'Degraded']],
    ['.status.conditions[?(@.type=="None")].status', []],
    ['.spec[?(@.a=="b")]', []],
  ];
  for (const [path, found] of cases) {
    it(`${path} finds ${JSON.stringify(found)}`, () => {
      assert.deepEqual(findJsonPath(parseJsonPath(path), POOL), found);
    });
  }

  for (const path of [
    'a',
    '.',
    '.a[',
    '.a[]',
    '.a[?(]',
    '.a[?(@.b==)]',
    '.a[?(@.b=="c"]',
    '.a b',
    '.a[0:1:0]',
    '{.a}',
  ]) {
    it(`refuses ${path.slice(0, 20)}`, () => {
      assert.throws(() => parseJsonPath(path), JsonPathError);
    });
  }

  it('any text is read or refused, and reading never throws', () => {
    const unit = fc.constantFrom(...'.|[|]|a|*|?(|@|==|"|0|:|)|,|\\'.split('|'));
    fc.assert(
      fc.property(fc.string({ unit }), fc.jsonValue(), (text, value) => {
        try {
          findJsonPath(parseJsonPath(text), value);
        } catch (error) {
          assert.ok(error instanceof JsonPathError, String(error));
        }
      }),
      { numRuns: 500 },
    );
  });
});
