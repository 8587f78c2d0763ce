import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ConfigMap, Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { BUNDLE_KEY } from '../certrotation/bundle.ts';
import { days, minutes, seconds } from '../kube/duration.ts';
import { formatRfc3339 } from '../kube/time.ts';
import type { Certificate } from '../pki/certificate.ts';
import { issueSigner } from '../pki/issue.ts';
import { encodeCertificates } from '../pki/pem.ts';
import { seededKeys } from '../pki/seeded-keys.ts';
import { WAIVED } from './names.ts';
import { type RootCaSources, RootCas } from './root-ca.ts';

const NOW = new Date('2026-01-01T12:00:00Z');
const WITHIN_MS = minutes(6.5);

async function ca(commonName: string): Promise<Certificate> {
  const keys = seededKeys(commonName);
  const { chain } = await issueSigner({ commonName, keys, now: NOW, lifetimeMs: days(1), algorithm: 'P-256' });
  return chain[0] as Certificate;
}
const [OLD, NEXT, ELSE] = await Promise.all([ca('signer@1'), ca('signer@2'), ca('else')]);
const PUBLISHED: ConfigMap = { data: { [BUNDLE_KEY]: encodeCertificates([OLD, NEXT]) } };

const ago = (ms: number) => formatRfc3339(new Date(NOW.getTime() - ms));
const node = (name: string, annotations = {}): Node => ({ metadata: { name, annotations } });

/** `kube-root-ca.crt` of a namespace, as somebody wrote it so long ago; undefined: nobody says when. */
function rootCa(namespace: string, agoMs: number | undefined, ...cas: Certificate[]): ConfigMap {
  const managedFields = agoMs === undefined ? undefined : [{ time: ago(days(9)) }, { time: ago(agoMs) }];
  const metadata = { namespace, name: 'kube-root-ca.crt', uid: namespace, ...(managedFields && { managedFields }) };
  return { metadata, data: { 'ca.crt': encodeCertificates(cas) } };
}

const TOKEN = { name: 't', projected: { sources: [{ configMap: { name: 'kube-root-ca.crt' } }] } };
function pod(name: string, nodeName: string, startedMs: number | undefined, more: Partial<Pod['spec']> = {}): Pod {
  const [namespace] = name.split('/');
  return {
    metadata: { namespace: namespace ?? '', name: name.slice(name.indexOf('/') + 1) },
    spec: { nodeName, containers: [], volumes: [TOKEN], ...more },
    status: startedMs === undefined ? {} : { startTime: ago(startedMs) },
  };
}

interface World {
  readonly rootCas: readonly ConfigMap[];
  readonly pods?: readonly Pod[];
  readonly nodes?: readonly Node[];
}

function sources({ rootCas, pods, nodes = [node('a'), node('b')] }: World, now = () => NOW): RootCaSources {
  return {
    now,
    nodes: () => nodes,
    rootCas: async () => rootCas,
    pods: async () => pods ?? assert.fail('nobody asks for pods'),
  };
}

async function said(rootCas: RootCas, published = PUBLISHED): Promise<string[]> {
  const receipts = await rootCas.receipts(published, WITHIN_MS, NEXT);
  return receipts.map(({ verifier, kind, isLoaded, isWaived, evidence }) =>
    [`${verifier} ${kind}`, isLoaded ? 'yes:' : 'no:', evidence, ...(isWaived ? ['(waived)'] : [])].join(' '),
  );
}

const seen = (world: World) => said(new RootCas(sources(world)));

