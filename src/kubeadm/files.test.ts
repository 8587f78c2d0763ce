import assert from 'node:assert/strict';
import { test } from 'node:test';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS } from './chains.ts';
import { knownFilesOf, nodeFoldersIn } from './files.ts';

const PAIRS = [
  ...KUBEADM_SIGNERS.map(({ base }) => base),
  ...KUBEADM_CHAINS.flatMap(({ target }) => (target.kind === 'pair' ? [target.base] : [])),
];
const KUBECONFIGS = KUBEADM_CHAINS.flatMap(({ target }) => (target.kind === 'kubeconfig' ? [target.file] : []));

/** Every file of a control-plane node, with the folder of certificates in `certificates`. */
function controlPlane(certificates = 'pki/', without: RegExp = /^$/): Set<string> {
  const pairs = PAIRS.flatMap(base => [`${certificates}${base}.crt`, `${certificates}${base}.key`]);
  return new Set([...pairs, `${certificates}sa.pub`, ...KUBECONFIGS].filter(path => !without.test(path)));
}

const expected = (paths: ReadonlySet<string>) =>
  nodeFoldersIn(paths).flatMap(node =>
    knownFilesOf(node)
      .filter(({ isExpected }) => isExpected)
      .map(({ path }) => path),
  );

test("a control-plane node has its leaves, its kubeconfigs but the kubelet's, and three CAs", () => {
  const [node, ...others] = nodeFoldersIn(controlPlane());
  assert.deepEqual(node, { certificates: 'pki', kubeconfigs: '', role: 'control-plane', etcd: 'stacked' });
  assert.deepEqual(others, []);
  assert.equal(expected(controlPlane()).length, 14);
  assert.ok(!expected(controlPlane()).includes('kubelet.conf'));
});

test('what is missing is expected all the same, whichever file it is', () => {
  for (const path of expected(controlPlane())) {
    const left = new Set([...controlPlane()].filter(other => other !== path));
    assert.ok(expected(left).includes(path), path);
  }
});

test('the folder of certificates may have another name, be the whole folder, or be one of several', () => {
  assert.equal(nodeFoldersIn(controlPlane('secret/'))[0]?.kubeconfigs, '');
  const [alone] = nodeFoldersIn(new Set(['ca.crt', 'ca.key', 'apiserver.crt', 'apiserver.key']));
  assert.deepEqual(alone, { certificates: '', kubeconfigs: undefined, role: 'control-plane', etcd: 'external' });
  const two = new Set(['a', 'b'].flatMap(name => [...controlPlane()].map(path => `${name}/${path}`)));
  assert.deepEqual(
    nodeFoldersIn(two).map(({ certificates, kubeconfigs }) => [certificates, kubeconfigs]),
    [
      ['a/pki', 'a'],
      ['b/pki', 'b'],
    ],
  );
});

test('etcd is external without files of a member, and by its manifest where there are manifests', () => {
  const external = controlPlane('pki/', /etcd\/(?:server|peer|healthcheck-client)|etcd\/ca\.key/);
  assert.equal(nodeFoldersIn(external)[0]?.etcd, 'external');
  assert.ok(!expected(external).some(path => path.includes('etcd')));
  const manifests = ['manifests/kube-apiserver.yaml', 'manifests/etcd.yaml'];
  assert.equal(nodeFoldersIn(new Set([...external, ...manifests]))[0]?.etcd, 'stacked');
  assert.equal(nodeFoldersIn(new Set([...controlPlane(), manifests[0] ?? '']))[0]?.etcd, 'external');
});

test("a worker has its CA and nothing else; a folder of other files is none of kubeadm's", () => {
  const worker = new Set(['pki/ca.crt', 'kubelet.conf']);
  assert.deepEqual(nodeFoldersIn(worker)[0]?.role, 'worker');
  assert.deepEqual(expected(worker), ['pki/ca.crt']);
  assert.deepEqual(nodeFoldersIn(new Set(['tls/server.crt', 'tls/ca.crt'])), []);
});
