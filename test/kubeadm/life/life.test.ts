/**
 * The life of a cluster that kubeadm made, on the rig of real parts: adopted without a change, all leaves renewed, every CA handed over
 * and retired, released. Meanwhile a person, pods and kube-apiserver use it all the time, and nobody may be refused; nodes join before,
 * during and after with what kubeadm printed on the first day (spec 80).
 */
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { lookAtFolder } from '../../../src/cli/look/look-at-folder.ts';
import { days } from '../../../src/kube/duration.ts';
import { getIfPresent } from '../../../src/kube/get.ts';
import { CONFIG_MAPS, NAMESPACES, NODES } from '../../../src/kube/resource.ts';
import { CLUSTER_INFO, PKI_NAMESPACE, ROTUNDA_NAMESPACE } from '../../../src/kubeadm/names.ts';
import { type LeafSight, NODE_REPORT, reportOf } from '../../../src/kubeadm/report.ts';
import { issueSigner } from '../../../src/pki/issue.ts';
import { systemKeys } from '../../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../../../src/pki/pem.ts';
import { rigProblem } from '../rig/rig.ts';
import type { RigNode } from '../rig/rig-node.ts';
import { AdoptedCluster, ROTUNDA_IMAGE, tell } from './adopted-cluster.ts';
import { ClusterLoad } from './cluster-load.ts';

const USUAL = '0.666';
const CAS = ['ca', 'front-proxy-ca', 'etcd-ca'] as const;
const FILES = { ca: 'ca.crt', 'front-proxy-ca': 'front-proxy-ca.crt', 'etcd-ca': 'etcd/ca.crt' } as const;
/** The last one of several joins in the middle of a hand-over. */
const controlPlanes = Number(process.env.ROTUNDA_CONTROL_PLANES ?? 1);
const problem = await rigProblem();

