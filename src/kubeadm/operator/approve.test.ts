import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import { startEngine } from '../../api/api.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { recordingEvents } from '../../kube/events.ts';
import { CERTIFICATE_SIGNING_REQUESTS } from '../../kube/resource.ts';
import { createCertificateRequest, encodeCertificateRequest } from '../../pki/csr.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { approveRequests, judgeRequest } from './approve.ts';
import { AGENT_USER } from './names.ts';

const SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
const NODE_NAME = 'authentication.kubernetes.io/node-name';
const keys = seededKeys('approve');

async function requestFor(
  commonName: string,
  organizations: readonly string[] = ['system:nodes'],
  dnsNames: readonly string[] = [],
): Promise<string> {
  const key = await keys.generate('P-256');
  const request = await createCertificateRequest({ keys, key, subject: { commonName, organizations }, dnsNames });
  return Buffer.from(encodeCertificateRequest(request)).toString('base64');
}

const asked = async (change: Partial<CertificateSigningRequest['spec']> = {}): Promise<CertificateSigningRequest> => ({
  metadata: { name: 'kubelet-worker-0' },
  spec: {
    request: await requestFor('system:node:worker-0'),
    signerName: SIGNER,
    usages: ['client auth', 'digital signature'],
    username: AGENT_USER,
    extra: { [NODE_NAME]: ['worker-0'] },
    ...change,
  },
});

test('an agent gets a certificate for the kubelet of its own node, and for nothing else', async () => {
  assert.deepEqual(judgeRequest(await asked()), { is: 'approved', node: 'worker-0' });
  const denied = async (change: Partial<CertificateSigningRequest['spec']>) => {
    const verdict = judgeRequest(await asked(change));
    return verdict.is === 'denied' ? verdict.why : verdict.is;
  };
  assert.match(
    await denied({ request: await requestFor('system:node:cp-0') }),
    /expected the name system:node:worker-0/,
  );
  assert.match(
    await denied({ request: await requestFor('system:node:worker-0', ['system:nodes', 'system:masters']) }),
    /expected the organization system:nodes alone/,
  );
  assert.match(
    await denied({ request: await requestFor('system:node:worker-0', ['system:nodes'], ['api']) }),
    /no host names/,
  );
  assert.match(await denied({ usages: ['client auth', 'server auth'] }), /usages/);
  assert.match(await denied({ usages: ['digital signature'] }), /usages/);
  assert.match(await denied({ extra: {} }), /names no node/);
  assert.match(await denied({ extra: { [NODE_NAME]: ['worker-0', 'cp-0'] } }), /names no node/);
  assert.match(await denied({ request: Buffer.from('x').toString('base64') }), /in PEM/);
});

test('requests of others, or for other signers, or that are decided, are left alone', async () => {
  assert.equal(judgeRequest(await asked({ username: 'system:node:worker-0' })).is, 'not-ours');
  assert.equal(judgeRequest(await asked({ signerName: 'kubernetes.io/kubelet-serving' })).is, 'not-ours');
  const decided = await asked();
  const status = { conditions: [{ type: 'Denied', status: 'True', reason: 'Other' }] };
  assert.equal(judgeRequest({ ...decided, status }).is, 'not-ours');
});

test('the verdict stands in the API, and in an event', async t => {
  const engine = await startEngine();
  t.after(() => engine.close());
  const extra = { [NODE_NAME]: ['worker-0'] };
  const agent = engine.kube.as({
    name: AGENT_USER,
    uid: '',
    groups: ['system:masters', 'system:authenticated'],
    extra,
  });
  const events = recordingEvents();
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  for (const [name, commonName] of [
    ['good', 'system:node:worker-0'],
    ['bad', 'system:node:cp-0'],
  ] as const) {
    const { spec } = await asked({ request: await requestFor(commonName) });
    await agent.create(CERTIFICATE_SIGNING_REQUESTS, {
      metadata: { name },
      spec: { request: spec.request, signerName: SIGNER, usages: ['client auth', 'digital signature'] },
    });
    const request = await engine.kube.get(CERTIFICATE_SIGNING_REQUESTS, { name });
    await approveRequests(name, { kube: engine.kube, clock, events, requests: { get: () => request } });
  }
  const typeOf = async (name: string) =>
    (await engine.kube.get(CERTIFICATE_SIGNING_REQUESTS, { name })).status?.conditions?.[0]?.type;
  assert.deepEqual([await typeOf('good'), await typeOf('bad')], ['Approved', 'Denied']);
  assert.deepEqual(
    events.events.map(({ type, reason }) => `${type} ${reason}`),
    ['Normal KubeletRequestApproved', 'Warning KubeletRequestDenied'],
  );
});
