/** docs/operations.md and docs/compatibility.md say what is so: metrics, alerts, links, commands and keys exist. */
import assert from 'node:assert/strict';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { buildProgram } from '../../src/cli/program.ts';
import { alerts, ROOT } from './manifests.ts';
import { metricsTable } from './metrics-table.ts';
import { headingAnchors, OPERATIONS, shellLines } from './operations.ts';

test('the table of metrics is that of the code', () => {
  assert.ok(OPERATIONS.includes(metricsTable()), `docs/operations.md lacks:\n${metricsTable()}`);
});

test('every alert has a runbook, and no runbook is for an alert that is gone', () => {
  const [, chapter = ''] = OPERATIONS.split(/^## Alerts$/m);
  const [text = ''] = chapter.split(/^## /m);
  const described = [...text.matchAll(/^### (.+)$/gm)].map(([, heading = '']) => heading);
  assert.deepEqual(
    described.toSorted(),
    alerts()
      .map(({ alert }) => alert)
      .toSorted(),
  );
});

test('links lead somewhere', () => {
  const anchors = headingAnchors();
  const compatibility = readFileSync(join(ROOT, 'docs/compatibility.md'), 'utf8');
  for (const [, target = ''] of (OPERATIONS + compatibility).matchAll(/\]\(([^)]+)\)/g)) {
    if (target.startsWith('#')) assert.ok(anchors.has(target.slice(1)), target);
    else assert.ok(existsSync(join(ROOT, 'docs', target)), target);
  }
});

test('every `rotunda` command in a code block is one, with flags it has', () => {
  const program = buildProgram('rotunda');
  const lines = shellLines().filter(line => line.startsWith('rotunda '));
  assert.ok(lines.length > 20);
  for (const line of lines) {
    const [, name = '', ...words] = line.replace(/ &$/, '').split(/\s+/);
    const command = program.commands.find(known => known.name() === name);
    assert.ok(command, line);
    const flags = words.filter(word => /^--?[a-z]/.test(word)).map(word => word.split('=')[0]);
    for (const flag of flags)
      assert.ok(
        command.options.some(({ long, short }) => long === flag || short === flag),
        `${flag} in: ${line}`,
      );
  }
});

test('docs/compatibility.md names every key under rotunda.dev/ that the code writes, and no other', () => {
  const sources = globSync('src/**/*.ts', { cwd: ROOT, exclude: path => path.endsWith('.test.ts') });
  const used = keysIn(
    sources.map(file => readFileSync(join(ROOT, file), 'utf8')).join('\n'),
    /['`"]rotunda\.dev\/([a-z][\w-]*)/g,
  );
  const told = keysIn(readFileSync(join(ROOT, 'docs/compatibility.md'), 'utf8'), /^\| `rotunda\.dev\/([\w-]+)`/gm);
  assert.deepEqual(told, used);
});

function keysIn(text: string, pattern: RegExp): string[] {
  return [...new Set([...text.matchAll(pattern)].map(([, key = '']) => key))].toSorted();
}
