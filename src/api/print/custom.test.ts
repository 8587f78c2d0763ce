import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { KubeObject } from '../../kube/resource.ts';
import { customPrinter } from './custom.ts';
import type { Cell } from './table.ts';

const now = new Date('2026-06-01T12:00:00Z');
const object = {
  metadata: { name: 'worker', creationTimestamp: '2026-06-01T10:00:00Z' },
  spec: { size: 3.7, on: true, text: 'hi', map: { a: 1 }, when: '2026-06-01T11:59:00Z' },
  status: { conditions: [{ type: 'Updated', status: 'True' }] },
} as KubeObject;

describe('columns of custom resources', () => {
  const cases: [rule: string, type: string, jsonPath: string, cell: Cell][] = [
    ['text', 'string', '.spec.text', 'hi'],
    ['number as text', 'string', '.spec.size', '3.7'],
    ['object as text', 'string', '.spec.map', '{"a":1}'],
    ['condition', 'string', '.status.conditions[?(@.type=="Updated")].status', 'True'],
    ['missing', 'string', '.spec.nothing', null],
    ['integer is cut', 'integer', '.spec.size', 3],
    ['text is no integer', 'integer', '.spec.text', null],
    ['number', 'number', '.spec.size', 3.7],
    ['boolean', 'boolean', '.spec.on', true],
    ['text is no boolean', 'boolean', '.spec.text', null],
    ['date', 'date', '.spec.when', '60s'],
    ['no date', 'date', '.spec.text', '<invalid>'],
    ['bad path', 'string', 'spec..[', null],
  ];
  for (const [rule, type, jsonPath, cell] of cases) {
    it(rule, () => {
      assert.deepEqual(customPrinter([{ name: 'C', type, jsonPath }]).cells(object, now), ['worker', cell]);
    });
  }

  it('definitions carry over', () => {
    const [, column] = customPrinter([
      { name: 'C', type: 'integer', format: 'int32', jsonPath: '.a', priority: 1 },
    ]).columns;
    const description = 'Custom resource definition column (in JSONPath format): .a';
    assert.deepEqual(column, { name: 'C', type: 'integer', format: 'int32', description, priority: 1 });
  });

  it('without columns: name and age', () => {
    assert.deepEqual(customPrinter(undefined).cells(object, now), ['worker', '120m']);
    assert.deepEqual(
      customPrinter([]).columns.map(column => column.name),
      ['Name', 'Age'],
    );
  });
});
