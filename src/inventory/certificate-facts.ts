import { createHash } from 'node:crypto';
import type { Certificate } from '../pki/certificate.ts';
import { hostnamesOf } from '../pki/hosts.ts';
import { keyAlgorithmOf } from '../pki/keys.ts';
import type { CertificateFacts } from './model.ts';

const USAGES: Readonly<Record<string, string>> = { clientAuth: 'client', serverAuth: 'serving' };

/** A certificate as plain data. Identified by digests, never by names alone (spec 70, 5.5). */
export function factsOf(certificate: Certificate): CertificateFacts {
  const { subject, issuer, serial, extKeyUsages, isCA } = certificate;
  return {
    subject: subject.commonName,
    issuer: issuer.commonName,
    isSelfSigned: issuer.der.equals(subject.der),
    isCA,
    serial: serial.toString(16),
    notBefore: certificate.notBefore.toISOString(),
    notAfter: certificate.notAfter.toISOString(),
    key: keyOf(certificate),
    signatureAlgorithm: certificate.signatureAlgorithm,
    usages: isCA ? ['signer'] : extKeyUsages.map(usage => USAGES[usage] ?? usage),
    hostnames: hostnamesOf(certificate),
    groups: subject.organizations,
    sha256: sha256(certificate.der),
    keySha256: sha256(certificate.publicKeyInfo),
  };
}

function keyOf(certificate: Certificate): string {
  try {
    const { publicKey } = certificate;
    return keyAlgorithmOf(publicKey) ?? publicKey.asymmetricKeyType ?? 'unknown';
  } catch {
    return 'unknown';
  }
}

export function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
