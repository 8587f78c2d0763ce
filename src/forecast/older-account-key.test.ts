import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { CLUSTER_RECORD, type FamilyStatus, withStatus } from '../kubeadm/cluster-record.ts';
import { CONTROL_PLANE_LABEL } from '../kubeadm/names.ts';
import { olderAccountKey } from './older-account-key.ts';

const [FROM, UNTIL] = [new Date('2026-03-01T00:00:00Z'), new Date('2026-06-01T00:00:00Z')];
const NODES: Node[] = [
  { metadata: { name: 'b', labels: { [CONTROL_PLANE_LABEL]: '' } } },
  { metadata: { name: 'a', labels: { [CONTROL_PLANE_LABEL]: '' } } },
  { metadata: { name: 'w' } },
];

function of(serviceAccount: FamilyStatus | undefined) {
  const status = { adopted: true, differences: [], message: '', waitingFor: [], families: {}, serviceAccount };
  return olderAccountKey({ configMaps: [withStatus({ metadata: CLUSTER_RECORD }, status)], nodes: NODES }, FROM, UNTIL);
}

test('an older key of service accounts leaves at its moment, with the reason and what restarts', () => {
  const older = { phase: 'Retiring', because: 'tokens may be good until then' };
  const restart = (process: string) => ({ kind: 'restart', process, nodes: ['a', 'b'] });
  const reason = 'an older key of service accounts is still accepted: tokens may be good until then';
  const effects = [restart('kube-controller-manager'), restart('kube-apiserver')];
  const event = { at: '2026-05-01T00:00:00Z', change: 'hand-over', reason, effects };
  assert.deepEqual(of({ ...older, leavesAt: '2026-05-01T00:00:00Z' }), { events: [event], notes: [] });
  const [late] = of({ ...older, leavesAt: '2026-02-01T00:00:00Z' }).events;
  assert.equal(late?.at, '2026-03-01T00:00:00Z', 'what is due is now');
});

test('beyond the plan, or without a known moment, it is a note; where no older one is accepted, nothing', () => {
  const older = { phase: 'Retiring', because: 'why' };
  const noted = { events: [], notes: ['an older key of service accounts is still accepted: why'] };
  assert.deepEqual(of({ ...older, leavesAt: '2026-07-01T00:00:00Z' }), noted);
  assert.deepEqual(of(older), noted);
  assert.deepEqual(of({ ...older, phase: 'Signing' }), noted);
  for (const phase of ['Steady', 'Publishing', 'Distributing', 'Waiting'])
    assert.deepEqual(of({ ...older, phase }), { events: [], notes: [] });
  assert.deepEqual(of(undefined), { events: [], notes: [] });
  assert.deepEqual(olderAccountKey({ configMaps: [], nodes: NODES }, FROM, UNTIL), { events: [], notes: [] });
});
