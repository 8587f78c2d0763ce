import assert from 'node:assert/strict';
import { test } from 'node:test';
import { endedDuring, type Refused, type ShownLeaf, type Standstill, standstillOf } from './standstill.ts';

const at = (second: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, second));
const leaf: ShownLeaf = { edge: 'a to b', side: 'client', node: 'master-0', notAfter: at(15) };
const stop: Standstill = { what: 'stopped', from: at(10), to: at(20), leaves: [leaf, { ...leaf, notAfter: at(25) }] };
const refused: Refused = {
  at: at(22),
  edge: 'a to b',
  by: 'server',
  fromNode: 'master-0',
  toNode: 'master-1',
  reason: 'answered 401',
  count: 1,
};

test('only what ended while everything stood still, and is shown by who is refused, explains a refusal', () => {
  assert.deepEqual(endedDuring(stop), [leaf]);
  assert.equal(standstillOf(refused, [stop]), stop);
  const others: Partial<Refused>[] = [
    { edge: 'a to c' },
    { by: 'client' },
    { fromNode: 'master-2' },
    { at: at(14) },
    { at: at(31) },
  ];
  for (const other of others) assert.equal(standstillOf({ ...refused, ...other }, [stop]), undefined);
  const before: Standstill = { ...stop, from: at(16) };
  assert.equal(standstillOf(refused, [before]), undefined, 'it had ended before');
});
