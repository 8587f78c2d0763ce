import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { nodeAddress } from './addresses.ts';
import { imageName, Programs } from './programs.ts';

function folder(t: TestContext, ...executables: string[]): string {
  const path = mkdtempSync(join(tmpdir(), 'rotunda-programs-'));
  t.after(() => rmSync(path, { recursive: true, force: true }));
  for (const name of executables) {
    writeFileSync(join(path, name), '#!/bin/sh\necho real "$@"\n');
    chmodSync(join(path, name), 0o755);
  }
  return path;
}

const ROTUNDA = ['rotunda-program'];

test('what a container runs', t => {
  const none = new Programs({ rotunda: ROTUNDA, path: '' });
  const installer = none.resolve({
    command: ['/usr/bin/cluster-kube-apiserver-operator', 'installer'],
    args: ['-v=2'],
  });
  assert.deepEqual(installer, { argv: ['rotunda-program', 'installer', '-v=2'], isStandIn: false });
  const server = none.resolve({ command: ['kube-apiserver'], args: ['--secure-port=1'] });
  assert.equal(server?.isStandIn, true);
  assert.deepEqual(
    server?.argv.slice(-2).map(word => word.split('/').at(-1)),
    ['stand-in-apiserver.ts', '--secure-port=1'],
  );
  assert.deepEqual(none.resolve({ command: ['/bin/sleep', '1'] }), { argv: ['/bin/sleep', '1'], isStandIn: false });
  assert.equal(none.resolve({ image: 'quay.io/some/image:1' }), undefined);
  assert.equal(none.resolve({ image: 'quay.io/openshift/etcd:v3@sha256:abc', args: ['--x'] })?.isStandIn, true);
  const script = 'exec watch-termination --x -- hyperkube kube-apiserver --openshift-config=/c';
  assert.equal(none.resolve({ command: ['/bin/bash', '-ec'], args: [script] })?.isStandIn, true);
  assert.equal(none.resolve({ command: ['/bin/bash', '-ec'], args: ['sleep 1'] })?.isStandIn, false);

  const binaries = folder(t, 'kube-apiserver', 'etcd');
  const real = new Programs({ rotunda: ROTUNDA, binaries, path: '' });
  const found = real.resolve({ command: ['kube-apiserver'], args: ['--a'] });
  assert.deepEqual(found, { argv: [join(binaries, 'kube-apiserver'), '--a'], isStandIn: false });
  const openshift = real.resolve({ command: ['kube-apiserver', '--openshift-config=/c'] });
  assert.equal(openshift?.isStandIn, true, 'the plain one does not understand that configuration');
  assert.equal(new Programs({ path: binaries, useRealBinaries: false }).find('etcd')?.isStandIn, true);
  assert.equal(imageName('registry:5000/a/b:tag'), 'b');
});

test('a shell script finds the programs on its path', t => {
  const [binaries, shims] = [folder(t, 'etcd'), folder(t)];
  new Programs({ rotunda: ['/bin/echo', "it's"], binaries, path: '' }).writeShims(shims);
  const run = (script: string) =>
    execFileSync('/bin/sh', ['-c', script], { encoding: 'utf8', env: { PATH: `${shims}:/usr/bin:/bin` } }).trim();
  assert.equal(run('cluster-etcd-operator "two words"'), "it's two words");
  assert.equal(run('exec watch-termination --file=/x -- etcd --a "b c"'), 'real --a b c');
});

test('each node of a cluster has an address of its own, always the same', () => {
  const addresses = [0, 1, 2].map(index => nodeAddress('/tmp/a', index, 'linux'));
  assert.equal(new Set(addresses).size, 3);
  assert.match(addresses[0] ?? '', /^127\.\d+\.\d+\.10$/);
  assert.deepEqual(
    [0, 1, 2].map(index => nodeAddress('/tmp/a/', index, 'linux')),
    addresses,
  );
  assert.notEqual(nodeAddress('/tmp/b', 0, 'linux'), addresses[0]);
  assert.equal(nodeAddress('/tmp/a', 7, 'darwin'), '127.0.0.1');
  assert.throws(() => nodeAddress('/tmp/a', 500, 'linux'), /from 0 to 200, found 500/);
});
