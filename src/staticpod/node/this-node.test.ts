import assert from 'node:assert/strict';
import { test } from 'node:test';
import { onThisNode } from './this-node.ts';

test('localhost means the node where a node has an address of its own, and nothing else changes', () => {
  const env = { ROTUNDA_NODE_ADDRESS: '127.9.8.10' };
  assert.equal(onThisNode('https://localhost:6443/readyz', env), 'https://127.9.8.10:6443/readyz');
  assert.equal(onThisNode('https://localhost:6443', { ROTUNDA_NODE_ADDRESS: '::1' }), 'https://[::1]:6443/');
  assert.equal(onThisNode('https://localhost:6443/readyz', {}), 'https://localhost:6443/readyz');
  assert.equal(onThisNode('https://api.example.com:6443/', env), 'https://api.example.com:6443/');
});
