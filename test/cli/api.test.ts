import assert from 'node:assert/strict';
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { HttpKube } from '../../src/kube/client.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { CONFIG_MAPS } from '../../src/kube/resource.ts';
import { end, firstLine } from '../tools/child.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname;

describe('rotunda api', () => {
  test('prints a ready line with a kubeconfig that works, stops cleanly, and goes on where it was', async t => {
    const dir = folder(t);
    const first = await start(t, dir);
    assert.match(first.ready, /^ready: https:\/\/127\.0\.0\.1:\d+, kubeconfig .*\/kubeconfig$/);
    const kube = new HttpKube(await loadAccess({ path: join(dir, 'kubeconfig') }));
    await kube.create(CONFIG_MAPS, { metadata: { namespace: 'default', name: 'kept' }, data: { a: 'b' } });
    await kube.close();
    assert.equal(await first.stop('SIGINT'), 0);

    const second = await start(t, dir);
    const again = new HttpKube(await loadAccess({ path: join(dir, 'kubeconfig') }));
    assert.deepEqual((await again.get(CONFIG_MAPS, { namespace: 'default', name: 'kept' })).data, { a: 'b' });
    await again.close();
    assert.equal(await second.stop('SIGTERM'), 0);
  });

  test('what holds keys is readable by its owner only', async t => {
    const dir = folder(t);
    const api = await start(t, dir);
    for (const file of ['kubeconfig', 'store.sqlite', 'pki']) {
      assert.equal(statSync(join(dir, file)).mode & 0o077, 0, file);
    }
    await api.stop('SIGTERM');
  });

  test('a folder in use and a bad port: one clear line, exit code 1', async t => {
    const dir = folder(t);
    const api = await start(t, dir);
    const second = spawnSync(process.execPath, [main, 'api', '--dir', dir], { encoding: 'utf8', timeout: PATIENCE_MS });
    assert.deepEqual([second.status, second.stdout], [1, '']);
    assert.match(second.stderr, /^error: .*store\.sqlite is in use by another process/);
    await api.stop('SIGTERM');
    const port = spawnSync(process.execPath, [main, 'api', '--port', '70000'], {
      encoding: 'utf8',
      timeout: PATIENCE_MS,
    });
    assert.deepEqual(
      [port.status, port.stderr],
      [1, 'error: --port must be a number from 0 to 65535, found "70000"\n'],
    );
  });
});

async function start(t: TestContext, dir: string) {
  const child: ChildProcess = spawn(process.execPath, [main, 'api', '--dir', dir], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  t.after(() => child.kill('SIGKILL'));
  return {
    ready: (await firstLine(child)).trimEnd(),
    stop: async (signal: NodeJS.Signals): Promise<number | null> => (await end(child, signal)).code,
  };
}

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-api-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}
