import { DerReader } from './der-read.ts';
import { NULL, TAG } from './der-write.ts';
import { PkiError } from './error.ts';

/** A SubjectPublicKeyInfo, taken apart as far as key ids need it. */
export interface PublicKeyInfo {
  /** Dotted object identifier of the kind of key. */
  readonly algorithm: string;
  /** The key as its kind encodes it: a point, 32 bytes, an RSA structure. */
  readonly bits: Buffer;
  /** RSA only: the modulus as unsigned big-endian bytes without a leading zero byte. */
  readonly modulus: Buffer | undefined;
}

/** Reads a DER SubjectPublicKeyInfo; throws DER_INVALID for what cannot be a key. Whether it is one, OpenSSL decides later. */
export function readPublicKeyInfo(der: Buffer): PublicKeyInfo {
  const info = new DerReader(der, 'public key').enter(TAG.sequence, 'info');
  const identifier = info.enter(TAG.sequence, 'algorithm');
  const algorithm = identifier.oid('identifier');
  const parameters = identifier.atEnd ? undefined : identifier.any('parameters').der;
  const bits = info.bits('key');
  if (algorithm !== RSA_ENCRYPTION) return { algorithm, bits, modulus: undefined };
  if (!parameters?.equals(NULL)) throw new PkiError('DER_INVALID', 'public key: an RSA key has NULL parameters');
  return { algorithm, bits, modulus: rsaModulus(bits) };
}

const RSA_ENCRYPTION = '1.2.840.113549.1.1.1';

function rsaModulus(rsaPublicKey: Buffer): Buffer {
  const fields = new DerReader(rsaPublicKey, 'RSA public key').enter(TAG.sequence, 'key');
  const modulus = fields.integer('modulus');
  const exponent = fields.integer('exponent');
  if (modulus <= 0n || exponent <= 0n) throw new PkiError('DER_INVALID', 'RSA public key: a number is not positive');
  const hex = modulus.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
}
