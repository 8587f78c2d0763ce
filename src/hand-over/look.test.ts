import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { KUBE_APISERVER_CHAINS } from '../kube-apiserver/chains.ts';
import { kubeApiserverTrust } from '../kube-apiserver/trust.ts';
import type { Certificate } from '../pki/certificate.ts';
import type { Edge, Side, TrustGraph } from '../trust/graph.ts';
import { secret } from '../trust/object.ts';
import { encodeReceipts, NODE_RECEIPTS, type NodeReceipt, signingKey } from '../trust/receipts.ts';
import { type LookSources, lookAtPresenters } from './look.ts';
import { WAIVED } from './names.ts';
import { presentersOf } from './presenters.ts';

const SIGNER = secret('ns', 'signer');
const LEAF = secret('ns', 'leaf');

/** What is looked at of a CA, and of what it has signed. */
const ca = (name: string) =>
  ({
    der: Buffer.from(name),
    subject: { commonName: name },
    subjectKeyId: Buffer.from(name),
  }) as unknown as Certificate;
const leafOf = ({ subjectKeyId }: Certificate, ...dnsNames: string[]) =>
  ({ authorityKeyId: subjectKeyId, dnsNames }) as unknown as Certificate;
const [OLD, NEW, ELSE] = [ca('signer@1'), ca('signer@2'), ca('user')];
const FAMILY = { current: NEW, retiring: [OLD] };

const FILES = ['/host/tls.crt', '/host/tls.key'];
function graphOf(client: Partial<Side>, server: Partial<Side>): TrustGraph {
  const edge: Edge = {
    name: 'edge',
    client: { process: 'client', nodes: 'all', ...client },
    server: { process: 'server', nodes: 'all', endpoint: { url: 'https://<host>:1' }, ...server },
  };
  const uses = [{ process: 'client', setting: '', takes: 'watch' as const }];
  const place = { nodes: 'all', hostDirectory: '/host', directory: '/in', optional: false } as const;
  const files = FILES.map(file => file.slice('/host/'.length));
  return { edges: [edge], flows: [], deliveries: [{ object: LEAF, carrier: 'sync', ...place, files, uses }] };
}
const shows = { presents: { object: LEAF } };
const SERVER = graphOf({}, shows);
const CLIENT = graphOf(shows, {});

function node(name: string, receipts?: readonly NodeReceipt[], annotations: Record<string, string> = {}): Node {
  const said = receipts === undefined ? {} : { [NODE_RECEIPTS]: encodeReceipts(receipts) };
  return { metadata: { name, annotations: { ...said, ...annotations } } };
}
const report = (issuer: Certificate, file = FILES[0] as string): NodeReceipt => ({
  process: 'client',
  file,
  kind: 'on-use',
  cas: [],
  shows: signingKey(issuer),
});

async function seen(graph: TrustGraph, sources: Partial<LookSources>): Promise<string[]> {
  const sights = await lookAtPresenters(
    {
      graph: () => graph,
      leavesOf: () => [LEAF],
      nodes: () => [node('a')],
      isIn: () => true,
      whereIs: (_, { metadata }) => ({ host: metadata?.name ?? '', port: 1 }),
      certificateIn: () => leafOf(NEW, '*.x', 'x.example'),
      look: async () => assert.fail('nobody should be looked at'),
      ...sources,
    },
    SIGNER,
    FAMILY,
  );
  return sights.map(({ verifier, isLoaded, isSeen, isWaived, evidence }) =>
    [`${verifier}:`, isLoaded ? 'new' : isSeen ? 'OLD' : 'unseen', ...(isWaived ? ['waived'] : []), evidence].join(' '),
  );
}

