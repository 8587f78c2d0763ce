import { createPublicKey, type KeyObject } from 'node:crypto';
import { minutes } from '../../kube/duration.ts';
import { type CertificateAndKey, ownCertificate, requireCA } from '../../pki/authority.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { PkiError } from '../../pki/error.ts';
import { type KeyAlgorithm, type Keys, keyAlgorithmOf } from '../../pki/keys.ts';
import { isSignedBy, publicKeyInfoOf } from '../../pki/signature.ts';
import { randomSerial, signTemplate } from '../../pki/template.ts';

/** kubeadm and kube-controller-manager let certificates begin so long ago, for clocks that are behind. */
export const BACKDATED_MS: number = minutes(5);
const DEFAULT_ALGORITHM: KeyAlgorithm = 'RSA-2048';

export interface RenewalOptions {
  readonly keys: Keys;
  readonly now: Date;
  /** It counts as made at this moment; not earlier than now. */
  readonly from: Date;
  readonly signer: CertificateAndKey;
  /** Who signed the old one. */
  readonly oldSigner: Certificate | undefined;
  /** Where the life of the old one says nothing. */
  readonly defaultLifetimeMs: number;
  /**
   * In place of one that has ended, because nobody else can help: two thirds of its life count as over. So it is due at once for whoever
   * looks after leaves, and good as well by the clocks of others, should it be ours that has gone ahead.
   */
  readonly isStopgap?: boolean | undefined;
}

const STOPGAP_AGE = 2 / 3;

/**
 * A leaf in the place of another one, as `kubeadm certs renew` makes it (spec 80, 1 and KA-5): subject, names, usages, length of life and
 * kind of key are those of the one that is there.
 */
export async function renewLeaf(old: Certificate, options: RenewalOptions): Promise<CertificateAndKey> {
  const { keys, signer, now, from } = options;
  const validity = validityOf(old, options);
  const key = await keys.generate(keyAlgorithmOf(old.publicKey) ?? DEFAULT_ALGORITHM);
  const certificate = await certifyLike(old, createPublicKey(key), validity, signer, keys);
  if (certificate.notBefore > now || certificate.notAfter <= now) {
    throw new PkiError('VALIDITY_INVALID', `expected a certificate that is valid now, from ${from.toISOString()}`);
  }
  return { chain: [certificate], key };
}

interface Life {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

function certifyLike(
  { subject, keyUsages, extKeyUsages, dnsNames, ipAddresses }: Certificate,
  publicKey: KeyObject,
  { notBefore, notAfter }: Life,
  signer: CertificateAndKey,
  keys: Keys,
): Promise<Certificate> {
  const authority = ownCertificate(signer);
  const template = {
    serial: randomSerial(keys),
    notBefore,
    notAfter,
    isCA: false,
    subject,
    keyUsages: [...keyUsages],
    extKeyUsages: [...extKeyUsages],
    dnsNames: [...dnsNames],
    ipAddresses: [...ipAddresses],
    subjectKeyId: undefined,
    authorityKeyId: authority.subjectKeyId,
    extraExtensions: [],
  };
  const issuer = { name: authority.subject.der, key: signer.key, publicKey: authority.publicKey };
  return signTemplate(template, publicKeyInfoOf(publicKey), issuer, keys);
}

/** As long as the old one, and never longer than the signer. One that was cut by its signer's end says nothing about its length. */
function validityOf(old: Certificate, options: RenewalOptions): Life {
  const { now, from, signer, oldSigner, defaultLifetimeMs, isStopgap = false } = options;
  requireCA(signer);
  const authority = ownCertificate(signer);
  if (authority.notAfter <= now) throw new PkiError('SIGNER_EXPIRED', `${authority.subject.commonName} has ended`);
  const oldMs = old.notAfter.getTime() - old.notBefore.getTime();
  const wasCut = oldMs <= 0 || (oldMs < defaultLifetimeMs && old.notAfter.getTime() === oldSigner?.notAfter.getTime());
  const lifetimeMs = wasCut ? defaultLifetimeMs : oldMs;
  const ageMs = isStopgap ? STOPGAP_AGE * lifetimeMs : BACKDATED_MS;
  const startMs = wholeSeconds(Math.max(now.getTime(), from.getTime()) - ageMs);
  const endMs = Math.min(startMs + lifetimeMs, authority.notAfter.getTime());
  return { notBefore: new Date(startMs), notAfter: new Date(wholeSeconds(endMs)) };
}

/** Whether a leaf counts as made at that moment or later: it is set back by five minutes. */
export function isMadeSince({ notBefore }: Pick<Certificate, 'notBefore'>, from: Date): boolean {
  return notBefore.getTime() + BACKDATED_MS >= wholeSeconds(from.getTime());
}

/** The CA among these that has signed a certificate. */
export function signerOf(leaf: Certificate, cas: readonly Certificate[]): Certificate | undefined {
  return cas.find(ca => ca.subject.der.equals(leaf.issuer.der) && hasSigned(ca, leaf));
}

/** A node is looked at often, and its certificates mostly stay: what was verified once is known. */
const verified = new WeakMap<Certificate, WeakMap<Certificate, boolean>>();

function hasSigned(ca: Certificate, leaf: Certificate): boolean {
  const known = verified.get(ca) ?? new WeakMap<Certificate, boolean>();
  verified.set(ca, known);
  const found = known.get(leaf) ?? isSignedBy(leaf, ca.publicKey);
  known.set(leaf, found);
  return found;
}

export function belongsTo(key: KeyObject, { publicKeyInfo }: Pick<Certificate, 'publicKeyInfo'>): boolean {
  return publicKeyInfoOf(key).equals(publicKeyInfo);
}

function wholeSeconds(ms: number): number {
  return Math.floor(ms / 1000) * 1000;
}
