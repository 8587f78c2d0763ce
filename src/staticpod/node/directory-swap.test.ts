import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import {
  type DirectoryContent,
  isUpToDate,
  leftovers,
  readDirectory,
  recoverDirectories,
  removeDirectory,
  removeOldUnfinished,
  removeUnfinished,
  replaceDirectory,
} from './directory-swap.ts';
import type { Files } from './files.ts';
import { Crash, type CrashMoment, crashingFiles, failingFiles, temporaryFiles, visibleTree } from './testing.ts';

const TARGET = '/certs/secrets/serving';
const PARENT = '/certs/secrets';

const content = (files: Record<string, string>, mode = 0o600): DirectoryContent =>
  new Map(Object.entries(files).map(([name, text]) => [name, { content: Buffer.from(text), mode }]));

const PAIR_1 = content({ 'tls.crt': 'certificate 1', 'tls.key': 'key 1' });
const PAIR_2 = content({ 'tls.crt': 'certificate 2', 'tls.key': 'key 2' });

async function plainDirectory(files: Files, target: string, wanted: DirectoryContent): Promise<void> {
  await files.makeDirectory(target);
  for (const [name, file] of wanted) await files.createFile(join(target, name), file.content, file.mode);
}

test('a directory takes the place of nothing, of itself, of another one and of a plain one', async t => {
  for (const [name, before] of [
    ['nothing', undefined],
    ['the same', PAIR_1],
    ['another', content({ old: 'x' })],
  ] as const) {
    for (const isPlain of [true, false]) {
      const { files } = await temporaryFiles(t);
      if (before !== undefined && isPlain) await plainDirectory(files, TARGET, before);
      else if (before !== undefined) await replaceDirectory(files, TARGET, before, 'installer');
      await replaceDirectory(files, TARGET, PAIR_1, 'cert-sync');
      const expected = { 'tls.crt': '600 certificate 1', 'tls.key': '600 key 1' };
      assert.deepEqual(await visibleTree(files, TARGET), expected, `${name}, plain ${isPlain}`);
      assert.deepEqual(await leftovers(files, PARENT), []);
      assert.equal((await files.list(PARENT)).length, 2, 'the link and its one generation');
    }
  }
});

test('an object without data becomes an empty directory (T11)', async t => {
  const { files } = await temporaryFiles(t);
  await replaceDirectory(files, TARGET, PAIR_1, 'installer');
  await replaceDirectory(files, TARGET, new Map(), 'installer');
  assert.deepEqual(await visibleTree(files, TARGET), {});
  assert.equal(isUpToDate(await readDirectory(files, TARGET), new Map()), true);
});

test('a name that is a path is refused and nothing changes (T09)', async t => {
  const { files, root } = await temporaryFiles(t);
  await replaceDirectory(files, TARGET, PAIR_1, 'installer');
  for (const name of ['home/../api.crt', '../tls.crt', '..', '.', '', 'a\0b', 'a\\b', 'x'.repeat(300)]) {
    await assert.rejects(replaceDirectory(files, TARGET, content({ [name]: 'x' }), 'installer'), /plain file name/);
  }
  await assert.rejects(replaceDirectory(files, '/certs/secrets/.hidden', PAIR_1, 'installer'), /leading dot/);
  assert.deepEqual(Object.keys(await visibleTree(files, '/')), [
    'certs/secrets/serving/tls.crt',
    'certs/secrets/serving/tls.key',
  ]);
  assert.equal(readFileSync(join(root, TARGET, 'tls.crt'), 'utf8'), 'certificate 1');
});

test('paths of Files never leave the root', async t => {
  const { files } = await temporaryFiles(t);
  await files.createFile('/../../escape', Buffer.from('x'), 0o600);
  assert.deepEqual(Object.keys(await visibleTree(files, '/')), ['escape']);
});

test('a full disk leaves the old content complete and nothing staged', async t => {
  const steps = ['makeDirectory', 'createFile', 'link', 'rename', 'flushDirectory'] as const;
  for (const step of steps) {
    for (const isPlain of [true, false]) {
      const { files } = await temporaryFiles(t);
      if (isPlain) await plainDirectory(files, TARGET, PAIR_1);
      else await replaceDirectory(files, TARGET, PAIR_1, 'installer');
      let seen = 0;
      const failing = failingFiles(files, (name, path) => {
        if (name !== step || path === PARENT) return false;
        // The second of two files, the second of two renames where there are two.
        return step === 'createFile' || (step === 'rename' && isPlain) ? ++seen === 2 : true;
      });
      await assert.rejects(replaceDirectory(failing, TARGET, PAIR_2, 'cert-sync'), /ENOSPC/);
      assert.equal(isUpToDate(await readDirectory(files, TARGET), PAIR_1), true, step);
      assert.deepEqual(await leftovers(files, PARENT), [], step);
    }
  }
  const { files } = await temporaryFiles(t);
  await replaceDirectory(files, TARGET, PAIR_1, 'installer');
  const failing = failingFiles(files, (name, path) => name === 'flushDirectory' && path === PARENT);
  await assert.rejects(replaceDirectory(failing, TARGET, PAIR_2, 'cert-sync'), /ENOSPC/);
  assert.equal(isUpToDate(await readDirectory(files, TARGET), PAIR_2), true, 'the exchange had happened');
  assert.deepEqual(await leftovers(files, PARENT), []);
});

