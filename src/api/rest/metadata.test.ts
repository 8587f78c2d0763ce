import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { KubeObject } from '../../kube/resource.ts';
import { formatFieldError } from '../schema/field-error.ts';
import { metadataUpdateErrors } from '../schema/metadata.ts';
import type { JsonObject } from '../schema/schema.ts';
import type { Call } from './core.ts';
import { withKeptMetadata } from './metadata.ts';

/** What an update of an object's metadata comes to, and what is wrong with it. */
function updated(given: JsonObject, before: JsonObject): { metadata: KubeObject['metadata']; errors: string[] } {
  const call = { kind: { namespaced: false }, namespace: '' } as Call;
  const { metadata } = withKeptMetadata(call, { metadata: given }, { metadata: before });
  return { metadata, errors: metadataUpdateErrors(metadata as JsonObject, before).map(formatFieldError) };
}

describe('metadata of an update', () => {
  const live = { name: 'a', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' };
  const leaving = { ...live, deletionTimestamp: '2026-01-02T00:00:00Z', deletionGracePeriodSeconds: 0 };

  test('cannot begin a deletion', () => {
    assert.deepEqual(updated({ ...live, deletionTimestamp: '2026-01-02T00:00:00Z' }, live).errors, [
      'metadata.deletionTimestamp: Invalid value: "2026-01-02T00:00:00Z": field is immutable',
    ]);
  });

  test('cannot end or move a deletion, and need not mention it', () => {
    for (const given of [live, { ...leaving, deletionTimestamp: '2027-01-01T00:00:00Z' }]) {
      const { metadata, errors } = updated(given, leaving);
      assert.deepEqual([metadata?.deletionTimestamp, errors], [leaving.deletionTimestamp, []]);
    }
  });
});
