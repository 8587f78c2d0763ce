import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { endsUntil } from '../../forecast/ends.ts';
import { daysFromNow, NOW, testClient, testSigner } from '../../inventory/testing.ts';
import { KubeError } from '../../kube/error.ts';
import { recognise } from '../../kubeadm/recognise.ts';
import { ownCertificate } from '../../pki/authority.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import type { Cluster } from '../cluster.ts';
import { UsageError } from '../usage-error.ts';
import { SeenAuthorities } from './authorities.ts';
import type { ClusterObjects } from './cluster-objects.ts';
import { readFolder } from './folder.ts';
import { type Sighting, seenItem } from './item.ts';
import { layoutOf } from './layout.ts';
import { saidLayout } from './layout-flag.ts';
import { lookAtFolder } from './look-at-folder.ts';
import { serversOf } from './servers.ts';
import { isFinding, summaryOf } from './words.ts';

const signer = await testSigner('signer');
const leaf = ownCertificate(await testClient(signer, 'user'));

function sighting(more: Partial<Sighting> = {}): Sighting {
  return { name: 'x', places: ['x'], role: 'target', renewal: 'by-hand', certificates: [leaf], ...more };
}

test('the state of what was seen: over, soon over unless somebody renews it by itself, wrong, missing', () => {
  const state = (more: Partial<Sighting>, now = NOW) => seenItem(sighting(more), now).state;
  assert.equal(state({}, daysFromNow(-0.5)), 'Expiring', '30 days are left, less a moment');
  assert.equal(state({ renewal: 'kubelet' }), 'Good');
  assert.equal(state({ renewal: 'kubelet' }, daysFromNow(28)), 'Expiring', 'a kubelet that is late');
  assert.equal(state({}, daysFromNow(31)), 'Expired');
  assert.equal(state({ renewal: 'kubelet' }, daysFromNow(-2)), 'NeedsAttention', 'not begun');
  assert.equal(state({ mismatch: 'odd' }), 'NeedsAttention');
  assert.equal(state({ certificates: [] }), 'Unusable');
  assert.equal(state({ certificates: [], isMissing: true }), 'Missing');
});

test('what ends unless somebody does something: the first first, and not what a kubelet renews', () => {
  const items = [
    seenItem(sighting({ name: 'late', certificates: signer.chain }), NOW),
    seenItem(sighting({ name: 'soon', renewWith: 'a command' }), NOW),
    seenItem(sighting({ name: 'kubelet', renewal: 'kubelet' }), NOW),
  ];
  assert.deepEqual(
    endsUntil(items, daysFromNow(90)).map(({ name }) => name),
    ['soon', 'late'],
  );
  assert.deepEqual(
    endsUntil(items, daysFromNow(40)).map(({ renewWith }) => renewWith),
    ['a command'],
  );
  assert.deepEqual(endsUntil(items, daysFromNow(1)), []);
});

test('the summary has the worst first, and what most nodes do without is no finding', () => {
  const optional = seenItem(sighting({ certificates: [], isMissing: true, isNormal: true }), NOW);
  assert.equal(isFinding(optional), false);
  const items = [
    seenItem(sighting({ name: 'a' }), NOW),
    seenItem(sighting({ name: 'b', certificates: [] }), NOW),
    optional,
  ];
  const { first, last } = summaryOf(items, ['this'], NOW);
  assert.match(first, /^2 certificates need somebody:\n- b is wrong: .*\n- a ends in 29d\n1 of 3 ends unless/);
  assert.equal(last, 'Not seen from here:\n- this');
});

test('a CA that several places hold is one; another of the same name is told apart', async () => {
  const authorities = new SeenAuthorities();
  authorities.add('ca', 'a', signer.chain);
  authorities.add('ca', 'b', signer.chain);
  authorities.add('ca', 'b', (await testSigner('other')).chain);
  assert.deepEqual(
    authorities.list().map(({ name, places }) => [name, places]),
    [
      ['ca', ['a', 'b']],
      ['ca (2)', ['b']],
    ],
  );
});