test('a crash at any step leaves one whole pair, and the next run ends what was begun', async t => {
  for (const start of ['nothing', 'plain', 'linked'] as const) {
    for (const moment of ['before', 'halfway', 'after'] satisfies CrashMoment[]) {
      for (let at = 1; ; at++) {
        const { files } = await temporaryFiles(t);
        if (start === 'plain') await plainDirectory(files, TARGET, PAIR_1);
        if (start === 'linked') await replaceDirectory(files, TARGET, PAIR_1, 'installer');
        const dying = crashingFiles(files, at, moment);
        let isOver = false;
        try {
          await replaceDirectory(dying, TARGET, PAIR_2, 'cert-sync');
          isOver = true;
        } catch (error) {
          assert.ok(error instanceof Crash, String(error));
        }
        const where = `${start}, ${moment} step ${at}`;
        await recoverDirectories(files, PARENT);
        const found = await readDirectory(files, TARGET);
        const isWhole = isUpToDate(found, PAIR_1) || isUpToDate(found, PAIR_2);
        assert.ok(isWhole || (start === 'nothing' && found === undefined), `half a pair: ${where}`);
        await removeUnfinished(files, PARENT, 'cert-sync');
        await replaceDirectory(files, TARGET, PAIR_2, 'cert-sync');
        await removeOldUnfinished(files, PARENT, new Date(Date.now() + 3_600_000));
        assert.equal(isUpToDate(await readDirectory(files, TARGET), PAIR_2), true, where);
        const names = (await files.list(PARENT)).map(({ name }) => name);
        assert.equal(names.length, 2, `left behind: ${names.join(', ')}, ${where}`);
        if (isOver) break;
      }
    }
  }
});

test('a reader that opens the directory never sees two generations', async t => {
  const { files, root } = await temporaryFiles(t);
  await replaceDirectory(files, TARGET, PAIR_1, 'installer');
  let isOver = false;
  let reads = 0;
  const reader = (async () => {
    while (!isOver) {
      const linked = await files.linkTarget(TARGET);
      assert.ok(linked !== undefined, 'the directory is never absent');
      try {
        const certificate = readFileSync(join(root, PARENT, linked, 'tls.crt'), 'utf8');
        const key = readFileSync(join(root, PARENT, linked, 'tls.key'), 'utf8');
        assert.equal(certificate.replace('certificate', 'key'), key);
        reads++;
      } catch (error) {
        // This generation is gone; the next one is there.
        assert.equal((error as NodeJS.ErrnoException).code, 'ENOENT');
      }
    }
  })();
  for (let round = 0; round < 100; round++) {
    await replaceDirectory(files, TARGET, round % 2 === 0 ? PAIR_2 : PAIR_1, 'cert-sync');
  }
  isOver = true;
  await reader;
  assert.ok(reads > 0);
});

test('two writers at once: one of them wins and nothing is mixed', async t => {
  const { files } = await temporaryFiles(t);
  await replaceDirectory(files, TARGET, PAIR_1, 'installer');
  for (let round = 0; round < 20; round++) {
    await Promise.all([
      replaceDirectory(files, TARGET, PAIR_1, 'installer'),
      replaceDirectory(files, TARGET, PAIR_2, 'cert-sync'),
    ]);
    const found = await readDirectory(files, TARGET);
    assert.ok(isUpToDate(found, PAIR_1) || isUpToDate(found, PAIR_2));
  }
  await removeUnfinished(files, PARENT, 'installer');
  await removeUnfinished(files, PARENT, 'cert-sync');
  assert.equal((await files.list(PARENT)).length, 2);
});

test('a directory is removed as a unit, plain or linked', async t => {
  for (const isPlain of [true, false]) {
    const { files } = await temporaryFiles(t);
    if (isPlain) await plainDirectory(files, TARGET, PAIR_1);
    else await replaceDirectory(files, TARGET, PAIR_1, 'installer');
    await removeDirectory(files, TARGET, 'cert-sync');
    assert.deepEqual(await files.list(PARENT), []);
    await removeDirectory(files, TARGET, 'cert-sync');
  }
});

test('what counts as up to date: content, surplus files and too open keys', async t => {
  const { files } = await temporaryFiles(t);
  const open = content({ 'tls.crt': 'certificate 1', 'tls.key': 'key 1' }, 0o644);
  await plainDirectory(files, TARGET, open);
  const found = await readDirectory(files, TARGET);
  assert.equal(isUpToDate(found, open), true);
  assert.equal(isUpToDate(found, PAIR_1), false, 'a key that others can read is not as it should be');
  assert.equal(isUpToDate(found, content({ 'tls.crt': 'certificate 1' }, 0o644)), false, 'a surplus file');
  assert.equal(isUpToDate(undefined, new Map()), false);
  await files.makeDirectory(`${TARGET}/more`);
  assert.equal(isUpToDate(await readDirectory(files, TARGET), open), false);
  await replaceDirectory(files, TARGET, PAIR_1, 'cert-sync');
  assert.equal(isUpToDate(await readDirectory(files, TARGET), open), true, 'stricter than asked is fine');
});

test('a file that cannot be read is one that has to be written anew (11.5)', async t => {
  const { files } = await temporaryFiles(t);
  await replaceDirectory(files, TARGET, PAIR_1, 'installer');
  for (const step of ['readFile', 'info'] as const) {
    const broken: Files = {
      ...files,
      [step]: async (path: string) => {
        if (path.endsWith('tls.key')) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' });
        return files[step](path);
      },
    };
    const found = await readDirectory(broken, TARGET);
    assert.equal(found?.get('tls.crt')?.content.toString(), 'certificate 1');
    assert.equal(isUpToDate(found, PAIR_1), false);
  }
});
