import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { ConfigMap, Pod } from 'kubernetes-types/core/v1.d.ts';
import { minutes } from '../../kube/duration.ts';
import { issueSigner } from '../../pki/issue.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { seededKeys } from '../../pki/seeded-keys.ts';
import { FirstSeen, podReceipts, podTrust } from './older-pods.ts';

const NOW = new Date('2026-01-01T12:00:00Z');
const HAD = '2026-01-01T11:00:00Z';
const keys = seededKeys('pods');
const make = async (commonName: string) =>
  (await issueSigner({ commonName, lifetimeMs: 1e9, now: NOW, keys, algorithm: 'P-256' })).chain[0]!;
const [OLD, NEXT, OTHER] = await Promise.all([make('kubernetes'), make('kubernetes@1'), make('other')]);

const rootCa = (namespace: string, ...cas: (typeof OLD)[]): ConfigMap => ({
  metadata: { namespace, name: 'kube-root-ca.crt', managedFields: [{ time: HAD }] },
  data: { 'ca.crt': encodeCertificates(cas) },
});

const pod = (name: string, startedAt: string, change: Partial<Pod> = {}): Pod => ({
  metadata: {
    namespace: 'shop',
    name,
    ownerReferences: [{ apiVersion: 'apps/v1', kind: 'ReplicaSet', name: 'web', uid: '1', controller: true }],
  },
  spec: {
    nodeName: 'worker-0',
    containers: [{ name: 'c', image: 'registry/web:1' }],
    volumes: [{ name: 'token', projected: { sources: [{ configMap: { name: 'kube-root-ca.crt' } }] } }],
  },
  status: { phase: 'Running', containerStatuses: [{ name: 'c', state: { running: { startedAt } } } as never] },
  ...change,
});

const EARLIER = '2026-01-01T10:00:00Z';
const LATER = '2026-01-01T11:30:00Z';
const trustOf = (pods: readonly Pod[], ...rootCas: ConfigMap[]) =>
  podTrust(pods, rootCas, NEXT, [OLD, NEXT], new FirstSeen(() => NOW));
const said = (pods: readonly Pod[], policy: 'wait' | 'ignore', now = NOW, ...rootCas: ConfigMap[]) =>
  podReceipts(trustOf(pods, ...rootCas), policy, () => false, now).map(
    ({ verifier, isLoaded, evidence }) => `${isLoaded ? 'yes' : 'no'} ${verifier}: ${evidence}`,
  );

test('a pod that began before its namespace had the CA holds older trust, with its owner', () => {
  const { older } = trustOf([pod('web-1', EARLIER), pod('web-2', LATER)], rootCa('shop', OLD, NEXT));
  assert.deepEqual(older, [
    { namespace: 'shop', name: 'web-1', node: 'worker-0', owner: { kind: 'ReplicaSet', name: 'web' } },
  ]);
  assert.deepEqual(said([pod('web-1', EARLIER)], 'wait', NOW, rootCa('shop', OLD, NEXT)), [
    'yes kube-root-ca.crt of all namespaces: have it',
    'no pods on worker-0: shop/web-1 began before it',
  ]);
  assert.equal(said([pod('web-1', EARLIER)], 'ignore', NOW, rootCa('shop', OLD, NEXT)).length, 1);
});

test('one container that was not restarted is enough', () => {
  const both = [EARLIER, LATER].map((startedAt, i) => ({ name: `c${i}`, state: { running: { startedAt } } }) as never);
  const mixed = pod('web-1', LATER, { status: { phase: 'Running', containerStatuses: both } });
  assert.equal(trustOf([mixed], rootCa('shop', OLD, NEXT)).older.length, 1);
});

test('whoever reads it again, is over, or is brought nothing is not waited for', () => {
  const again = pod('a', EARLIER);
  const pods = [
    { ...again, metadata: { ...again.metadata, annotations: { 'rotunda.dev/reads-ca-again': 'true' } } },
    { ...again, spec: { ...again.spec, containers: [{ name: 'c', image: 'registry.k8s.io/kube-proxy:v1.36.3' }] } },
    { ...again, status: { phase: 'Succeeded' } },
    { ...again, spec: { nodeName: 'worker-0', containers: [] } },
  ] as Pod[];
  assert.deepEqual(trustOf(pods, rootCa('shop', OLD, NEXT)).older, []);
  const older = {
    ...again,
    spec: { ...again.spec, containers: [{ name: 'c', image: 'registry.k8s.io/kube-proxy:v1.35.9' }] },
  } as Pod;
  assert.equal(trustOf([older], rootCa('shop', OLD, NEXT)).older.length, 1);
});

test('a namespace without the CA is named; one that is made from something else is nobody’s', () => {
  assert.deepEqual(said([], 'wait', NOW, rootCa('shop', OLD, NEXT), rootCa('late', OLD), rootCa('own', OTHER)), [
    'no kube-root-ca.crt of all namespaces: is without it in late',
  ]);
});

test('kubelets have two minutes to bring it', () => {
  const soon = new Date(Date.parse(HAD) + minutes(1));
  assert.match(said([pod('web-1', EARLIER)], 'ignore', soon, rootCa('shop', OLD, NEXT))[0] ?? '', /^no .*two minutes/);
});