test('servers: each address once, those of nodes by name, loopback only where the kubeconfig has it', () => {
  const none = { configuration: undefined, clusterInfo: undefined, rootCas: [], authentication: undefined };
  const pod = (command: string[]) => ({
    metadata: { labels: { component: 'kube-apiserver' } },
    spec: { nodeName: 'a', containers: [{ name: 'x', command }] },
  });
  const addresses = [{ type: 'InternalIP', address: '192.0.2.2' }];
  const objects: ClusterObjects = {
    ...none,
    nodes: [{ metadata: { name: 'b' }, status: { addresses } }],
    pods: [pod(['--advertise-address=192.0.2.1']), pod(['--advertise-address=127.0.0.1'])],
    endpoints: { addressType: 'IPv4', endpoints: [{ addresses: ['192.0.2.1', '192.0.2.3'] }], ports: [{ port: 6443 }] },
    bundles: [],
    unseen: [],
  };
  const found = serversOf({ server: 'https://192.0.2.1:6443', shown: { serverName: 'api' } }, objects);
  assert.deepEqual(
    found.map(({ shows, node, host, port, isOwn }) => [shows, node, host, port, isOwn]),
    [
      ['apiserver', 'a', '192.0.2.1', 6443, false],
      ['apiserver', undefined, '192.0.2.3', 6443, false],
      ['kubelet', 'b', '192.0.2.2', 10_250, false],
    ],
  );
  assert.equal(found[0]?.serverName, 'api');
});

test('the layout is what is said, else what kubeadm left; who may not look is no proof of either', async () => {
  const cluster = (code: number | undefined) => {
    const get = async () => {
      if (code !== undefined) throw new KubeError(code, code === 404 ? 'NotFound' : 'x', 'x');
      return {};
    };
    return { kube: { get }, server: 'https://127.0.0.1:1', shown: {}, namespace: '' } as unknown as Cluster;
  };
  assert.equal(await layoutOf({}, cluster(undefined)), 'kubeadm');
  assert.equal(await layoutOf({}, cluster(404)), 'openshift');
  assert.equal(await layoutOf({}, cluster(403)), 'openshift');
  assert.equal(await layoutOf({ layout: 'kubeadm' }, cluster(404)), 'kubeadm');
  await assert.rejects(layoutOf({}, cluster(401)), KubeError);
  assert.throws(() => saidLayout('other'), UsageError);
});

test('a certificate with names of others is not taken for one of kubeadm', () => {
  assert.equal(recognise(leaf, 'x.crt'), undefined);
  assert.equal(recognise(ownCertificate(signer), 'ca.crt'), undefined);
});

function folder(t: TestContext): string {
  const dir = mkdtempSync(join(tmpdir(), 'rotunda-look-'));
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  return dir;
}

test('a folder that is too deep, a link to its own parent and a name with strange characters end nothing', t => {
  const dir = folder(t);
  const deep = join(dir, ...Array.from({ length: 20 }, () => 'd'));
  mkdirSync(deep, { recursive: true });
  symlinkSync('..', join(dir, 'd/up'));
  writeFileSync(join(dir, 'a\u001bb.crt'), encodeCertificates(signer.chain));
  const { files, links } = readFolder(dir);
  assert.equal(files.length, 1);
  assert.match(links.map(({ problem }) => problem).join(), /16 folders deep/);
  assert.equal(lookAtFolder(dir, NOW).items.length, 1);
});

test('a file that is both certificate and key is one; one of a key alone is nothing to look at', t => {
  const dir = folder(t);
  writeFileSync(join(dir, 'key.pem'), '-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n');
  writeFileSync(join(dir, 'log.txt'), encodeCertificates(signer.chain));
  assert.deepEqual(lookAtFolder(dir, NOW).items, []);
});

test('what our agent keeps from before a hand-over is no node of its own', t => {
  const dir = folder(t);
  const before = join(dir, 'pki/rotunda/before/etc/kubernetes/pki');
  for (const place of [join(dir, 'pki'), before]) {
    mkdirSync(place, { recursive: true });
    for (const name of ['ca.crt', 'front-proxy-ca.crt'])
      writeFileSync(join(place, name), encodeCertificates(signer.chain));
  }
  const names = lookAtFolder(dir, NOW).items.flatMap(({ metadata, state }) =>
    state === 'Missing' ? [] : metadata.name,
  );
  assert.deepEqual(names, ['ca', 'front-proxy-ca']);
});
