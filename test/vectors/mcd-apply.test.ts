/**
 * Runs the groups of mcd-vectors.json that say what the agent does to a machine, through the functions it uses. A case whose group
 * or words nobody here knows fails; one that 4.16 gets wrong is compared with what is right.
 *
 * Read in our own way:
 * - `is-enabled` is asked more often than in 4.16 (D-29), so it must be among the commands where a case names it, and no more.
 * - rollback: `rolledBackInOrder` are completed steps. The step that failed also takes back its own half (D-38).
 */
import assert from 'node:assert/strict';
import { fileAdapters } from './mcd/apply-files.ts';
import { osAdapters } from './mcd/apply-os.ts';
import { userAdapters } from './mcd/apply-users.ts';
import { vectorsOf } from './mcd/case.ts';
import { runGroup } from './run-case.ts';

const GROUPS = [
  'write-files',
  'orig-backup',
  'unit-write',
  'delete-stale',
  'dropin-path',
  'kernel-args',
  'running-kargs',
  'tuning-args',
  'ssh-keys',
  'ssh-key-migration',
  'password-hash',
  'extensions',
  'extension-args',
  'update-rollback',
  'reboot-command',
  'os-changes-string',
  'write-to-disk',
  'os-release',
  'rpm-ostree-version',
  'truncate',
  'command-output',
  'valid-path',
  'image-present',
  'check-os',
  'unsupported-packages',
];

const adapters = { ...fileAdapters, ...userAdapters, ...osAdapters };

for (const group of GROUPS) {
  const adapter = adapters[group] ?? (() => assert.fail(`no adapter for cases of group ${group}`));
  runGroup(
    group,
    vectorsOf(group).map(vector => ({ ...vector, name: vector.id, run: (given, expected) => adapter(given, expected, vector) })),
  );
}
