import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { PoolItem } from '../../inventory/model.ts';
import { ShownItems } from './news.ts';

function pool(name: string, machineCount = 1): PoolItem {
  const counts = { machineCount, readyCount: 0, updatedCount: 0, unavailableCount: 0, degradedCount: 0 };
  const states = { updated: true, updating: false, degraded: false, paused: false };
  return { metadata: { name }, configuration: 'c', ...states, ...counts };
}

test('a watch tells what came, what changed and what was deleted, each once (spec 70, 7)', () => {
  const shown = new ShownItems();
  const told = (...items: PoolItem[]) => shown.newsIn(items).map(({ type, item }) => `${type} ${item.metadata.name}`);
  assert.deepEqual(told(pool('a'), pool('b')), ['ADDED a', 'ADDED b']);
  assert.deepEqual(told(pool('a'), pool('b')), []);
  assert.deepEqual(told(pool('a', 2), pool('b')), ['MODIFIED a']);
  assert.deepEqual(told(pool('b'), pool('c')), ['DELETED a', 'ADDED c']);
  assert.deepEqual(told(pool('b'), pool('c')), []);
  assert.deepEqual(told(pool('a'), pool('b'), pool('c')), ['ADDED a']);
});
