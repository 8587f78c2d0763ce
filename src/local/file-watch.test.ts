import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, watch, writeFileSync } from 'node:fs';
import { rename } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { FileWatch } from './file-watch.ts';

const NEVER_MS = 2 ** 30;
const LONGEST_WAIT_MS = 600_000;

/** A file in a directory that is replaced as a whole, and what was last read of it. */
function setUp(t: TestContext, watchDirectory: typeof watch) {
  const root = mkdtempSync(join(tmpdir(), 'rotunda-watch-'));
  const write = (generation: string) => {
    mkdirSync(join(root, generation));
    writeFileSync(join(root, generation, 'tls.crt'), generation);
    symlinkSync(generation, join(root, `${generation}.link`));
    return rename(join(root, `${generation}.link`), join(root, 'serving'));
  };
  const file = join(root, 'serving', 'tls.crt');
  const seen: string[] = [];
  const files = new FileWatch([file], () => seen.push(readFileSync(file, 'utf8')), NEVER_MS, watchDirectory);
  t.after(() => {
    files.stop();
    rmSync(root, { recursive: true, force: true });
  });
  return { write, files, seen };
}

async function until(isSo: () => boolean): Promise<void> {
  for (const end = performance.now() + LONGEST_WAIT_MS; !isSo(); await setImmediate())
    if (performance.now() > end) throw new Error('not in time');
}

test('a directory that is replaced is noticed each time, and so is what changed before anybody watched', async t => {
  const { write, files, seen } = setUp(t, watch);
  await write('a');
  files.start();
  assert.deepEqual(seen, ['a']);
  for (const generation of ['b', 'c']) {
    await write(generation);
    await until(() => seen.at(-1) === generation);
  }
});

test('where others have all the watches of a user it is looked, until there is one again', async t => {
  let isFull = true;
  const full = () => {
    throw Object.assign(new Error('too many open files'), { code: 'EMFILE' });
  };
  const { write, files, seen } = setUp(t, ((...args: Parameters<typeof watch>) =>
    isFull ? full() : watch(...args)) as typeof watch);
  await write('a');
  files.start();
  await write('b');
  await until(() => seen.at(-1) === 'b');
  isFull = false;
  const looks = seen.length;
  await until(() => seen.length > looks);
  await write('c');
  await until(() => seen.at(-1) === 'c');
});
