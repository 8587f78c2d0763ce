import assert from 'node:assert/strict';
import { test } from 'node:test';
import { decodeReceipts, encodeReceipts, type NodeReceipt } from './receipts.ts';

const [A, B] = ['a'.repeat(64), 'b'.repeat(64)] as const;
const KUBELET: NodeReceipt = { process: 'kubelet', file: '/var/lib/kubelet/kubeconfig', kind: 'started', cas: [A, B] };
const ADMIN: NodeReceipt = { process: 'node administrator', file: '/etc/a.kubeconfig', kind: 'on-use', cas: [B] };

test('the same receipts are the same text, in whatever order they were found', () => {
  const text = encodeReceipts([KUBELET, ADMIN]);
  assert.equal(encodeReceipts([ADMIN, { ...KUBELET, cas: [B, A, A] }]), text);
  assert.deepEqual(decodeReceipts(text), [ADMIN, KUBELET]);
});

test('what cannot be understood is no evidence', () => {
  const wrong = [
    undefined,
    '',
    'yes',
    '{}',
    'null',
    JSON.stringify([{ ...KUBELET, kind: 'asked' }]),
    JSON.stringify([{ ...KUBELET, cas: ['A'.repeat(64)] }]),
    JSON.stringify([{ ...KUBELET, file: 7 }]),
    JSON.stringify([KUBELET, null]),
    JSON.stringify(Array.from({ length: 65 }, () => KUBELET)),
    JSON.stringify([{ ...KUBELET, cas: Array.from({ length: 257 }, () => A) }]),
    `${' '.repeat(64 * 1024)}[]`,
  ];
  for (const text of wrong) assert.equal(decodeReceipts(text), undefined, text?.slice(0, 80));
  assert.deepEqual(decodeReceipts('[]'), []);
});
