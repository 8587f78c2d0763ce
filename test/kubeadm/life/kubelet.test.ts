/**
 * A kubelet whose client certificate has ended does not start any more, and nobody answers it. The agent of its node is a container that
 * goes on without it, and gets it another one: from the CA's key on a control-plane node, through a request elsewhere (spec 80, 5). Where
 * kube-apiserver and etcd have nothing left that others accept, no round reaches the node, and its agent helps it alone.
 */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { days, hours } from '../../../src/kube/duration.ts';
import { LEASES } from '../../../src/kube/resource.ts';
import { renewLeaf } from '../../../src/kubeadm/node/leaf.ts';
import { loadCertificateAndKey } from '../../../src/pki/authority.ts';
import { issueClient } from '../../../src/pki/issue.ts';
import { systemKeys } from '../../../src/pki/keys.ts';
import { encodeCertificates, encodePrivateKey, readCertificates } from '../../../src/pki/pem.ts';
import { rigProblem } from '../rig/rig.ts';
import type { RigNode } from '../rig/rig-node.ts';
import { AdoptedCluster, ROTUNDA_IMAGE } from './adopted-cluster.ts';

const PKI = '/etc/kubernetes/pki';
const FOLDER = '/var/lib/kubelet/pki';
const CURRENT = `${FOLDER}/kubelet-client-current.pem`;
const ENDED = `${FOLDER}/kubelet-client-ended.pem`;
const LIFELINE = ['apiserver', 'apiserver-etcd-client', 'etcd/server', 'etcd/peer'];
/** What docs/kubeadm.md tells a person to do. */
const BY_HAND = [
  'kubeadm certs renew all',
  'rm /var/lib/kubelet/pki/kubelet-client-*',
  'kubeadm kubeconfig user --org system:nodes --client-name system:node:$(hostname) > /etc/kubernetes/kubelet.conf',
  'systemctl restart kubelet',
];
const problem = await rigProblem();

describe('a kubelet whose client certificate has ended', { skip: problem ?? false }, () => {
  let cluster: AdoptedCluster;

  before(async () => {
    cluster = await AdoptedCluster.start({ controlPlanes: 1, workers: 1 });
    await cluster.rotunda('adopt', 'kubeadm', '--image', ROTUNDA_IMAGE, '--yes');
    await cluster.isQuiet();
  });

  after(() => cluster?.close());

  for (const role of ['control-plane', 'worker'] as const) {
    test(`comes back without a person on a ${role}`, async () => {
      const node = cluster.rig.nodes.find(candidate => candidate.role === role) as RigNode;
      await node.kubelet.stop();
      await putEndedCertificate(node);
      const began = Date.now();
      await node.kubelet.start();
      await cluster.eventually('another certificate', async () => {
        const [certificate] = readCertificates(await node.read(CURRENT)).certificates;
        return certificate !== undefined && certificate.notAfter.getTime() > Date.now() + hours(1);
      });
      await cluster.eventually('a kubelet that renews its lease', async () => {
        const lease = await cluster.kube.get(LEASES, { namespace: 'kube-node-lease', name: node.name });
        return Date.parse(lease.spec?.renewTime ?? '') > began;
      });
      const mode = await node.output('stat', '-L', '-c', '%a', CURRENT);
      assert.equal(mode, '600');
      await cluster.isQuiet();
    });
  }

  test('and so does a control plane that nobody can ask any more, with its other certificates', async () => {
    const node = cluster.first;
    const names = [...LIFELINE, 'apiserver-kubelet-client'];
    for (const name of names) await putEndedLeaf(node, name);
    await cluster.eventually('a certificate of kube-apiserver that has not ended', async () => {
      const [certificate] = readCertificates(await node.read(`${PKI}/apiserver.crt`)).certificates;
      return certificate !== undefined && certificate.notAfter.getTime() > Date.now();
    });
    await cluster.isQuiet();
    // Those that are good for now have been followed by usual ones, and what nobody needs to be reached was renewed by a round.
    for (const name of names) {
      const [certificate] = readCertificates(await node.read(`${PKI}/${name}.crt`)).certificates;
      assert.ok(certificate !== undefined && certificate.notAfter.getTime() > Date.now() + hours(24 * 360), name);
    }
    await cluster.isKnownToKubeadm();
  });

  test('after a boot at which everything has ended, a person is needed, with four commands', async () => {
    const node = cluster.first;
    for (const name of LIFELINE) await putEndedLeaf(node, name);
    await putEndedCertificate(node);
    await node.cutPower();
    await cluster.eventually('a kubelet that does not start', async () => {
      return /bootstrap-kubelet\.conf: no such file/.test(await node.log());
    });
    for (const command of BY_HAND) await node.output('sh', '-euc', command);
    await cluster.isQuiet();
    await cluster.isKnownToKubeadm();
  });

  /** What a kubelet would have that was not renewed in time. */
  async function putEndedCertificate(node: RigNode): Promise<void> {
    const read = (file: string) => cluster.first.read(join(PKI, file));
    const { chain, key } = await issueClient({
      keys: systemKeys,
      now: new Date(Date.now() - days(365) - hours(1)),
      lifetimeMs: days(365),
      algorithm: 'P-256',
      signer: loadCertificateAndKey(await read('ca.crt'), await read('ca.key')),
      user: { name: `system:node:${node.name}`, groups: ['system:nodes'] },
    });
    writeFileSync(join(node.root, ENDED), encodeCertificates(chain) + encodePrivateKey(key), { mode: 0o600 });
    await node.output('ln', '-sfn', ENDED, CURRENT);
  }

  /** As kubeadm made it, a year and an hour ago. */
  async function putEndedLeaf(node: RigNode, name: string): Promise<void> {
    const read = (file: string) => node.read(join(PKI, file));
    const ca = name.includes('etcd') ? 'etcd/ca' : 'ca';
    const signer = loadCertificateAndKey(await read(`${ca}.crt`), await read(`${ca}.key`));
    const [leaf] = readCertificates(await read(`${name}.crt`)).certificates;
    assert.ok(leaf !== undefined);
    const now = new Date(Date.now() - days(365) - hours(1));
    const defaultLifetimeMs = days(365);
    const made = await renewLeaf(leaf, {
      keys: systemKeys,
      now,
      from: now,
      signer,
      oldSigner: undefined,
      defaultLifetimeMs,
    });
    const put = (file: string, text: string) => writeFileSync(join(node.root, PKI, file), text);
    put(`${name}.key`, encodePrivateKey(made.key));
    put(`${name}.crt`, encodeCertificates(made.chain));
  }
});
