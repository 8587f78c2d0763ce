import { createPublicKey, type KeyObject } from 'node:crypto';
import type { Certificate } from './certificate.ts';
import { isPkiError, PkiError } from './error.ts';
import { readCertificates, readPrivateKey } from './pem.ts';
import { Recent } from './recent.ts';

/** A certificate with what came behind it in the file, and the private key of the first. */
export interface CertificateAndKey {
  /** Never empty; `chain[0]` belongs to `key`. */
  readonly chain: readonly Certificate[];
  readonly key: KeyObject;
}

/**
 * Loads `tls.crt` and `tls.key`, and checks that they belong together (spec 10, 4.5). The texts `certFile missing` and
 * `keyFile missing` are matched by runbooks.
 */
export function loadCertificateAndKey(certPem: string | undefined, keyPem: string | undefined): CertificateAndKey {
  if (!certPem) throw new PkiError('CERT_MISSING', 'certFile missing');
  if (!keyPem) throw new PkiError('KEY_MISSING', 'keyFile missing');
  return kept.get(`${certPem}\0${keyPem}`, () => {
    const chain = readChain(certPem);
    const key = readPrivateKey(keyPem);
    if (!belongTogether(chain[0]!, key))
      throw new PkiError('KEY_MISMATCH', 'tls: private key does not match public key');
    return { chain, key };
  });
}

/** As many as an operator looks after; they are in its memory anyway. */
const kept = new Recent<CertificateAndKey>(100);

/** The certificate at the head of a chain: the one the key belongs to. */
export function ownCertificate(pair: Pick<CertificateAndKey, 'chain'>): Certificate {
  const [certificate] = pair.chain;
  if (!certificate) throw new PkiError('CERT_MISSING', 'expected a chain of one certificate or more, found none');
  return certificate;
}

/** Throws unless the certificate may sign others (spec 10, X-2). */
export function requireCA(ca: Pick<CertificateAndKey, 'chain'>): void {
  const { subject, isCA, keyUsages } = ownCertificate(ca);
  const name = JSON.stringify(subject.commonName);
  if (!isCA) throw new PkiError('NOT_A_CA', `${name} cannot sign: its basic constraints do not say it is a CA`);
  if (keyUsages.length > 0 && !keyUsages.includes('keyCertSign')) {
    throw new PkiError('NOT_A_CA', `${name} cannot sign: its key usages (${keyUsages.join(', ')}) lack keyCertSign`);
  }
}

function readChain(certPem: string): Certificate[] {
  try {
    return readCertificates(certPem).certificates;
  } catch (error) {
    if (!isPkiError(error)) throw error;
    throw new PkiError(error.code, `Error reading cert: ${error.message}`, { cause: error });
  }
}

function belongTogether(certificate: Certificate, key: KeyObject): boolean {
  try {
    return createPublicKey(key).equals(certificate.publicKey);
  } catch {
    // Keys of different kinds cannot be compared.
    return false;
  }
}
