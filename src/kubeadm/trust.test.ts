import assert from 'node:assert/strict';
import { test } from 'node:test';
import { placeOf } from '../trust/graph.ts';
import { KUBEADM_CHAINS } from './chains.ts';
import { readClusterConfiguration } from './cluster-configuration.ts';
import { flagsOf, serversIn } from './static-pods.ts';
import { isPublished, kubeadmTrust } from './trust.ts';

test('every edge says where its sides have what they show and verify with, and how they take a change', () => {
  const graph = kubeadmTrust();
  assert.equal(new Set(graph.edges.map(({ name }) => name)).size, graph.edges.length);
  for (const { name, client, server } of graph.edges) {
    for (const side of [client, server]) {
      if (side.verifiesWith !== undefined) assert.ok(placeOf(graph, side, side.verifiesWith)?.files[0], name);
    }
  }
});

test('every leaf that a process shows is shown on some edge', () => {
  const shown = new Set(
    kubeadmTrust().edges.flatMap(({ client, server }) =>
      [client.presents, server.presents].flatMap(held =>
        typeof held === 'object' && 'file' in held ? [held.file] : [],
      ),
    ),
  );
  const byHand = ['etcd-healthcheck-client', 'super-admin.conf', 'kubelet.conf'];
  for (const { name, target } of KUBEADM_CHAINS.filter(chain => !byHand.includes(chain.name))) {
    const file = target.kind === 'pair' ? `/etc/kubernetes/pki/${target.base}.crt` : `/etc/kubernetes/${target.file}`;
    assert.ok(shown.has(file), name);
  }
});

test('with nothing installed the CA of etcd is in no object; adoption may name one', () => {
  const edge = (graph = kubeadmTrust()) => graph.edges.find(({ name }) => name === 'kube-apiserver to etcd');
  assert.equal(isPublished(edge()?.client.verifiesWith?.object ?? { kind: 'Secret', namespace: '', name: '' }), false);
  const secret = { kind: 'Secret', namespace: 'rotunda-pki', name: 'etcd-ca' } as const;
  const adopted = kubeadmTrust({ ca: secret, 'front-proxy-ca': secret, 'etcd-ca': secret });
  assert.deepEqual(edge(adopted)?.client.verifiesWith?.object, secret);
});

test('ClusterConfiguration: what it says, its defaults, and nothing of texts that are none', () => {
  const read = (fields: string) => readClusterConfiguration(`kind: ClusterConfiguration\n${fields}`);
  assert.deepEqual(read('kubernetesVersion: v1.36.3\n'), {
    kubernetesVersion: 'v1.36.3',
    certificatesDirectory: '/etc/kubernetes/pki',
    controlPlaneEndpoint: undefined,
    etcd: 'stacked',
  });
  assert.equal(read('etcd: {external: {endpoints: [https://etcd:2379]}}\ncertificatesDir: /pki')?.etcd, 'external');
  assert.equal(read('certificatesDir: /pki')?.certificatesDirectory, '/pki');
  for (const other of [undefined, '', ': [', 'kind: Other', '- a'])
    assert.equal(readClusterConfiguration(other), undefined);
});

test('static pods say where they listen', () => {
  const pod = (component: string, ...command: string[]) => ({
    metadata: { labels: { component } },
    spec: { nodeName: 'a', containers: [{ name: component, command: [component, ...command] }] },
    status: { hostIP: '192.0.2.1' },
  });
  const etcd = [
    '--advertise-client-urls=https://192.0.2.1:2379',
    '--initial-advertise-peer-urls=https://[fd00::1]:2380',
  ];
  assert.deepEqual(
    serversIn([pod('kube-apiserver', '--secure-port=7443'), pod('etcd', ...etcd), pod('kube-scheduler')]).map(
      ({ chain, node, host, port }) => `${chain} ${node} ${host} ${port}`,
    ),
    ['apiserver a 192.0.2.1 7443', 'etcd-server a 192.0.2.1 2379', 'etcd-peer a fd00::1 2380'],
  );
  assert.equal(flagsOf(pod('x', '--a=1', '--a=2=3', 'b')).get('a'), '2=3');
  assert.deepEqual(flagsOf({}), new Map());
});
