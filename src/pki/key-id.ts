import { createHash, type KeyObject } from 'node:crypto';
import { readPublicKeyInfo } from './public-key-info.ts';
import { publicKeyInfoOf } from './signature.ts';

/** The subject key id for a public key (spec 10, K-1): SHA-1 over the RSA modulus, or over the bits of any other key. */
export function subjectKeyIdFor(publicKey: KeyObject): Buffer {
  return subjectKeyIdOfInfo(publicKeyInfoOf(publicKey));
}

/** The same, from a DER SubjectPublicKeyInfo. */
export function subjectKeyIdOfInfo(publicKeyInfo: Buffer): Buffer {
  const { modulus, bits } = readPublicKeyInfo(publicKeyInfo);
  return createHash('sha1')
    .update(modulus ?? bits)
    .digest();
}
