import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, type TestContext, test } from 'node:test';
import { rootedFiles } from './directory-disk.ts';
import { memoryFiles } from './memory-disk.ts';
import type { HostFiles } from './port.ts';

/** A root with a secret beside it, which nothing may reach. */
async function makeRoot(t: TestContext): Promise<{ root: string; outside: string; files: HostFiles }> {
  const base = await mkdtemp(join(tmpdir(), 'rotunda-files-'));
  t.after(() => rm(base, { recursive: true, force: true }));
  const [root, outside] = [join(base, 'root'), join(base, 'outside')];
  await mkdir(join(root, 'etc'), { recursive: true });
  await mkdir(outside);
  await writeFile(join(outside, 'secret'), 'secret');
  return { root, outside, files: rootedFiles(root) };
}

const bytes = (text: string) => Buffer.from(text);

describe('below a root directory', () => {
  for (const path of ['', 'etc/x', '/etc/../x', '/../x', '/etc//x', '/etc/.', '/etc/x/', '/etc/\0x']) {
    test(`the path ${JSON.stringify(path)} is refused`, async t => {
      const { files } = await makeRoot(t);
      await assert.rejects(files.write(path, bytes('x')), { code: 'outside-root' });
      await assert.rejects(files.read(path), { code: 'outside-root' });
      await assert.rejects(files.removeTree(path), { code: 'outside-root' });
    });
  }

  test('links that lead out are followed as if the root were the root of everything', async t => {
    const { root, outside, files } = await makeRoot(t);
    await symlink(outside, join(root, 'absolute'));
    await symlink('../outside', join(root, 'relative'));
    await symlink('../../../../../../../..', join(root, 'etc', 'up'));
    for (const path of ['/absolute/secret', '/relative/secret']) {
      assert.equal(await files.read(path), undefined);
      await files.write(path, bytes('ours'));
      assert.equal((await files.read(path))?.toString(), 'ours');
      await files.copy(path, `${path}.copy`);
      await files.symlink('/nowhere', `${path}.link`);
      await files.makeDirectory(`${path}.d`);
      await files.chmod(path, 0o600);
      await files.rename(path, `${path}.moved`);
      await files.removeTree(`${path}.d`);
    }
    await files.write('/etc/up/etc/up/found', bytes('at the top'));
    assert.equal(await readFile(join(root, 'found'), 'utf8'), 'at the top');
    assert.equal(await readFile(join(outside, 'secret'), 'utf8'), 'secret');
    assert.deepEqual((await files.list('/absolute'))?.length, 3);
    await files.removeTree('/absolute');
    assert.ok(existsSync(join(outside, 'secret')));
  });

  test('a link at the place of a file is replaced, not written through', async t => {
    const { root, outside, files } = await makeRoot(t);
    await symlink(join(outside, 'secret'), join(root, 'etc', 'file'));
    await files.write('/etc/file', bytes('ours'), { mode: 0o640 });
    assert.equal(await readFile(join(outside, 'secret'), 'utf8'), 'secret');
    assert.deepEqual((await files.stat('/etc/file'))?.kind, 'file');
  });

  test('links in a circle end', async t => {
    const { root, files } = await makeRoot(t);
    await symlink('b', join(root, 'a'));
    await symlink('a', join(root, 'b'));
    await assert.rejects(files.read('/a/x'), { code: 'io', message: /symbolic links/ });
  });

  test('pipes and devices are neither read nor replaced', {
    skip: process.getuid?.() !== 0 && 'only root makes devices',
  }, async t => {
    const { root, files } = await makeRoot(t);
    assert.equal(spawnSync('mkfifo', [join(root, 'pipe')]).status, 0);
    assert.equal(spawnSync('mknod', [join(root, 'device'), 'c', '1', '3']).status, 0);
    for (const path of ['/pipe', '/device']) {
      await assert.rejects(files.read(path), { code: 'not-a-file' });
      await assert.rejects(files.write(path, bytes('x')), { code: 'not-a-file' });
      await assert.rejects(files.copy(path, '/copy'), { code: 'not-a-file' });
      assert.equal((await files.stat(path))?.kind, 'other');
    }
  });

  test('a written file has its mode whatever the mask is, keeps what is not said, and leaves nothing beside it', async t => {
    const { root, files } = await makeRoot(t);
    await files.write('/etc/deep/er/file', bytes('one'), { mode: 0o666 });
    assert.equal((await stat(join(root, 'etc/deep/er/file'))).mode & 0o7777, 0o666);
    assert.equal((await stat(join(root, 'etc/deep'))).mode & 0o7777, 0o755);
    await chmod(join(root, 'etc/deep/er/file'), 0o600);
    await files.write('/etc/deep/er/file', bytes('two'));
    assert.equal((await files.stat('/etc/deep/er/file'))?.mode, 0o600);
    assert.deepEqual(await files.list('/etc/deep/er'), ['file']);
    await files.write(`/etc/${'n'.repeat(255)}`, bytes('long name'));
    await files.write('/etc/line\nfeed', bytes('odd name'));
    assert.deepEqual(await files.list('/etc'), ['deep', 'line\nfeed', 'n'.repeat(255)]);
  });

  test('temporary files of a write that was killed are found by its path', async t => {
    const { root, files } = await makeRoot(t);
    await writeFile(join(root, 'etc', '.file.rotunda-0123456789ab'), 'half');
    await writeFile(join(root, 'etc', '.other.rotunda-0123456789ab'), 'half');
    await files.removeLeftovers?.('/etc/file');
    assert.deepEqual(await files.list('/etc'), ['.other.rotunda-0123456789ab']);
    await writeFile(join(root, 'etc', '.other'), 'of somebody else');
    await files.removeLeftovers?.('/etc/*');
    await files.removeLeftovers?.('/nowhere/*');
    assert.deepEqual(await files.list('/etc'), ['.other']);
  });
});

