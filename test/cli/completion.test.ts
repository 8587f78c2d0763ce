import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, test } from 'node:test';
import { completionScript } from '../../src/cli/completion/script.ts';
import { buildProgram } from '../../src/cli/program.ts';

const folder = mkdtempSync(join(tmpdir(), 'rotunda-completion-'));
after(() => rmSync(folder, { recursive: true }));

test('kubectl_complete-rotunda answers the way kubectl asks: words one a line, then the directive', () => {
  const script = join(folder, 'kubectl_complete-rotunda');
  writeFileSync(script, completionScript(buildProgram('rotunda'), 'kubectl'), { mode: 0o755 });
  const answer = (...words: string[]) => {
    const { status, stdout, stderr } = spawnSync(script, words, { encoding: 'utf8' });
    assert.deepEqual([status, stderr], [0, '']);
    return stdout.trimEnd().split('\n');
  };
  assert.deepEqual(answer('regenerate-l'), ['regenerate-leaf', ':0']);
  assert.deepEqual(answer('get', 'si'), ['signers', ':0']);
  assert.deepEqual(answer('get', 'certs', '--sort'), ['--sort-by', ':0']);
  assert.deepEqual(answer('frobnicate', ''), [':0']);
  assert.ok(answer('').includes('simulate'));
  assert.equal(answer().at(-1), ':0');
});