describe('namespaces', () => {
  test('every one has to have the CA, for pods to come too; before that nobody asks for pods', async () => {
    const rootCas = [rootCa('x', 0, OLD, NEXT), ...['z', 'y', '1', '2', '3', '4'].map(name => rootCa(name, 0, OLD))];
    assert.deepEqual(await seen({ rootCas }), [
      'kube-root-ca.crt of all namespaces reported no: is without it in 1, 2, 3, 4, y and 1 more',
    ]);
  });

  test('one that is made from something else is nobody who verifies', async () => {
    const rootCas = [rootCa('x', 0, ELSE), { metadata: { namespace: 'y' }, data: { 'ca.crt': 'no certificate' } }];
    assert.deepEqual(await seen({ rootCas }), []);
    const pods = [pod('x/p', 'a', days(1))];
    assert.deepEqual(await seen({ rootCas: [...rootCas, rootCa('z', days(1), NEXT)], pods }), []);
  });

  test('what is not published is nowhere', async () => {
    const world = new RootCas(sources({ rootCas: [rootCa('x', 0, NEXT)] }));
    assert.match((await said(world, {})).join(), /no: it is not published yet/);
  });

  test('a question that cannot be asked is no evidence, and no error', async () => {
    const refused = new RootCas({ ...sources({ rootCas: [] }), rootCas: () => Promise.reject(new Error('no right')) });
    assert.match((await said(refused)).join(), /no: cannot be looked at: no right/);
  });
});

describe('pods', () => {
  const rootCas = [rootCa('x', minutes(3), OLD, NEXT), rootCa('y', minutes(10), OLD, NEXT)];

  test('began with it, or have had the time to read it again; a node without pods waits for nothing', async () => {
    const young = pod('x/young', 'a', minutes(2));
    const old = pod('x/old', 'a', minutes(4));
    assert.deepEqual(await seen({ rootCas, pods: [young] }), ['pods on a started yes: began with it']);
    assert.deepEqual(await seen({ rootCas, pods: [young, old] }), [
      'pods on a reloaded no: x/old read it again within 6m30s',
    ]);
    assert.deepEqual(await seen({ rootCas, pods: [young, pod('y/old', 'b', minutes(20))] }), [
      'pods on a started yes: began with it',
      'pods on b reloaded yes: have begun with it, or read it again within 6m30s',
    ]);
  });

  test('to the second: one that began as the ConfigMap was written may have the old one', async () => {
    assert.match((await seen({ rootCas, pods: [pod('x/p', 'a', minutes(3))] })).join(), / no: /);
    assert.match((await seen({ rootCas, pods: [pod('x/p', 'a', minutes(3) - seconds(1))] })).join(), / yes: /);
    const at = (ms: number) => seen({ rootCas: [rootCa('x', ms, NEXT)], pods: [pod('x/p', 'a', days(1))] });
    assert.match((await at(WITHIN_MS)).join(), / no: /);
    assert.match((await at(WITHIN_MS + seconds(1))).join(), / yes: /);
  });

  test('that are brought nothing, are over, or have not begun, or whose node is gone, are not waited for', async () => {
    const over = { ...pod('x/over', 'a', days(1)), status: { phase: 'Succeeded', startTime: ago(days(1)) } };
    const pods = [over, pod('x/none', 'a', days(1), { volumes: [] }), pod('x/gone', 'gone', days(1))];
    assert.deepEqual(await seen({ rootCas, pods }), []);
    assert.match((await seen({ rootCas, pods: [pod('x/new', 'a', undefined)] })).join(), /yes: began with it/);
  });

  test('of a node that was waived hide nothing, and hold nothing up (HO-7)', async () => {
    const nodes = [node('a', { [WAIVED]: ago(0) })];
    assert.match((await seen({ rootCas, nodes, pods: [pod('x/p', 'a', days(1))] })).join(), / no: .* \(waived\)$/);
  });

  test('where nobody says since when it is there, the first look counts', async () => {
    let now = NOW;
    const world = { rootCas: [rootCa('x', undefined, NEXT)], pods: [pod('x/p', 'a', days(1))] };
    const looks = new RootCas(sources(world, () => now));
    assert.match((await said(looks)).join(), / no: /);
    now = new Date(NOW.getTime() + WITHIN_MS + 1);
    assert.match((await said(looks)).join(), / yes: /);
  });
});
