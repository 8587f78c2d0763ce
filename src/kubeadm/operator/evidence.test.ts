import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../hand-over/ask.ts';
import { issueSigner } from '../../pki/issue.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import type { SignerName } from '../chains.ts';
import { type EvidenceSources, receiptsOf, type SeenNode } from './evidence.ts';
import { ModelNode } from './model-node.ts';

const NOW = new Date('2026-01-01T00:00:00Z');
const keys = seededKeys('evidence');
const make = async (commonName: string) =>
  (await issueSigner({ commonName, lifetimeMs: 1e9, now: NOW, keys, algorithm: 'P-256' })).chain[0]!;
const [OLD, NEXT] = await Promise.all([make('kubernetes'), make('kubernetes@1')]);

function seen(name: string, role: 'control-plane' | 'worker', change: (model: ModelNode) => void = () => {}): SeenNode {
  const model = new ModelNode(
    name,
    role,
    { cas: { ca: NEXT, 'front-proxy-ca': NEXT, 'etcd-ca': NEXT }, keys: { signs: '', accepts: [] } },
    NOW,
  );
  change(model);
  return {
    name,
    node: model.asNode(),
    isControlPlane: role === 'control-plane',
    isReady: true,
    isWaived: false,
    report: model.report(),
    wanted: undefined,
  };
}

const loaded: Answer = { kind: 'loaded', authorities: [NEXT.subject.der] };
const clusterInfo = {
  data: {
    kubeconfig: JSON.stringify({
      clusters: [
        { cluster: { 'certificate-authority-data': Buffer.from(encodeCertificates([NEXT])).toString('base64') } },
      ],
    }),
  },
};

async function missing(family: SignerName, change: Partial<EvidenceSources> = {}): Promise<string[]> {
  const sources: EvidenceSources = {
    nodes: [seen('cp', 'control-plane'), seen('worker', 'worker')],
    servers: [],
    clusterInfo,
    authentication: { data: { 'requestheader-client-ca-file': encodeCertificates([NEXT]) } },
    pods: async () => [],
    ask: async () => loaded,
    ...change,
  };
  const receipts = await receiptsOf(family, NEXT, sources);
  return receipts.filter(({ isLoaded }) => !isLoaded).map(({ verifier, evidence }) => `${verifier}: ${evidence}`);
}

test('with everybody ready nobody is missing', async () => {
  for (const family of ['ca', 'front-proxy-ca', 'etcd-ca'] as const) assert.deepEqual(await missing(family), []);
});

test('a process that began before it has not loaded it', async () => {
  const older = (process: string, family: SignerName) => (model: ModelNode) => {
    model.processes.set(process, { startedAt: NOW, began: { [family]: [OLD] }, keys: {} });
  };
  for (const [process, family, verifier] of [
    ['kube-controller-manager', 'ca', 'kube-controller-manager on cp'],
    ['kube-scheduler', 'ca', 'kube-scheduler on cp'],
    ['kubelet', 'ca', 'kubelet on cp (kubelet.conf)'],
    ['etcd', 'etcd-ca', 'etcd on cp (at its start)'],
    ['kube-apiserver', 'etcd-ca', 'kube-apiserver on cp'],
  ] as const) {
    const nodes = [seen('cp', 'control-plane', older(process, family))];
    assert.deepEqual(await missing(family, { nodes }), [`${verifier}: has not begun with it`]);
  }
});

test('a server that does not name it, or does not answer, has not loaded it', async () => {
  const other: Answer = { kind: 'loaded', authorities: [OLD.subject.der] };
  assert.deepEqual(await missing('front-proxy-ca', { ask: async () => other }), [
    'kube-apiserver on cp: has not loaded it',
  ]);
  const silent: Answer = { kind: 'silent', reason: 'ECONNREFUSED' };
  assert.deepEqual(await missing('front-proxy-ca', { ask: async () => silent }), [
    'kube-apiserver on cp: does not answer at cp:6443: ECONNREFUSED',
  ]);
  assert.equal((await missing('etcd-ca', { ask: async () => ({ kind: 'not-asking' }) })).length, 2);
});

test('a name alone is no evidence where the file holds another one, or the agent is not done', async () => {
  const nodes = [seen('cp', 'control-plane', model => (model.cas = { ...model.cas, 'front-proxy-ca': [OLD] }))];
  assert.deepEqual(await missing('front-proxy-ca', { nodes }), [
    'files of front-proxy-ca on cp: is without it',
    'kube-apiserver on cp: is without it',
  ]);
  const wanted = { round: '1', publishes: [], signers: {}, isSeparate: false, leaves: {} };
  const busy = [{ ...seen('cp', 'control-plane'), wanted }];
  assert.equal((await missing('front-proxy-ca', { nodes: busy })).length, 2);
});

test('whoever joins, and aggregated API servers, find it published', async () => {
  assert.deepEqual(await missing('ca', { clusterInfo: undefined }), ['nodes that join: cluster-info is without it']);
  assert.equal((await missing('front-proxy-ca', { authentication: undefined })).length, 1);
});

test('a node whose agent says nothing is counted', async () => {
  const nodes = [{ ...seen('worker', 'worker'), report: undefined }];
  assert.deepEqual(await missing('ca', { nodes }), [
    'files of ca on worker: its agent says nothing',
    'kubelet on worker: its agent says nothing',
    'kubelet on worker (kubelet.conf): the agent of its node says nothing',
  ]);
});
