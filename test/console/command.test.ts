/** `rotunda console` as a process: its one line, its link, its end, and what it says to bad input. */
import assert from 'node:assert/strict';
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { after, before, describe, test } from 'node:test';
import { type Api, startApi } from '../../src/api/api.ts';
import { end, ended, firstLine } from '../tools/child.ts';

const main = new URL('../../src/cli/main.ts', import.meta.url).pathname;

async function run(...args: readonly string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, [main, 'console', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const [stdout, stderr, { code }] = await Promise.all([text(child.stdout), text(child.stderr), ended(child)]);
  return { status: code, stdout, stderr };
}

describe('rotunda console', () => {
  let dir = '';
  let api: Api;

  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-console-'));
    api = await startApi({ dir });
  });

  after(async () => {
    await api.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const start = (...args: readonly string[]): ChildProcess =>
    spawn(process.execPath, [main, 'console', '--kubeconfig', join(dir, 'kubeconfig'), ...args], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });

  test('prints one line with a link that logs in once, and ends when told to', async t => {
    const child = start();
    t.after(() => child.kill('SIGKILL'));
    const line = await firstLine(child);
    const [, url, link] =
      /^ready: (http:\/\/127\.0\.0\.1:\d+), log in once with \1\/#login=([\w-]{43})\n$/.exec(line) ?? [];
    assert.ok(url !== undefined && link !== undefined, line);
    const logIn = () =>
      fetch(`${url}/api/login`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ link }),
      });
    const first = await logIn();
    assert.equal(first.status, 200);
    assert.equal(((await first.json()) as { user: string }).user, 'system:admin');
    assert.equal((await logIn()).status, 401);
    assert.deepEqual(await end(child), { code: 0, signal: null });
  });

  for (const [what, args, code, message] of [
    [
      'another address without TLS',
      ['--host', '0.0.0.0'],
      1,
      /--host 0\.0\.0\.0 can be reached by others: give --tls-cert and --tls-key/,
    ],
    ['a certificate without its key', ['--tls-cert', 'x'], 1, /--tls-cert and --tls-key go together/],
    ['files that are not there', ['--tls-cert', '/nonexistent/a', '--tls-key', '/nonexistent/b'], 1, /ENOENT/],
    ['a port that is none', ['--port', '70000'], 1, /--port must be a number from 0 to 65535/],
    ['an unknown flag', ['--nonsense'], 1, /unknown option/],
  ] as const) {
    test(`${what}: one line and exit code ${code}`, async () => {
      const { status, stderr, stdout } = await run('--kubeconfig', join(dir, 'kubeconfig'), ...args);
      assert.match(stderr, message);
      assert.equal(status, code);
      assert.equal(stdout, '');
    });
  }

  test('a cluster that does not answer: one line and exit code 1', async () => {
    const other = mkdtempSync(join(tmpdir(), 'rotunda-console-'));
    const gone = await startApi({ dir: other });
    await gone.close();
    const { status, stderr } = await run('--kubeconfig', join(other, 'kubeconfig'));
    rmSync(other, { recursive: true, force: true });
    assert.match(stderr, /^error: cannot reach the cluster at https:\/\/127\.0\.0\.1:\d+\/: .*\n$/);
    assert.equal(status, 1);
  });
});
