import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { layoutIn, OtherLayout, settleLayout } from './layout.ts';

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-layout-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

test('a folder keeps the layout that it began with, and says which it is', t => {
  const dir = folder(t);
  assert.equal(layoutIn(dir), undefined);
  settleLayout(dir, 'kubeadm');
  settleLayout(dir, 'kubeadm');
  assert.equal(layoutIn(dir), 'kubeadm');
  assert.throws(() => settleLayout(dir, 'openshift'), OtherLayout);
  assert.throws(
    () => settleLayout(dir, 'openshift'),
    /to have a cluster of layout openshift or none, found one of layout kubeadm/,
  );
  assert.equal(layoutIn(dir), 'kubeadm');
});

test('a cluster from before there were layouts has the one that there was', t => {
  const dir = folder(t);
  mkdirSync(join(dir, 'nodes'));
  assert.equal(layoutIn(dir), 'openshift');
  assert.throws(() => settleLayout(dir, 'kubeadm'), OtherLayout);
  settleLayout(dir, 'openshift');
});
