import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Recent } from './recent.ts';

test('reads once what is asked for again, and forgets what was not used for longest', () => {
  const reads: string[] = [];
  const recent = new Recent<object>(2);
  const get = (key: string) => recent.get(key, () => ({ read: reads.push(key) }));
  const first = get('a');
  get('b');
  assert.equal(get('a'), first);
  get('c');
  assert.equal(get('a'), first, 'a was used after b');
  get('b');
  assert.deepEqual(reads, ['a', 'b', 'c', 'b']);
});

test('reads again what failed', () => {
  const recent = new Recent<string>(2);
  const fail = () => {
    throw new Error('garbled');
  };
  assert.throws(() => recent.get('a', fail), /garbled/);
  assert.equal(
    recent.get('a', () => 'read'),
    'read',
  );
});
