import assert from 'node:assert/strict';
import { test } from 'node:test';
import { NOW, testClient, testSigner } from '../../inventory/testing.ts';
import { KUBEADM_CHAINS } from '../../kubeadm/chains.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import { type Sighting, seenItem } from '../look/item.ts';
import { drawSvg, drawText } from './draw.ts';
import { around, type CertificateGraph } from './model.ts';
import { seenGraph } from './seen.ts';

const [old, next] = [await testSigner('kubernetes'), await testSigner('kubernetes@2')];
const sighting = (name: string, knownAs: string, { chain }: CertificateAndKey, role: Sighting['role'] = 'target') => {
  const certificates = chain.slice(0, 1);
  return seenItem({ name, knownAs, places: [name], role, renewal: 'by-hand', certificates }, NOW);
};
const lines = ({ edges }: CertificateGraph) => edges.map(({ from, kind, to }) => `${from} ${kind} ${to}`);

test('of a cluster of which nothing can be seen the table is drawn, and it hangs together', () => {
  const graph = seenGraph([]);
  const ids = new Set(graph.nodes.map(({ id }) => id));
  assert.ok(graph.edges.every(({ from, to }) => ids.has(from) && ids.has(to)));
  for (const { name, signer } of KUBEADM_CHAINS)
    assert.ok(lines(graph).includes(`leaf/${name} issued-by signer/${signer}`), name);
  for (const line of [
    'signer/ca contained-in bundle/pki/ca.crt',
    'bundle/pki/ca.crt verified-with process/kubelet',
    'signer/etcd-ca contained-in bundle/pki/etcd/ca.crt',
    'bundle/pki/etcd/ca.crt verified-with process/kube-apiserver',
    'bundle/scheduler.conf verified-with process/kube-scheduler',
    'bundle/kube-public/cluster-info verified-with process/kubeadm join',
    'leaf/apiserver presented-by process/kube-apiserver',
    'leaf/etcd-peer presented-by process/etcd',
  ])
    assert.ok(lines(graph).includes(line), line);
  assert.equal(new Set(lines(graph).filter(line => line.includes('contained-in'))).size, 9);
});

test('what was seen stands in the place of the table: each node, each generation, and who signed which', async () => {
  const graph = seenGraph([
    sighting('ca', 'ca', old, 'signer'),
    sighting('ca (2)', 'ca', next, 'signer'),
    sighting('apiserver@a', 'apiserver', await testClient(old, 'kube-apiserver')),
    sighting('apiserver@b', 'apiserver', await testClient(next, 'kube-apiserver')),
  ]);
  const found = lines(graph);
  assert.ok(found.includes('leaf/apiserver@a issued-by signer/ca'));
  assert.ok(found.includes('leaf/apiserver@b issued-by signer/ca (2)'));
  assert.ok(found.includes('signer/ca (2) contained-in bundle/pki/ca.crt'));
  assert.ok(!found.some(line => line.startsWith('leaf/apiserver issued-by')));
  assert.match(drawText(graph), /^ca \(2\) \(until .*\n(?: .*\n)*? {2}signed apiserver@b \(/m);
  assert.match(drawSvg(graph), /apiserver@b/);
  const near = around(graph, ['apiserver@b'], 1);
  assert.deepEqual(
    near?.nodes.map(({ id }) => id),
    ['signer/ca (2)', 'process/kube-apiserver', 'leaf/apiserver@b'],
  );
});

test('in a folder of several nodes each leaf hangs on the CA beside it; what is missing is not drawn', async () => {
  const missing = seenItem(
    {
      name: 'b/apiserver',
      knownAs: 'apiserver',
      places: [],
      role: 'target',
      renewal: 'by-hand',
      certificates: [],
      isMissing: true,
    },
    NOW,
  );
  const graph = seenGraph([
    sighting('a/ca', 'ca', old, 'signer'),
    sighting('b/ca', 'ca', old, 'signer'),
    sighting('b/scheduler.conf', 'scheduler.conf', await testClient(old, 'system:kube-scheduler')),
    missing,
  ]);
  assert.ok(lines(graph).includes('leaf/b/scheduler.conf issued-by signer/b/ca'));
  assert.ok(!graph.nodes.some(({ id }) => id === 'leaf/b/apiserver'));
});
