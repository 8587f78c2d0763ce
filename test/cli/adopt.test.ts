/** `rotunda adopt kubeadm` and `rotunda release kubeadm` as people run them (spec 80, 4); agents and operator are played here. */
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { loadAll } from 'js-yaml';
import { type Api, startApi } from '../../src/api/api.ts';
import { GOOD_REPORT, GOOD_STATUS, KubeadmWorld } from '../../src/cli/adopt/testing.ts';
import { getIfPresent } from '../../src/kube/get.ts';
import { DEPLOYMENTS, type KubeObject, NAMESPACES } from '../../src/kube/resource.ts';
import { eventually } from '../tools/eventually.ts';
import { main, runMain } from './cockpit.ts';

const IMAGE = ['--image', 'registry.example.com/rotunda:1.2.3'];

describe('adopt and release', () => {
  let dir: string;
  let api: Api;
  let world: KubeadmWorld;
  const run = (...args: string[]) => runMain([...args, '--kubeconfig', join(dir, 'kubeconfig')]);
  const isThere = async () => (await getIfPresent(api.kube, NAMESPACES, { name: 'rotunda-pki' })) !== undefined;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-adopt-'));
    api = await startApi({ dir });
    world = await KubeadmWorld.on(api.kube);
  });

  after(async () => {
    await api.close();
    rmSync(dir, { recursive: true, force: true });
  });

  test('without --yes it looks and says; nothing is written', async () => {
    for (const more of [[], ['--dry-run', '--yes']]) {
      const { status, stdout, stderr } = await run('adopt', 'kubeadm', ...IMAGE, ...more);
      assert.equal(status, 0, stderr);
      const lines = stdout.trimEnd().split('\n');
      assert.equal(lines[0], 'This cluster can be adopted: 2 control-plane nodes and 1 other, Kubernetes v1.36.3.');
      assert.match(stdout, /^The next to end is /m);
      assert.equal(lines.at(-1), 'Nothing was written.');
      assert.equal(await isThere(), false);
    }
    const without = await run('adopt', 'kubeadm');
    assert.equal(without.status, 1);
    assert.match(without.stderr, /^error: this cluster cannot be adopted: say --image/);
    assert.match((await run('release', 'kubeadm')).stdout, /^This cluster is not adopted/);
  });

  test('-o yaml prints the objects, the settings among them', async () => {
    const { status, stdout } = await run('adopt', 'kubeadm', ...IMAGE, '-o', 'yaml', '--refresh', '0.5');
    assert.equal(status, 0);
    const objects = loadAll(stdout) as (KubeObject & { data?: object })[];
    assert.deepEqual(
      objects.slice(0, 3).map(({ kind }) => kind),
      ['Namespace', 'Namespace', 'ConfigMap'],
    );
    assert.deepEqual(objects[2]?.data, {
      certificatesDir: '/etc/kubernetes/pki',
      keysOnNodes: 'false',
      refresh: '0.5',
      pods: 'wait',
      publishFrom: 'a',
    });
    assert.match(stdout, /registry\.example\.com\/rotunda:1\.2\.3/);
    assert.equal(await isThere(), false);
  });

  test('Ctrl-C while it waits ends it; the same command goes on, and says when it is done', async () => {
    const args = ['adopt', 'kubeadm', ...IMAGE, '--yes', '--kubeconfig', join(dir, 'kubeconfig')];
    const child = spawn(process.execPath, [main, ...args], { stdio: ['ignore', 'ignore', 'pipe'] });
    let stderr = '';
    child.stderr.setEncoding('utf8').on('data', (part: string) => (stderr += part));
    const ended = new Promise(resolve => child.once('close', resolve));
    await eventually('it waits', async () => stderr.includes('waiting: ') || undefined);
    child.kill('SIGINT');
    assert.equal(await ended, 1);
    assert.match(stderr, /^error: stopped: what was installed stays/m);
    assert.match(stderr, /^DaemonSet rotunda\/kubeadm-agent: created$/m);

    for (const name of ['a', 'b']) await world.reports(name, GOOD_REPORT);
    await world.says(GOOD_STATUS);
    const again = await run('adopt', 'kubeadm', '--yes');
    assert.equal(again.status, 0, again.stderr);
    assert.match(again.stdout, /^Adopted\. all is well$/m);
    assert.doesNotMatch(again.stderr, /created|changed/);
  });

  test('differences are an error with each of them', async () => {
    await world.reports('b', { ...GOOD_REPORT, serviceAccount: undefined });
    await world.says({ ...GOOD_STATUS, adopted: false, differences: ['b has no key in sa.pub: copy it.'] });
    const { status, stderr } = await run('adopt', 'kubeadm', '--yes');
    assert.equal(status, 1);
    assert.match(stderr, /^error: the nodes do not agree.*\n- b has no key in sa\.pub: copy it\.$/m);
    await world.reports('b', GOOD_REPORT);
  });

  test('release says what goes, is refused in a hand-over, and does it with --yes', async () => {
    const families = { ca: { phase: 'Signing', because: 'asked for' } };
    await world.says({ ...GOOD_STATUS, families });
    const refused = await run('release', 'kubeadm', '--yes');
    assert.equal(refused.status, 1);
    assert.match(
      refused.stderr,
      /^error: this cluster cannot be released now:\n- ca is being handed over \(Signing: asked for\)/,
    );
    await api.kube.get(DEPLOYMENTS, { namespace: 'rotunda', name: 'kubeadm-operator' });
    await world.says(GOOD_STATUS);
    const looked = await run('release', 'kubeadm');
    assert.match(looked.stdout, /^This cluster can be released: .*Nothing was written\.\n$/s);
    assert.equal(await isThere(), true);
    const { status, stdout, stderr } = await run('release', 'kubeadm', '--yes');
    assert.equal(status, 0, stderr);
    assert.match(stdout, /^Released\./m);
    assert.equal(await isThere(), false);
    assert.match((await run('release', 'kubeadm', '--yes')).stdout, /^This cluster is not adopted/);
  });
});