describe('the life of a cluster that kubeadm made', { skip: problem ?? false }, () => {
  let cluster: AdoptedCluster;
  let load: ClusterLoad;
  /** A new CA for etcd restarts kube-apiserver; where there is one, nobody answers meanwhile. */
  let wasAway = false;
  const printed: Partial<Record<'worker' | 'control-plane', string[]>> = {};

  before(async () => {
    cluster = await AdoptedCluster.start({ controlPlanes: Math.max(1, controlPlanes - 1), workers: 1 });
    printed.worker = await cluster.rig.joinCommand('worker');
    if (controlPlanes > 1) printed['control-plane'] = await cluster.rig.joinCommand('control-plane');
    load = await ClusterLoad.start(cluster);
  });

  after(async () => {
    await load?.stop();
    if (load !== undefined) tell(await load.sum());
    await cluster?.close();
  });

  test('the CA of somebody else on one control-plane node keeps the cluster from being adopted, and nothing is written', {
    skip: controlPlanes < 3 && 'needs ROTUNDA_CONTROL_PLANES=3',
  }, async () => {
    const node = cluster.controlPlane[1] as RigNode;
    const paths = ['crt', 'key'].map(end => join(node.root, '/etc/kubernetes/pki', `front-proxy-ca.${end}`));
    const own = paths.map(path => readFileSync(path));
    const { chain, key } = await issueSigner({
      keys: systemKeys,
      now: new Date(),
      commonName: 'front-proxy-ca',
      lifetimeMs: days(3650),
      algorithm: 'RSA-2048',
    });
    [encodeCertificates(chain), encodePrivateKey(key)].forEach((text, at) => writeFileSync(paths[at] ?? '', text));
    const files = await cluster.files();
    await assert.rejects(
      cluster.rotunda('adopt', 'kubeadm', '--image', ROTUNDA_IMAGE, '--yes'),
      /the nodes do not agree; nothing was copied.*\n- front-proxy-ca\.crt is not the same on cp-0 and cp-1: /,
    );
    assert.equal(await cluster.files(), files);
    paths.forEach((path, at) => writeFileSync(path, own[at] ?? ''));
    await load.refusedNobody();
  });

  test('adopting changes no file, and a second time nothing at all', async () => {
    const [files, expirations] = [await cluster.files(), await cluster.expirations()];
    const output = await cluster.rotunda('adopt', 'kubeadm', '--image', ROTUNDA_IMAGE, '--pods', 'restart', '--yes');
    assert.match(output, /adopted/i);
    assert.equal(await cluster.files(), files);
    await cluster.rotunda('adopt', 'kubeadm', '--yes');
    assert.equal(await cluster.files(), files);
    assert.deepEqual((await cluster.status()).differences, []);
    assert.deepEqual(await cluster.expirations(), expirations);
    await cluster.isKnownToKubeadm();
  });

  for (const time of ['', ' once more']) {
    test(`all leaves are renewed${time}, one control-plane node after the other, and are what kubeadm expects`, async () => {
      const before = await cluster.leaves();
      await cluster.rotunda('adopt', 'kubeadm', '--refresh', refreshBy(before), '--yes');
      await cluster.eventually('all leaves of control-plane nodes to be others', async () => {
        const now = await cluster.leaves();
        return [...before].every(
          ([name, { digest }]) => name.endsWith('kubelet.conf') || now.get(name)?.digest !== digest,
        );
      });
      await cluster.rotunda('adopt', 'kubeadm', '--refresh', USUAL, '--yes');
      await cluster.isQuiet();
      await cluster.isKnownToKubeadm();
      await load.refusedNobody();
    });
  }

  test('kubeadm renews by hand in between: it is taken as it is', async () => {
    await cluster.renewByHand();
    const renewed = await cluster.certificatesOnDisk();
    await cluster.eventually('agents to have seen it', () => cluster.isKnownToKubeadm().then(() => true));
    await cluster.isQuiet();
    assert.equal(await cluster.certificatesOnDisk(), renewed);
    await load.refusedNobody();
  });

  test('a hand-over of the CA that is taken back leaves every file as it was', async () => {
    const files = await cluster.files();
    await cluster.rotunda('rotate', 'ca', '--yes', '--no-follow');
    await cluster.eventually('both CAs on the first node', async () => (await cluster.casIn(FILES.ca)).length === 2);
    await cluster.rotunda('rotate', 'ca', '--take-back', '--yes');
    await cluster.isQuiet();
    assert.equal(await cluster.files(), files);
    await load.refusedNobody();
  });

  test('nodes join in the middle of a hand-over with a command from before it, and somebody renews by hand', async () => {
    await cluster.rotunda('rotate', 'ca', '--yes', '--no-follow');
    await cluster.eventually('both CAs for those who join', async () => {
      const info = await cluster.kube.get(CONFIG_MAPS, CLUSTER_INFO);
      const [, data = ''] = /certificate-authority-data: (\S+)/.exec(info.data?.kubeconfig ?? '') ?? [];
      return (await cluster.status()).families.ca?.phase === 'Distributing' && beginsIn(data) === 2;
    });
    await cluster.renewByHand();
    await cluster.rig.join('worker', printed.worker);
    if (printed['control-plane'] !== undefined) await cluster.rig.join('control-plane', printed['control-plane']);
    assert.equal((await cluster.status()).families.ca?.phase, 'Distributing');
  });

  for (const ca of CAS) {
    test(`a new ${ca} is handed over, and kubeadm knows it`, async () => {
      const known = await cluster.casIn(FILES[ca]);
      // The CA is on its way since nodes joined.
      const old = known[0];
      await cluster.rotunda('rotate', ca, '--yes');
      const both = await cluster.casIn(FILES[ca]);
      assert.equal(both.length, 2);
      assert.notEqual(both[0]?.subject.commonName, old?.subject.commonName);
      assert.ok(both[1]?.der.equals(old?.der ?? Buffer.of()));
      await cluster.isQuiet();
      await cluster.isKnownToKubeadm();
      wasAway ||= ca === 'etcd-ca' && controlPlanes === 1;
      await load.refusedNobody({ wasAway });
    });
  }

  test('a node joins after it with the command from before', async () => {
    const node = await cluster.rig.join('worker', printed.worker);
    await cluster.isQuiet();
    const report = reportOf(await cluster.kube.get(NODES, { name: node.name }));
    const [first] = await cluster.casIn(FILES.ca);
    assert.equal(report?.signers.ca?.cas.length, 2);
    assert.match(first?.subject.commonName ?? '', /^kubernetes@\d+$/);
    await load.refusedNobody({ wasAway });
  });

  test('the CAs before leave when somebody says so, and nobody is refused', async () => {
    await cluster.endJoins();
    for (const ca of CAS) {
      await cluster.rotunda('rotate', ca, '--retire', '--yes');
      await cluster.isQuiet();
      assert.equal((await cluster.casIn(FILES[ca])).length, 1);
    }
    await cluster.isKnownToKubeadm();
    await load.refusedNobody({ wasAway });
  });

  test('released, it is a cluster of kubeadm as on the first day', async () => {
    const certificates = await cluster.certificatesOnDisk();
    await cluster.rotunda('release', 'kubeadm', '--yes');
    assert.equal(await cluster.certificatesOnDisk(), certificates);
    for (const name of [ROTUNDA_NAMESPACE, PKI_NAMESPACE]) {
      await cluster.eventually(`namespace ${name} to be gone`, async () => {
        return (await getIfPresent(cluster.kube, NAMESPACES, { name })) === undefined;
      });
    }
    const { items } = await cluster.kube.list(NODES, {});
    assert.deepEqual(
      items.flatMap(({ metadata }) => metadata?.annotations?.[NODE_REPORT] ?? []),
      [],
    );
    const left = await cluster.first.output('sh', '-c', 'find /etc/kubernetes -name "*rotunda*"');
    assert.equal(left, '');
    await cluster.renewByHand();
    for (const [name, rows] of await cluster.expirations()) {
      const { items } = lookAtCopy(cluster.controlPlane.find(node => node.name === name) as RigNode);
      const known = items.filter(({ metadata }) => rows.has(metadata.name));
      assert.ok(known.length > 10);
      for (const { metadata, certificate } of known)
        assert.equal(
          Date.parse(certificate?.notAfter ?? ''),
          Date.parse(rows.get(metadata.name)?.expirationDate ?? ''),
        );
    }
    await load.refusedNobody({ wasAway });
  });
});

/** What `get certs --from` sees: of a copy, because the path to another machine's root is resolved to this one's. */
function lookAtCopy({ root }: RigNode) {
  const folder = mkdtempSync(join(tmpdir(), 'rotunda-kubernetes-'));
  try {
    execFileSync('cp', ['-a', join(root, 'etc/kubernetes'), folder]);
    return lookAtFolder(join(folder, 'kubernetes'), new Date());
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** How many certificates are in a field of a kubeconfig. */
function beginsIn(data: string): number {
  return Buffer.from(data, 'base64').toString().split('BEGIN CERTIFICATE').length - 1;
}

/** With which part of their lives over all of these are due now, and new ones are not for as long as these have been there. */
function refreshBy(leaves: ReadonlyMap<string, LeafSight>): string {
  const made = [...leaves].filter(([name]) => !name.endsWith('kubelet.conf')).map(([, leaf]) => leaf);
  const parts = made.map(({ notBefore, notAfter }) => {
    const [from, to] = [notBefore, notAfter].map(text => Date.parse(text)) as [number, number];
    return (Date.now() - from) / (to - from);
  });
  return Math.min(...parts).toFixed(9);
}
