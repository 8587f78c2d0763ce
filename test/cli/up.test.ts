import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { HttpKube } from '../../src/kube/client.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { NODES, SECRETS } from '../../src/kube/resource.ts';
import { end, firstLine } from '../tools/child.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';
import { inTerminal, main } from './cockpit.ts';

describe('rotunda up', () => {
  test('brings up nodes and a rolled-out kube-apiserver, prints one ready line, and stops cleanly', async t => {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-up-'));
    const args = [main, 'up', '--dir', dir, '--control-plane', '1', '--workers', '1', '--rotation-day', '1h'];
    const child: ChildProcess = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => {
      child.kill('SIGKILL');
      rmSync(dir, { recursive: true, force: true, maxRetries: 5 });
    });
    assert.match(await firstLine(child), /^ready: https:\/\/127\.0\.0\.1:\d+, kubeconfig \S+\/kubeconfig(?:, .*)?\n$/);
    const kube = new HttpKube(await loadAccess({ path: join(dir, 'kubeconfig') }));
    const nodes = (await kube.list(NODES)).items.map(({ metadata }) => metadata?.name ?? '').toSorted();
    assert.deepEqual(nodes, ['master-0', 'worker-0']);
    const labelSelector = 'auth.openshift.io/managed-certificate-type=target';
    // Copies carry the label too; the twelve chains are the least there can be.
    assert.ok((await kube.list(SECRETS, { labelSelector })).items.length >= 12);
    await kube.close();
    assert.ok(existsSync(join(dir, 'nodes/master-0/etc/kubernetes/manifests/kube-apiserver-pod.yaml')));
    assert.equal((await end(child, 'SIGINT')).code, 0);
  });

  test('in a terminal: lines that change in place until it is ready, and Ctrl-C ends it', {
    timeout: 2 * PATIENCE_MS,
  }, async t => {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-up-'));
    const args = ['up', '--dir', dir, '--control-plane', '1', '--workers', '0'];
    const running = inTerminal(args, join(dir, 'kubeconfig'));
    t.after(() => {
      running?.child.kill('SIGKILL');
      spawnSync(process.execPath, [main, 'down', '--dir', dir], { timeout: PATIENCE_MS });
      rmSync(dir, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
    });
    if (running === undefined) return t.skip('there is no python3 to make a pseudo-terminal');
    await running.until(/ready: https:\S+, kubeconfig \S+, console http:\S+/);
    // The cursor goes up over the lines of all parts, and they are written again.
    assert.ok(running.text.includes('A\u001b[J'), 'lines are erased');
    assert.match(running.text, /\.\.\. kube-apiserver +revision 1 on 0 of 1 nodes/);
    assert.match(running.text, /ok {2}machine-config +1 of 1 nodes have the config of their pool/);
    running.child.stdin?.write('\u0003');
    await running.end();
    assert.match(running.text, /stopping\r?\n/);
  });

  test('contradictory flags: one clear line, exit code 1', () => {
    const { status, stderr } = spawnSync(process.execPath, [main, 'up', '--control-plane', '0'], {
      encoding: 'utf8',
      timeout: PATIENCE_MS,
    });
    assert.deepEqual([status, stderr], [1, 'error: --control-plane must be a number from 1 to 9, found "0"\n']);
  });
});
