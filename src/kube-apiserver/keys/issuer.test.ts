import assert from 'node:assert/strict';
import { test } from 'node:test';
import { silentLog } from '../../controller/log.ts';
import { recordingEvents } from '../../kube/events.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { liveObjects } from '../../staticpod/objects.ts';
import { AUTHENTICATIONS, CLUSTER, KUBE_API_SERVERS, type ServiceAccountIssuer } from '../resources.ts';
import { NOW, testClock } from '../testing.ts';
import { DEFAULT_ISSUER, decideIssuers } from './issuer.ts';
import { issuerReconcile } from './issuer-controller.ts';

const CUSTOM = [{ name: 'https://mine' }, { name: 'https://old', expirationTime: '2026-01-01T12:00:00Z' }];

test('only an empty field resets to the default issuer; a missing Authentication changes nothing (spec 20, 8.4)', async () => {
  await assert.rejects(
    issuersAfter(CUSTOM, undefined),
    /^Error: authentications.config.openshift.io\/cluster not found$/,
  );
  assert.deepEqual(decideIssuers(undefined, [{ name: DEFAULT_ISSUER }], NOW), { action: 'keep' });
  assert.deepEqual(await issuersAfter([], undefined), [{ name: DEFAULT_ISSUER }]);
  assert.deepEqual(await issuersAfter(CUSTOM, {}), [{ name: DEFAULT_ISSUER }]);
});

test('an expiration that is null is none', () => {
  const decision = decideIssuers('new', [{ name: 'old', expirationTime: null }], NOW);
  assert.deepEqual(decision.action === 'set' && decision.issuers, [
    { name: 'new' },
    { name: 'old', expirationTime: '2026-01-02T00:00:00Z' },
  ]);
  assert.deepEqual(decideIssuers('old', [{ name: 'old', expirationTime: null }], NOW), {
    action: 'keep',
    until: undefined,
  });
});

async function issuersAfter(before: ServiceAccountIssuer[], spec: object | undefined) {
  const kube = new MemoryKube();
  const status = { serviceAccountIssuers: before };
  await kube.create(KUBE_API_SERVERS, { metadata: CLUSTER, spec: { managementState: 'Managed' }, status });
  if (spec !== undefined) await kube.create(AUTHENTICATIONS, { metadata: CLUSTER, spec });
  const signal = new AbortController().signal;
  const context = { clock: testClock(), events: recordingEvents(), signal, log: silentLog, enqueue() {} };
  const after = async () => (await kube.get(KUBE_API_SERVERS, CLUSTER)).status?.serviceAccountIssuers;
  try {
    await issuerReconcile({ kube, cached: liveObjects(kube) })('', context);
  } catch (error) {
    assert.deepEqual(await after(), before);
    throw error;
  }
  return after();
}