describe('servers show it in a handshake', () => {
  const table: [what: string, shown: Certificate[], expected: string][] = [
    ['a leaf of the signer in use', [leafOf(NEW)], 'new shows a certificate of the signer in use'],
    ['a leaf of an older one', [leafOf(OLD)], 'OLD shows a certificate of signer@1'],
    ["a user's certificate in its place", [leafOf(ELSE)], 'new shows a certificate of somebody else'],
    ['no answer is no evidence', [], 'unseen does not answer at a:1'],
    [
      'a certificate that names no key',
      [{ dnsNames: [] } as unknown as Certificate],
      'unseen shows a certificate that does not say whose it is',
    ],
  ];
  for (const [what, shown, expected] of table) {
    test(what, async () => {
      const look: LookSources['look'] = async ({ serverName }) => {
        assert.equal(serverName, 'x.example', 'by a name that the leaf is for');
        return shown;
      };
      assert.deepEqual(await seen(SERVER, { look }), [`server on a (leaf): ${expected}`]);
    });
  }

  test('where nobody knows for which name, or where it is', async () => {
    assert.match((await seen(SERVER, { certificateIn: () => undefined })).join(), /unseen nobody knows for which name/);
    assert.match((await seen(SERVER, { whereIs: () => undefined })).join(), /unseen its node has no address/);
  });
});

describe('clients show what the agent of their node reports', () => {
  const table: [what: string, receipts: NodeReceipt[] | undefined, expected: string][] = [
    ['the signer in use', [report(NEW)], 'new shows a certificate of the signer in use'],
    ['an older one', [report(OLD)], 'OLD shows a certificate of signer@1'],
    ['another file', [report(NEW, '/other')], 'unseen the agent of its node has seen no certificate of it'],
    [
      'CAs, and nothing that is shown',
      [{ ...report(NEW), shows: undefined }],
      'unseen the agent of its node has seen no certificate of it',
    ],
    ['nothing', undefined, 'unseen the agent of its node reports nothing'],
  ];
  for (const [what, receipts, expected] of table) {
    test(what, async () => {
      assert.deepEqual(await seen(CLIENT, { nodes: () => [node('a', receipts)] }), [`client on a (leaf): ${expected}`]);
    });
  }

  test('every node counts, and a waiver hides nothing', async () => {
    const nodes = [node('a', [report(NEW)]), node('b', undefined, { [WAIVED]: '2026-01-01T00:00:00Z' })];
    assert.deepEqual(await seen(CLIENT, { nodes: () => nodes }), [
      'client on a (leaf): new shows a certificate of the signer in use',
      'client on b (leaf): unseen waived the agent of its node reports nothing',
    ]);
  });
});

test('who shows the leaves of each signer of kube-apiserver, and by which means that is seen', () => {
  const bySigner = Map.groupBy(KUBE_APISERVER_CHAINS, ({ signer }) => signer.name);
  const found = [...bySigner].map(([signer, chains]) => {
    const leaves = chains.map(({ target }) => secret(target.namespace, target.name));
    const said = presentersOf(kubeApiserverTrust(), leaves).map(
      ({ process, object, means }) => `${process} ${object.name} ${means.kind}`,
    );
    return [signer, said.toSorted()];
  });
  assert.deepEqual(Object.fromEntries(found), {
    'aggregator-client-signer': ['front proxy aggregator-client nobody', 'kube-apiserver aggregator-client agent'],
    'kube-apiserver-to-kubelet-signer': ['kube-apiserver kubelet-client agent'],
    'kube-control-plane-signer': [
      'check-endpoints check-endpoints-client-cert-key agent',
      'kube-controller-manager kube-controller-manager-client-cert-key nobody',
      'kube-scheduler kube-scheduler-client-cert-key nobody',
      'node administrator control-plane-node-admin-client-cert-key agent',
    ],
    'loadbalancer-serving-signer': [
      'kube-apiserver external-loadbalancer-serving-certkey look',
      'kube-apiserver internal-loadbalancer-serving-certkey look',
    ],
    'localhost-recovery-serving-signer': ['kube-apiserver localhost-recovery-serving-certkey look'],
    'localhost-serving-signer': ['kube-apiserver localhost-serving-cert-certkey look'],
    'node-system-admin-signer': ['node administrator node-kubeconfigs agent'],
    'service-network-serving-signer': ['kube-apiserver service-network-serving-certkey look'],
  });
});
