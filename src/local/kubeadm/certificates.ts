import { createPublicKey } from 'node:crypto';
import { minutes } from '../../kube/duration.ts';
import type { KubeadmChain, KubeadmHostnames, KubeadmSigner } from '../../kubeadm/chains.ts';
import { type CertificateAndKey, ownCertificate } from '../../pki/authority.ts';
import type { KeyUsage } from '../../pki/extensions.ts';
import { subjectKeyIdOfInfo } from '../../pki/key-id.ts';
import type { KeyAlgorithm, Keys } from '../../pki/keys.ts';
import { publicKeyInfoOf } from '../../pki/signature.ts';
import { randomSerial, signTemplate } from '../../pki/template.ts';
import { subjectForUser } from '../../pki/user.ts';
import { ENDPOINT_HOST, FIRST_SERVICE_ADDRESS } from './names.ts';

export interface Issuing {
  readonly keys: Keys;
  readonly now: Date;
  readonly algorithm: KeyAlgorithm;
  /** How long a day of a validity lasts. */
  readonly dayMs: number;
}

/** For clocks that are behind. */
const BACKDATED_MS = minutes(5);

/** A CA as `kubeadm init` makes it (spec 80, 1). */
export async function newAuthority(
  { commonName, validityDays }: KubeadmSigner,
  issuing: Issuing,
): Promise<CertificateAndKey> {
  const { keys, algorithm } = issuing;
  const key = await keys.generate(algorithm);
  const publicKey = createPublicKey(key);
  const keyInfo = publicKeyInfoOf(publicKey);
  const keyId = subjectKeyIdOfInfo(keyInfo);
  const template = {
    serial: randomSerial(keys),
    ...lifeOf(validityDays, issuing),
    isCA: true,
    subject: { commonName },
    keyUsages: ['digitalSignature', 'keyEncipherment', 'keyCertSign'] as KeyUsage[],
    extKeyUsages: [],
    dnsNames: [commonName],
    ipAddresses: [],
    subjectKeyId: keyId,
    authorityKeyId: undefined,
    extraExtensions: [],
  };
  const certificate = await signTemplate(template, keyInfo, { name: undefined, key, publicKey }, keys);
  return { chain: [certificate], key };
}

export interface LeafNode {
  readonly name: string;
  readonly address: string;
}

/** A leaf as `kubeadm init` and `kubeadm join` make it for a node (spec 80, 1). */
export async function newLeaf(
  { creator, validityDays }: KubeadmChain,
  node: LeafNode,
  signer: CertificateAndKey,
  issuing: Issuing,
): Promise<CertificateAndKey> {
  const { keys, algorithm } = issuing;
  const key = await keys.generate(algorithm);
  const authority = ownCertificate(signer);
  const named = (name: string) => name.replace('<node>', node.name);
  const user = creator.kind === 'client' ? creator.user : { name: creator.commonName };
  const hosts = creator.kind === 'client' ? { dnsNames: [], ipAddresses: [] } : HOSTS[creator.hostnames](node);
  const usages = { client: ['clientAuth'], serving: ['serverAuth'], peer: ['serverAuth', 'clientAuth'] };
  const life = lifeOf(validityDays, issuing);
  const template = {
    serial: randomSerial(keys),
    notBefore: life.notBefore,
    notAfter: life.notAfter < authority.notAfter ? life.notAfter : authority.notAfter,
    isCA: false,
    subject: subjectForUser({ ...user, name: named(user.name) }),
    keyUsages: ['digitalSignature', 'keyEncipherment'] as KeyUsage[],
    extKeyUsages: usages[creator.kind],
    ...hosts,
    subjectKeyId: undefined,
    authorityKeyId: authority.subjectKeyId,
    extraExtensions: [],
  };
  const issuer = { name: authority.subject.der, key: signer.key, publicKey: authority.publicKey };
  const certificate = await signTemplate(template, publicKeyInfoOf(createPublicKey(key)), issuer, keys);
  return { chain: [certificate], key };
}

interface Hosts {
  readonly dnsNames: string[];
  readonly ipAddresses: string[];
}

const member = ({ name, address }: LeafNode): Hosts => ({
  dnsNames: [name, 'localhost'],
  ipAddresses: [...new Set([address, '127.0.0.1', '::1'])],
});

/** Which names a server of a node is good for. */
const HOSTS: Readonly<Record<KubeadmHostnames, (node: LeafNode) => Hosts>> = {
  'api-server': ({ name, address }) => ({
    dnsNames: [
      'kubernetes',
      'kubernetes.default',
      'kubernetes.default.svc',
      'kubernetes.default.svc.cluster.local',
      name,
    ],
    ipAddresses: [...new Set([FIRST_SERVICE_ADDRESS, address, ENDPOINT_HOST])],
  }),
  'etcd-server': member,
  'etcd-peer': member,
};

function lifeOf(validityDays: number, { now, dayMs }: Issuing): { notBefore: Date; notAfter: Date } {
  const whole = (ms: number) => new Date(Math.floor(ms / 1000) * 1000);
  return {
    notBefore: whole(now.getTime() - BACKDATED_MS),
    notAfter: whole(now.getTime() + validityDays * dayMs),
  };
}
