import assert from 'node:assert/strict';
import { test } from 'node:test';
import { MemoryKube } from '../kube/memory.ts';
import { handOverModeOf, noteHandOverMode } from './hand-over-mode.ts';
import { CLUSTER, KUBE_API_SERVERS } from './resources.ts';

test('the operator says once how it hands over, and what was there stays', async () => {
  const kube = new MemoryKube();
  const metadata = { ...CLUSTER, annotations: { other: 'stays' } };
  await kube.create(KUBE_API_SERVERS, { metadata, spec: { managementState: 'Managed' } });
  const stored = () => kube.get(KUBE_API_SERVERS, CLUSTER);
  assert.equal(handOverModeOf(await stored()), 'clock', 'upstream says nothing');
  await noteHandOverMode(kube, 'receipts');
  const noted = await stored();
  assert.equal(handOverModeOf(noted), 'receipts');
  assert.equal(noted.metadata?.annotations?.other, 'stays');
  await noteHandOverMode(kube, 'receipts');
  assert.equal((await stored()).metadata?.resourceVersion, noted.metadata?.resourceVersion, 'nothing is written twice');
  await noteHandOverMode(kube, 'clock');
  assert.equal(handOverModeOf(await stored()), 'clock');
});
