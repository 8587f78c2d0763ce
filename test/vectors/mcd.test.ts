/**
 * Runs mcd-vectors.json through the functions the agent uses: what it decides. mcd-apply.test.ts runs what it does to the disk,
 * mcd-certificates.test.ts what it writes from ControllerConfig. A case that says something in words an adapter does not know fails.
 *
 * Cases marked `avoid` are compared with what is right. One more is held to be wrong: ondisk-22 has a unit that should be enabled
 * and is not pass validation. Seed 003 promises that this is verified, and 4.18 does it again; the adapter expects drift of any
 * such case. The cases of config-drift-watch that leave out an option of the monitor cannot be written down in TypeScript: there
 * the adapter has the compiler refuse it.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { GROUPS, vectorsOf } from './mcd/case.ts';
import { runGroup } from './run-case.ts';
import { configAdapters } from './mcd/config.ts';
import { diskAdapters } from './mcd/disk.ts';
import { nodeAdapters } from './mcd/node.ts';

const adapters = { ...configAdapters, ...nodeAdapters, ...diskAdapters };

for (const [group, adapter] of Object.entries(adapters)) {
  runGroup(
    group,
    vectorsOf(group).map(vector => ({ ...vector, name: vector.id, run: (given, expected) => adapter(given, expected, vector) })),
  );
}

test('every group of the file is run by one of the three test files', () => {
  const others = ['mcd-apply', 'mcd-certificates'].map(name =>
    readFileSync(new URL(`${name}.test.ts`, import.meta.url), 'utf8'),
  );
  const isRun = (group: string) => others.some(text => new RegExp(`['"]${group}['"]|^\\s*${group}\\b`, 'm').test(text));
  assert.deepEqual(
    GROUPS.filter(group => !Object.hasOwn(adapters, group) && !isRun(group)),
    [],
  );
});