for (const [name, make] of [
  ['in a directory', async (t: TestContext) => (await makeRoot(t)).files],
  ['in memory', async () => memoryFiles()],
] as const) {
  describe(`files ${name}`, () => {
    test('a file where a directory must be, and the other way round, are refused', async t => {
      const files = await make(t);
      await files.write('/etc/file', bytes('x'));
      await assert.rejects(files.write('/etc/file/below', bytes('x')), { code: 'not-a-directory' });
      await assert.rejects(files.write('/etc', bytes('x')), { code: 'not-a-file' });
      await assert.rejects(files.symlink('/dev/null', '/etc'), { code: 'not-a-file' });
      await assert.rejects(files.read('/etc'), { code: 'not-a-file' });
      await assert.rejects(files.list('/etc/file'), { code: 'not-a-directory' });
      assert.equal((await files.read('/etc/file'))?.toString(), 'x');
    });

    test('what is not there is undefined, and removing it is fine', async t => {
      const files = await make(t);
      assert.deepEqual(
        [await files.read('/no'), await files.stat('/no'), await files.list('/no'), await files.readLink('/no')],
        [undefined, undefined, undefined, undefined],
      );
      await files.remove('/no');
      await files.removeTree('/no');
      await assert.rejects(files.copy('/no', '/other'));
    });

    test('a file that is too large is refused', async t => {
      const files = await make(t);
      await files.write('/etc/file', bytes('12345'));
      await assert.rejects(files.read('/etc/file', 4), { code: 'too-large' });
      assert.equal((await files.read('/etc/file', 5))?.length, 5);
    });

    test('links are replaced, copied as links, and read', async t => {
      const files = await make(t);
      await files.symlink('/dev/null', '/etc/mask');
      await files.symlink('/etc/other', '/etc/mask');
      await files.copy('/etc/mask', '/etc/copy');
      assert.equal(await files.readLink('/etc/copy'), '/etc/other');
      await files.write('/etc/other', bytes('x'), { mode: 0o600 });
      assert.equal((await files.read('/etc/copy'))?.toString(), 'x');
    });

    test('a watch tells of changes, of files that come, and of parents that go', async t => {
      const files = await make(t);
      await files.write('/etc/a/file', bytes('x'));
      const told = new Set<string>();
      let wake = () => {};
      const controller = new AbortController();
      const paths = ['/etc/a/file', '/etc/b/c/later', '/etc/all/*'];
      const watching = files.watch(
        paths,
        path => {
          told.add(path);
          wake();
        },
        controller.signal,
      );
      const heard = async (path: string, change: () => Promise<unknown>) => {
        told.clear();
        // The first change may come before the watch is there; it is repeated until it is heard.
        while (!told.has(path)) {
          const next = new Promise<void>(resolve => {
            wake = resolve;
          });
          await change();
          await Promise.race([next, new Promise(resolve => setTimeout(resolve, 50))]);
        }
      };
      await heard('/etc/a/file', () => files.write('/etc/a/file', bytes('y')));
      await heard('/etc/b/c/later', () => files.write('/etc/b/c/later', bytes('y')));
      await heard('/etc/all/*', () => files.write('/etc/all/one', bytes('y')));
      await heard('/etc/a/file', () => files.removeTree('/etc/a'));
      await heard('/etc/a/file', () => files.write('/etc/a/file', bytes('z')));
      controller.abort();
      await watching;
    });
  });
}

test('a directory that is moved away is a change of what is below it', async t => {
  const { root, files } = await makeRoot(t);
  await files.write('/etc/a/b/file', bytes('x'));
  const controller = new AbortController();
  const heard = new Promise<string>(resolve => void files.watch(['/etc/a/b/file'], resolve, controller.signal));
  const moving = setInterval(() => {
    const [here, there] = [join(root, 'etc/a'), join(root, 'etc/aside')];
    void (existsSync(here) ? rename(here, there) : rename(there, here)).catch(() => {});
  }, 20);
  assert.equal(await heard, '/etc/a/b/file');
  clearInterval(moving);
  controller.abort();
});
