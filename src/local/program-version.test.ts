import assert from 'node:assert/strict';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { kubeApiserverVersion } from './program-version.ts';
import { Programs } from './programs.ts';

test('a real kube-apiserver says itself which version it is', async t => {
  assert.equal(await versionIn(t, 'echo Kubernetes v1.36.3'), '1.36.3');
  assert.equal(await versionIn(t, 'echo Kubernetes v1.29.0-rc.1+abc'), '1.29.0-rc.1+abc');
  await assert.rejects(
    versionIn(t, 'echo none'),
    /expected "Kubernetes v<version>" from .*kube-apiserver --version, found "none\\n"/,
  );
});

test('its stand-in is the version of the API it stands for, as upstream expects one of Kubernetes', async () => {
  const version = await kubeApiserverVersion(new Programs({ path: '' }).find('kube-apiserver'));
  assert.match(version, /^1\.\d+\.\d+/);
});

function versionIn(t: TestContext, script: string): Promise<string> {
  const binaries = mkdtempSync(join(tmpdir(), 'rotunda-version-'));
  t.after(() => rmSync(binaries, { recursive: true }));
  const path = join(binaries, 'kube-apiserver');
  writeFileSync(path, `#!/bin/sh\n[ "$*" = --version ] && ${script}\n`);
  chmodSync(path, 0o755);
  return kubeApiserverVersion(new Programs({ binaries, path: '' }).find('kube-apiserver'));
}
