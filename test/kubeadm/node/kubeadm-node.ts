/** A machine in memory on which kubeadm has been at work: its files, and a kubelet that starts what manifests say. */
import { posix } from 'node:path';
import { type MemoryHostOptions, memoryHost } from '../../../src/host/memory.ts';
import type { Host } from '../../../src/host/port.ts';
import { days } from '../../../src/kube/duration.ts';
import type { Kube } from '../../../src/kube/port.ts';
import { SECRETS } from '../../../src/kube/resource.ts';
import { KUBEADM_CHAINS, KUBEADM_SIGNERS, type KubeadmChain, type SignerName } from '../../../src/kubeadm/chains.ts';
import { digestOf } from '../../../src/kubeadm/node/file-text.ts';
import { renewLeaf } from '../../../src/kubeadm/node/leaf.ts';
import { keyDigest } from '../../../src/kubeadm/service-account-keys.ts';
import type { CertificateAndKey } from '../../../src/pki/authority.ts';
import { issueClient, issueSigner } from '../../../src/pki/issue.ts';
import { encodeCertificates, encodePrivateKey } from '../../../src/pki/pem.ts';
import { seededKeys } from '../../../src/pki/seeded-keys.ts';

export const NODE = 'node-a';
export const ADDRESS = '192.0.2.10';
export const PKI = '/etc/kubernetes/pki';
export const KUBELET_PEM = '/var/lib/kubelet/pki/kubelet-client-current.pem';

export type Signers = Readonly<Record<SignerName, CertificateAndKey>>;

/** The CAs of a cluster, the same every time. */
export async function clusterSigners(now: Date): Promise<Signers> {
  const found = {} as Record<SignerName, CertificateAndKey>;
  for (const { name, commonName, validityDays } of KUBEADM_SIGNERS) {
    found[name] = await newSigner(commonName, now, validityDays);
  }
  return found;
}

export async function newSigner(commonName: string, now: Date, validityDays = 3650): Promise<CertificateAndKey> {
  const keys = seededKeys(`ca ${commonName}`);
  return issueSigner({ keys, now, commonName, lifetimeMs: days(validityDays), algorithm: 'P-256' });
}

/** The CAs that are to sign next, with their pairs in Secrets as the operator leaves them. */
export async function publishNext(kube: Kube, now: Date): Promise<Signers> {
  const found = {} as Record<SignerName, CertificateAndKey>;
  for (const { name, commonName } of KUBEADM_SIGNERS) {
    const { chain, key } = (found[name] = await newSigner(`${commonName}@1`, now));
    const data = { 'tls.crt': base64(encodeCertificates(chain)), 'tls.key': base64(encodePrivateKey(key)) };
    const metadata = { namespace: 'rotunda-pki', name: `${name}-next` };
    await kube.create(SECRETS, { metadata, type: 'kubernetes.io/tls', data });
  }
  return found;
}

/** The key that is to sign tokens next, in the Secret of the keys in use as the operator leaves it. */
export async function publishNextKey(kube: Kube): Promise<{ readonly old: TokenKey; readonly next: TokenKey }> {
  const [old, next] = [await tokenKey('first'), await tokenKey('second')];
  const data = { 'sa.key': base64(old.private), 'sa.pub': base64(old.public), 'next-sa.key': base64(next.private) };
  await kube.create(SECRETS, { metadata: { namespace: 'rotunda-pki', name: 'service-account-keys' }, data });
  return { old, next };
}

export interface NodeFilesOptions {
  readonly signers: Signers;
  readonly now: Date;
  readonly role?: 'control-plane' | 'worker';
  readonly leafDays?: number;
  readonly name?: string;
}

