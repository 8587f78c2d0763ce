/** The alerts fire when they should and not before, and every query of rules and dashboard is one that Prometheus takes. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { copyFileSync, globSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { dump } from 'js-yaml';
import { dashboard, queriesOf, ruleFiles } from './manifests.ts';
import { findPromtool } from './promtool.ts';

const LIMIT_MS = 60_000;

const promtool = findPromtool();

describe('promtool', { skip: 'missing' in promtool ? promtool.missing : false }, () => {
  let dir: string;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'rotunda-rules-'));
    for (const { file, spec } of ruleFiles()) writeFileSync(join(dir, file), dump(spec));
  });
  after(() => rmSync(dir, { recursive: true }));

  for (const { file } of ruleFiles()) {
    test(`takes ${file}`, () => run('check', 'rules', '--lint-fatal', file));
  }

  for (const path of globSync(join(import.meta.dirname, 'alerts/*.yaml'))) {
    test(`finds that the alerts of ${basename(path)} fire when they should`, () => {
      const name = `test-${basename(path)}`;
      copyFileSync(path, join(dir, name));
      run('test', 'rules', name);
    });
  }

  test('takes the queries of the dashboard', () => {
    const rules = queriesOf(dashboard()).map((expr, index) => ({ record: `dashboard:query:${index}`, expr }));
    writeFileSync(join(dir, 'dashboard.yaml'), dump({ groups: [{ name: 'dashboard', rules }] }));
    run('check', 'rules', '--lint-fatal', 'dashboard.yaml');
  });

  function run(...args: string[]): void {
    const { status, stdout, stderr } = spawnSync('promtool', args, { cwd: dir, encoding: 'utf8', timeout: LIMIT_MS });
    assert.equal(status, 0, stdout + stderr);
  }
});
