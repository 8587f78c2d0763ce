/**
 * Runs etcd-vectors.json through the functions the controllers use: every case by its area, and every row of the
 * certificate table against objects the controllers make. A case whose area or words nobody here knows fails.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { type Adapter, type Case, type Json, requireKnownWords } from './etcd/case.ts';
import { certificateAdapters } from './etcd/certificates.ts';
import { checkRow } from './etcd/cert-table.ts';
import { clientAdapters } from './etcd/client.ts';
import { operandAdapters } from './etcd/operand.ts';
import { quorumAdapters } from './etcd/quorum.ts';
import { signerAdapters } from './etcd/signer.ts';
import { runGroup } from './run-case.ts';

const file = JSON.parse(readFileSync(new URL('etcd-vectors.json', import.meta.url), 'utf8')) as {
  meta: Json;
  certTable: Json[];
  cases: Case[];
};

const adapters: Record<string, Adapter> = {
  ...quorumAdapters,
  ...clientAdapters,
  ...certificateAdapters,
  ...signerAdapters,
  ...operandAdapters,
};

for (const [area, group] of Map.groupBy(file.cases, vector => vector.area)) {
  const adapter = adapters[area];
  runGroup(
    area,
    group.flatMap(vector =>
      vector.version.map(version => ({
        ...vector,
        name: `${vector.id} (${version})`,
        run(given: Json, expected: Json) {
          assert.ok(adapter, `no adapter for cases of area ${area}`);
          requireKnownWords(vector, adapter);
          return adapter.run({ ...vector, given, expected }, version);
        },
      })),
    ),
  );
}

describe('certTable', () => {
  for (const row of file.certTable) {
    for (const version of row.versions) test(`${row.id} (${version})`, () => checkRow(row, version, file.meta));
  }
});