/** Fills a host as kubeadm does. */
export async function installNode(host: Host, options: NodeFilesOptions): Promise<void> {
  const { signers, now, role = 'control-plane', leafDays = 365, name = NODE } = options;
  const { files } = host;
  const write = (path: string, text: string, mode = 0o644) => files.write(path, Buffer.from(text), { mode });
  await write('/usr/lib/systemd/system/kubelet.service', '[Install]\nWantedBy=multi-user.target\n');
  await host.services.enable(['kubelet.service']);
  await write('/proc/stat', `cpu 1 2 3\nbtime ${Math.floor(now.getTime() / 1000)}\n`);
  await write('/proc/77/comm', 'kubelet\n');
  await write('/proc/77/stat', kubeletStat(100));
  const ca = encodeCertificates(signers.ca.chain);
  const leaf = (chain: KubeadmChain) => issueLeaf(chain, signers[chain.signer], now, leafDays, name);
  const kubelet = await leaf(chainNamed('kubelet.conf'));
  const dated = '/var/lib/kubelet/pki/kubelet-client-2026-01-01-00-00-00.pem';
  await write(dated, encodeCertificates(kubelet.chain) + encodePrivateKey(kubelet.key), 0o600);
  await files.symlink(dated, KUBELET_PEM);
  await write(
    '/etc/kubernetes/kubelet.conf',
    kubeconfig('kubelet', ca, `client-certificate: ${KUBELET_PEM}\n    client-key: ${KUBELET_PEM}`),
    0o600,
  );
  if (role === 'worker') return write(`${PKI}/ca.crt`, ca);
  for (const { name: signer, base } of KUBEADM_SIGNERS) {
    await write(`${PKI}/${base}.crt`, `# made by kubeadm\n${encodeCertificates(signers[signer].chain)}`);
    await write(`${PKI}/${base}.key`, encodePrivateKey(signers[signer].key), 0o600);
  }
  for (const chain of KUBEADM_CHAINS) {
    if (chain.name === 'kubelet.conf') continue;
    const made = await leaf(chain);
    const [certificate, key] = [encodeCertificates(made.chain), encodePrivateKey(made.key)];
    if (chain.target.kind === 'pair') {
      await write(`${PKI}/${chain.target.base}.crt`, certificate);
      await write(`${PKI}/${chain.target.base}.key`, key, 0o600);
    } else {
      const inside = `client-certificate-data: ${base64(certificate)}\n    client-key-data: ${base64(key)}`;
      await write(`/etc/kubernetes/${chain.target.file}`, kubeconfig(chain.name, ca, inside), 0o600);
    }
  }
  const tokens = await tokenKey('first');
  await write(`${PKI}/sa.key`, tokens.private, 0o600);
  await write(`${PKI}/sa.pub`, tokens.public, 0o600);
  for (const [component, text] of Object.entries(MANIFESTS)) await write(manifest(component), text, 0o600);
}

export interface TokenKey {
  readonly private: string;
  readonly public: string;
  readonly digest: string;
}

export async function tokenKey(seed: string): Promise<TokenKey> {
  const { createPublicKey } = await import('node:crypto');
  const key = await seededKeys(`tokens ${seed}`).generate('P-256');
  return {
    private: encodePrivateKey(key),
    public: createPublicKey(key).export({ format: 'pem', type: 'spki' }).toString(),
    digest: keyDigest(key),
  };
}

export function manifest(component: string): string {
  return `/etc/kubernetes/manifests/${component}.yaml`;
}

export function kubeletStat(ticks: number): string {
  return `77 (kubelet) S ${Array.from({ length: 18 }, () => '0').join(' ')} ${ticks} 0\n`;
}

/** Every file of the host below these folders, by digest, with mode, owner and the time of its last change. */
export async function snapshot({ files }: Host, ...folders: readonly string[]): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  const visit = async (path: string): Promise<void> => {
    const stat = await files.stat(path);
    if (stat?.kind === 'directory') {
      found.set(path, 'directory');
      for (const name of (await files.list(path)) ?? []) await visit(posix.join(path, name));
    } else if (stat?.kind === 'file') {
      const { mode, uid, gid } = stat;
      const at = (await files.modifiedAt(path))?.toISOString();
      found.set(path, `${mode.toString(8)} ${uid}:${gid} ${at} ${digestOf(String(await files.read(path)))}`);
    } else if (stat?.kind === 'symlink') found.set(path, `-> ${await files.readLink(path)}`);
  };
  for (const folder of folders) await visit(folder);
  return found;
}

