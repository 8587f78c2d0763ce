/** The contract suite, which the embedded API passes, asked of a real kube-apiserver. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { test } from 'node:test';
import { findBinaries } from './binaries.ts';
import { startControlPlane } from './control-plane.ts';

const binaries = findBinaries(['etcd', 'kube-apiserver', 'kube-controller-manager']);
const root = join(import.meta.dirname, '..', '..');

test('the contract suite passes against a real kube-apiserver', {
  skip: 'missing' in binaries && binaries.missing,
}, async t => {
  if ('missing' in binaries) return;
  const cluster = await startControlPlane(binaries);
  t.after(() => cluster.stop());
  const { status, output } = await runContract(cluster.kubeconfig);
  t.diagnostic(output.trimEnd().split('\n').at(-1) ?? '');
  assert.equal(status, 0, output);
});

function runContract(kubeconfig: string): Promise<{ status: number | null; output: string }> {
  const child = spawn(process.execPath, ['test/run.ts', 'test/contract/'], {
    cwd: root,
    // A test file that is run by a test runner reports to it in a way of its own.
    env: { ...process.env, NODE_TEST_CONTEXT: undefined, ROTUNDA_TEST_KUBECONFIG: kubeconfig },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', part => (output += String(part)));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', status => resolve({ status, output }));
  });
}
