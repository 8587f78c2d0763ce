/** What `get certs --from` says of folders that kubeadm made, against what `kubeadm certs check-expiration` says (spec 80, 10). */
import assert from 'node:assert/strict';
import { appendFileSync, cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, test } from 'node:test';
import { lookAtFolder } from '../../src/cli/look/look-at-folder.ts';
import type { CertificateItem } from '../../src/inventory/model.ts';
import { eventually } from '../tools/eventually.ts';
import { type Binaries, findBinaries } from './binaries.ts';
import { type ClusterFields, checkExpiration, type KubeadmRoot, kubeadmRoot } from './kubeadm-program.ts';

const binaries = findBinaries(['kubeadm']);
const skip = 'missing' in binaries ? binaries.missing : false;
const ECDSA = { encryptionAlgorithm: 'ECDSA-P256' };

describe('folders that kubeadm made', { skip }, () => {
  const { kubeadm } = binaries as Binaries;
  const roots: string[] = [];
  const made = (cluster: ClusterFields): KubeadmRoot => {
    const found = kubeadmRoot(kubeadm, cluster);
    roots.push(found.root);
    return found;
  };
  /** Keys take time: whoever only takes something away starts from a copy. */
  let usual: KubeadmRoot;
  const copy = (): KubeadmRoot => {
    const root = mkdtempSync(join(tmpdir(), 'rotunda-kubeadm-copy-'));
    roots.push(root);
    cpSync(usual.root, root, { recursive: true });
    return { ...usual, root, folder: join(root, 'etc/kubernetes') };
  };
  before(() => {
    usual = made(ECDSA);
  });
  after(() => {
    for (const root of roots) rmSync(root, { recursive: true, force: true });
  });

  test('as it makes them, with RSA keys', () => {
    const rows = agreed(made({}));
    assert.equal(rows.filter(({ missing }) => !missing).length, 14);
    assert.ok(rows.every(({ external }) => !external));
  });

  test('with ECDSA keys', () => {
    agreed(usual);
    assert.ok(looked(usual).every(({ certificate }) => certificate?.key === 'P-256'));
  });

  test('without the key of the CA: external', () => {
    const folder = copy();
    rmSync(join(folder.folder, 'pki/ca.key'));
    const external = agreed(folder).filter(row => row.external);
    assert.ok(external.some(({ name }) => name === 'apiserver') && external.some(({ name }) => name === 'ca'));
  });

  test('without the key of the CAs of etcd and of front proxies: external', () => {
    const folder = copy();
    for (const key of ['etcd/ca.key', 'front-proxy-ca.key']) rmSync(join(folder.folder, 'pki', key));
    assert.deepEqual(agreed(folder).filter(({ external }) => external).length, 7);
  });

  for (const path of ['pki/apiserver.crt', 'pki/etcd/peer.crt', 'scheduler.conf', 'super-admin.conf']) {
    test(`without ${path}: missing`, () => {
      const folder = copy();
      rmSync(join(folder.folder, path));
      const missing = looked(folder).filter(({ seen }) => seen?.isMissing === true);
      assert.deepEqual(
        missing.map(({ seen }) => seen?.places),
        [[path]],
      );
      agreed(folder);
    });
  }

  test('with a second CA behind the first: the first counts, for both', () => {
    const folder = copy();
    const authority = join(folder.folder, 'pki/ca.crt');
    appendFileSync(authority, readFileSync(join(folder.folder, 'pki/front-proxy-ca.crt')));
    agreed(folder);
  });

  test('after their end', async () => {
    const folder = made({ ...ECDSA, certificateValidityPeriod: '1s' });
    const end = Math.max(...looked(folder).filter(isLeaf).map(endOf));
    await eventually('the end of the leaves', () => Date.now() > end);
    agreed(folder);
    assert.ok(
      looked(folder)
        .filter(isLeaf)
        .every(({ state }) => state === 'Expired'),
    );
  });

  test('with etcd elsewhere: nothing of it is missing', () => {
    const endpoints = ['https://192.0.2.20:2379'];
    const external = { endpoints, caFile: '/e/ca.crt', certFile: '/e/c.crt', keyFile: '/e/c.key' };
    const rows = agreed(made({ ...ECDSA, etcd: { external } }));
    assert.ok(!rows.some(({ name }) => name.includes('etcd')));
  });

  test('with certificates in a folder of another name', () => {
    agreed(made({ ...ECDSA, certificatesDir: '/etc/kubernetes/certificates' }));
  });

  interface Row {
    readonly name: string;
    readonly end: string;
    readonly ca: string;
    readonly external: boolean;
    readonly missing: boolean;
  }

  /** What we say, where kubeadm says the same. */
  function agreed(folder: KubeadmRoot): Row[] {
    const { rows, withKubeconfigs } = checkExpiration(kubeadm, folder);
    const theirs = rows.map(({ name, expirationDate, caName = '', externallyManaged, missing }) => ({
      name,
      end: expirationDate ?? '',
      ca: caName,
      external: externallyManaged,
      missing,
    }));
    const ours = looked(folder)
      .filter(({ metadata: { name } }) => name !== 'kubelet.conf' && (withKubeconfigs || !name.endsWith('.conf')))
      .map(({ metadata: { name }, certificate, seen }) => ({
        name,
        end: certificate === undefined ? '' : `${certificate.notAfter.slice(0, 19)}Z`,
        ca: seen?.isMissing === true ? '' : (seen?.authority ?? ''),
        external: seen?.isExternal ?? false,
        missing: seen?.isMissing ?? false,
      }));
    assert.deepEqual(ours, theirs);
    return ours;
  }

  function looked({ folder }: KubeadmRoot): readonly CertificateItem[] {
    return lookAtFolder(folder, new Date()).items;
  }

  function isLeaf({ role }: CertificateItem): boolean {
    return role === 'target';
  }

  function endOf({ certificate }: CertificateItem): number {
    return Date.parse(certificate?.notAfter ?? '');
  }
});
