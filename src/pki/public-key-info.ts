import { ECDH } from 'node:crypto';
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

/**
 * Reads a DER SubjectPublicKeyInfo; throws DER_INVALID for an RSA, elliptic curve or Ed25519 key that Go would refuse.
 * Other kinds are not looked into; whether there is such a kind, OpenSSL decides later.
 */
export function readPublicKeyInfo(der: Buffer): PublicKeyInfo {
  const info = new DerReader(der, 'public key').enter(TAG.sequence, 'info');
  const identifier = info.enter(TAG.sequence, 'algorithm');
  const algorithm = identifier.oid('identifier');
  const parameters = identifier.atEnd ? undefined : identifier.any('parameters').der;
  const bits = info.bits('key');
  switch (algorithm) {
    case RSA_ENCRYPTION:
      if (!parameters?.equals(NULL)) throw new PkiError('DER_INVALID', 'public key: an RSA key has NULL parameters');
      return { algorithm, bits, modulus: rsaModulus(bits) };
    case EC_PUBLIC_KEY:
      requirePointOnCurve(parameters, bits);
      break;
    case ED25519:
      if (parameters !== undefined || bits.length !== ED25519_BYTES) {
        throw new PkiError('DER_INVALID', `public key: an Ed25519 key has no parameters and ${ED25519_BYTES} bytes`);
      }
      break;
    default:
  }
  return { algorithm, bits, modulus: undefined };
}

const RSA_ENCRYPTION = '1.2.840.113549.1.1.1';
const EC_PUBLIC_KEY = '1.2.840.10045.2.1';
const ED25519 = '1.3.101.112';
const ED25519_BYTES = 32;

/** The curves Go reads, by OpenSSL's names. */
const CURVES = new Map([
  ['1.3.132.0.33', 'secp224r1'],
  ['1.2.840.10045.3.1.7', 'prime256v1'],
  ['1.3.132.0.34', 'secp384r1'],
  ['1.3.132.0.35', 'secp521r1'],
]);
const UNCOMPRESSED_POINT = 4;

function requirePointOnCurve(parameters: Buffer = Buffer.alloc(0), point: Buffer): void {
  const dotted = new DerReader(parameters, 'public key').oid('curve');
  const curve = CURVES.get(dotted);
  if (curve === undefined) throw new PkiError('DER_INVALID', `public key: unsupported elliptic curve ${dotted}`);
  try {
    if (point[0] === UNCOMPRESSED_POINT) return void ECDH.convertKey(point, curve);
  } catch {
    // Told below.
  }
  throw new PkiError('DER_INVALID', `public key: expected an uncompressed point of the curve ${curve}`);
}

function rsaModulus(rsaPublicKey: Buffer): Buffer {
  const fields = new DerReader(rsaPublicKey, 'RSA public key').enter(TAG.sequence, 'key');
  const modulus = fields.integer('modulus');
  const exponent = fields.integer('exponent');
  if (modulus <= 0n || exponent <= 0n) throw new PkiError('DER_INVALID', 'RSA public key: a number is not positive');
  const hex = modulus.toString(16);
  return Buffer.from(hex.length % 2 === 0 ? hex : `0${hex}`, 'hex');
}
