import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { test } from 'node:test';
import { FolderInUse, holdFolder } from './holder.ts';

test('a folder has one holder at a time, and its holders have one name', t => {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-holder-'));
  t.after(() => rmSync(dir, { recursive: true }));
  const first = holdFolder(dir);
  assert.throws(() => holdFolder(dir), FolderInUse);
  first.release();
  const second = holdFolder(dir);
  t.after(() => second.release());
  assert.equal(second.identity, first.identity);
});
