/** Which programs `up --real` and `bootstrap` run, and what they say when some are missing. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { realPrograms } from '../../src/cli/bootstrap/real-programs.ts';
import { KUBERNETES_VERSION, moduleDirectory, RUNNING_PROGRAMS } from '../../src/local/real/built-programs.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';

const root = new URL('../..', import.meta.url).pathname;
const REQUIRED = RUNNING_PROGRAMS.filter(name => name !== 'kubelet');

test('built once, they are found without a flag', async t => {
  const { env, cache } = machine(t);
  mkdirSync(cache, { recursive: true });
  for (const name of REQUIRED) executable(join(cache, name), '');
  const { binaries } = await withEnv(t, env, () => realPrograms({}));
  assert.deepEqual(binaries, [cache]);
});

test('missing, with Go: what to run, exactly; with --build it is done, and each program is there whole', async t => {
  const { env, cache, bin } = machine(t);
  executable(
    join(bin, 'go'),
    'for word; do [ "$last" = -o ] && out=$word; last=$word; done\necho k8s.io/kubernetes >&2\n: > "$out"; /bin/chmod 755 "$out"',
  );
  for (const words of [['up', '--real'], ['bootstrap']]) {
    const { status, stderr, dir } = rotunda(t, env, ...words);
    assert.equal(status, 1);
    assert.equal(
      stderr,
      `error: a real control plane needs ${REQUIRED.join(', ')}: neither in ${cache} nor on the PATH. ` +
        `Run \`npm run cluster:build\` in ${root.replace(/\/$/, '')} (some minutes, once, into ${cache}), ` +
        'or say --build, or name a folder that has them with --binaries\n',
    );
    assert.equal(existsSync(dir), false, 'nothing was begun');
  }
  await withEnv(t, env, () => realPrograms({ build: true }));
  for (const name of REQUIRED) assert.ok(existsSync(join(cache, name)), name);
  assert.equal(existsSync(join(cache, 'kubelet')), false);
});

test('a build that fails says why, and leaves nothing behind', t => {
  const { env, cache, bin } = machine(t);
  executable(join(bin, 'go'), 'echo "cannot find package" >&2; exit 1');
  const { status, stderr } = rotunda(t, env, 'bootstrap', '--build');
  assert.equal(status, 1);
  assert.match(
    stderr,
    /building etcd, .*\n.*\.\.\. etcd {2}compiling\n(?:.*\n)*error: go build of etcd failed: cannot find package\n$/,
  );
  assert.deepEqual(existsSync(join(cache, 'etcd')), false);
});

test('missing, without Go: that it has to be installed', t => {
  const { env } = machine(t);
  const { status, stderr } = rotunda(t, env, 'up', '--real', '--build');
  assert.equal(status, 1);
  assert.match(stderr, /built with Go, which is not on the PATH: install it, run `npm run cluster:build` in /);
});

test('the version is the one that is pinned', () => {
  const pinned = readFileSync(join(moduleDirectory() ?? '', 'go.mod'), 'utf8');
  assert.ok(pinned.includes(`k8s.io/kubernetes ${KUBERNETES_VERSION}\n`));
});

/** A machine with Node and nothing else. */
function machine(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'rotunda-programs-'));
  t.after(() => rmSync(folder, { recursive: true }));
  const bin = join(folder, 'bin');
  mkdirSync(bin);
  const { KUBEBUILDER_ASSETS: _, ...others } = process.env;
  const path = `${bin}:${dirname(process.execPath)}`;
  const env: NodeJS.ProcessEnv = { ...others, PATH: path, XDG_CACHE_HOME: join(folder, 'cache') };
  return { bin, env, cache: join(folder, 'cache/rotunda/cluster', KUBERNETES_VERSION) };
}

function executable(path: string, script: string): void {
  writeFileSync(path, `#!/bin/sh\n${script}\n`, { mode: 0o755 });
}

function rotunda(t: TestContext, env: NodeJS.ProcessEnv, ...words: string[]) {
  const dir = join(mkdtempSync(join(tmpdir(), 'rotunda-real-')), 'cluster');
  t.after(() => rmSync(dirname(dir), { recursive: true }));
  const argv = [join(root, 'src/cli/main.ts'), ...words, '--dir', dir];
  const { status, stderr } = spawnSync(process.execPath, argv, { encoding: 'utf8', env, timeout: PATIENCE_MS });
  return { status, stderr, dir };
}

async function withEnv<T>(t: TestContext, env: NodeJS.ProcessEnv, work: () => Promise<T>): Promise<T> {
  const before = { ...process.env };
  t.after(() => {
    process.env = before;
  });
  process.env = env;
  return work();
}