export function memoryNode(options: MemoryHostOptions = {}) {
  return memoryHost(options);
}

function chainNamed(name: string): KubeadmChain {
  return KUBEADM_CHAINS.find(chain => chain.name === name) as KubeadmChain;
}

/** With the names that kubeadm gives, and one of somebody who wanted more. */
export async function issueLeaf(
  { name, creator }: KubeadmChain,
  signer: CertificateAndKey,
  now: Date,
  leafDays: number,
  node: string,
): Promise<CertificateAndKey> {
  const keys = seededKeys(`leaf ${name} of ${node}`);
  const common = { keys, now, lifetimeMs: days(leafDays), signer, algorithm: 'P-256' } as const;
  const user = creator.kind === 'client' ? creator.user : { name: creator.commonName };
  const client = await issueClient({ ...common, user: { ...user, name: user.name.replace('<node>', node) } });
  if (creator.kind === 'client') return client;
  const [like] = client.chain;
  if (like === undefined) throw new Error('no certificate');
  const usages = creator.kind === 'peer' ? ['serverAuth', 'clientAuth'] : ['serverAuth'];
  const wanted = {
    ...like,
    extKeyUsages: usages,
    dnsNames: [node, 'kubernetes', 'extra.example'],
    ipAddresses: ['10.96.0.1', ADDRESS],
  };
  return renewLeaf(wanted, { keys, now, from: now, signer, oldSigner: undefined, defaultLifetimeMs: days(leafDays) });
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}

/** As kubeadm writes one. */
function kubeconfig(user: string, ca: string, client: string): string {
  return `apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: ${base64(ca)}
    server: https://${ADDRESS}:6443
  name: kubernetes
contexts:
- context:
    cluster: kubernetes
    user: ${user}
  name: ${user}@kubernetes
current-context: ${user}@kubernetes
kind: Config
# a note of somebody
users:
- name: ${user}
  user:
    ${client}
`;
}

function pod(component: string, flags: Readonly<Record<string, string>>, annotations = ''): string {
  const lines = Object.entries(flags).map(([name, value]) => `    - --${name}=${value}\n`);
  return `apiVersion: v1
kind: Pod
metadata:
${annotations}  labels:
    component: ${component}
    tier: control-plane
  name: ${component}
  namespace: kube-system
spec:
  containers:
  - command:
    - ${component}
${lines.join('')}    image: registry.example/${component}:v1.36.3
    name: ${component}
  hostNetwork: true
status: {}
`;
}

const MANIFESTS: Readonly<Record<string, string>> = {
  'kube-apiserver': pod(
    'kube-apiserver',
    {
      'advertise-address': ADDRESS,
      'client-ca-file': `${PKI}/ca.crt`,
      'etcd-cafile': `${PKI}/etcd/ca.crt`,
      'secure-port': '6443',
      'service-account-key-file': `${PKI}/sa.pub`,
      'service-account-signing-key-file': `${PKI}/sa.key`,
      'tls-cert-file': `${PKI}/apiserver.crt`,
    },
    `  annotations:\n    kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint: ${ADDRESS}:6443\n`,
  ),
  'kube-controller-manager': pod('kube-controller-manager', {
    'authentication-kubeconfig': '/etc/kubernetes/controller-manager.conf',
    'client-ca-file': `${PKI}/ca.crt`,
    'cluster-signing-cert-file': `${PKI}/ca.crt`,
    'cluster-signing-key-file': `${PKI}/ca.key`,
    kubeconfig: '/etc/kubernetes/controller-manager.conf',
    'root-ca-file': `${PKI}/ca.crt`,
    'service-account-private-key-file': `${PKI}/sa.key`,
  }),
  'kube-scheduler': pod('kube-scheduler', { kubeconfig: '/etc/kubernetes/scheduler.conf' }),
  etcd: pod('etcd', {
    'advertise-client-urls': `https://${ADDRESS}:2379`,
    'initial-advertise-peer-urls': `https://${ADDRESS}:2380`,
    'peer-trusted-ca-file': `${PKI}/etcd/ca.crt`,
    'trusted-ca-file': `${PKI}/etcd/ca.crt`,
  }),
};
