/** What `npm run check` asks before the unit tests, as tests, so that `npm test` is the whole truth. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { test } from 'node:test';
import { PATIENCE_MS } from '../tools/eventually.ts';

const root = new URL('../..', import.meta.url).pathname;

for (const [what, script] of [
  ['the linter finds nothing, and everything is formatted', 'lint'],
  ['types check', 'types'],
] as const) {
  test(what, () => {
    const { status, stdout, stderr } = spawnSync('npm', ['run', '-s', script], {
      cwd: root,
      encoding: 'utf8',
      timeout: PATIENCE_MS,
    });
    assert.equal(status, 0, stdout + stderr);
  });
}
