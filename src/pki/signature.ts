import { createPublicKey, type KeyObject, verify, X509Certificate } from 'node:crypto';
import { bitString, NULL, oid, sequence } from './der-write.ts';
import { PkiError } from './error.ts';
import { MAX_RSA_BITS } from './limits.ts';

/** How a key signs: the name and encoding of the algorithm, and the digest `node:crypto` wants to hear. */
export interface SignatureScheme {
  readonly name: string;
  /** The DER AlgorithmIdentifier. */
  readonly identifier: Buffer;
  readonly keyType: 'rsa' | 'ec' | 'ed25519';
  readonly digest: string | null;
}

/** The signature algorithm that a key, private or public, implies (spec 10, 5.1 and 13). */
export function signatureSchemeOf(key: KeyObject): SignatureScheme {
  const type = key.asymmetricKeyType;
  if (type === 'rsa') return SHA256_RSA;
  if (type === 'ed25519') return ED25519;
  const curve = type === 'ec' ? key.asymmetricKeyDetails?.namedCurve : undefined;
  const scheme = curve === undefined ? undefined : BY_CURVE[curve];
  if (scheme) return scheme;
  const found = curve ?? type ?? 'a secret key';
  throw new PkiError('KEY_UNSUPPORTED', `expected an RSA, P-256, P-384, P-521 or Ed25519 key, found ${found}`);
}

/** The name of a signature algorithm, its dotted identifier where this project has none for it. */
export function signatureAlgorithmName(dotted: string): string {
  return dotted === RSA_PSS ? 'rsassaPss' : (BY_OID.get(dotted)?.name ?? dotted);
}

/** Something signed: a certificate or a certificate request. */
export interface Signed {
  readonly der: Buffer;
  readonly tbs: Buffer;
  readonly signature: Buffer;
  /** Name or dotted identifier, as `signatureAlgorithmName` gives it. */
  readonly signatureAlgorithm: string;
}

/** Whether `publicKey` made this signature. SHA-1, MD5 and oversized keys are not accepted, as in Go. */
export function isSignedBy(signed: Signed, publicKey: KeyObject): boolean {
  if ((publicKey.asymmetricKeyDetails?.modulusLength ?? 0) > MAX_RSA_BITS) return false;
  if (signed.signatureAlgorithm === 'rsassaPss') return isPssSignedBy(signed.der, publicKey);
  const scheme = BY_NAME.get(signed.signatureAlgorithm);
  if (!scheme || scheme.keyType !== publicKey.asymmetricKeyType) return false;
  return verify(scheme.digest, signed.tbs, publicKey, signed.signature);
}

/** The parameters of RSA-PSS are left to OpenSSL. */
function isPssSignedBy(der: Buffer, publicKey: KeyObject): boolean {
  try {
    return new X509Certificate(der).verify(publicKey);
  } catch {
    return false;
  }
}

/** The SubjectPublicKeyInfo of a private or public key. */
export function publicKeyInfoOf(key: KeyObject): Buffer {
  const publicKey = key.type === 'private' ? createPublicKey(key) : key;
  const curve = publicKey.asymmetricKeyType === 'ec' ? publicKey.asymmetricKeyDetails?.namedCurve : undefined;
  const algorithm = CURVE_IDENTIFIERS[curve ?? ''];
  if (!algorithm) return publicKey.export({ format: 'der', type: 'spki' });
  // The same bytes in a third of the time, which matters when certificates are made by the thousand.
  const { x = '', y = '' } = publicKey.export({ format: 'jwk' });
  return sequence(algorithm, bitString(Buffer.concat([UNCOMPRESSED, decode(x), decode(y)])));
}

const UNCOMPRESSED = Buffer.of(4);

const decode = (base64url: string): Buffer => Buffer.from(base64url, 'base64url');

const EC_PUBLIC_KEY = oid('1.2.840.10045.2.1');

/** Keyed by the names OpenSSL gives the curves. */
const CURVE_IDENTIFIERS: Record<string, Buffer> = {
  prime256v1: sequence(EC_PUBLIC_KEY, oid('1.2.840.10045.3.1.7')),
  secp384r1: sequence(EC_PUBLIC_KEY, oid('1.3.132.0.34')),
};

const RSA_PSS = '1.2.840.113549.1.1.10';

function scheme(
  name: string,
  dotted: string,
  keyType: SignatureScheme['keyType'],
  digest: string | null,
): SignatureScheme {
  const parameters = keyType === 'rsa' ? [NULL] : [];
  return { name, identifier: sequence(oid(dotted), ...parameters), keyType, digest };
}

const SHA256_RSA = scheme('sha256WithRSAEncryption', '1.2.840.113549.1.1.11', 'rsa', 'sha256');
const ED25519 = scheme('Ed25519', '1.3.101.112', 'ed25519', null);
const ECDSA_SHA256 = scheme('ecdsa-with-SHA256', '1.2.840.10045.4.3.2', 'ec', 'sha256');
const ECDSA_SHA384 = scheme('ecdsa-with-SHA384', '1.2.840.10045.4.3.3', 'ec', 'sha384');
const ECDSA_SHA512 = scheme('ecdsa-with-SHA512', '1.2.840.10045.4.3.4', 'ec', 'sha512');

const BY_CURVE: Record<string, SignatureScheme> = {
  prime256v1: ECDSA_SHA256,
  secp384r1: ECDSA_SHA384,
  secp521r1: ECDSA_SHA512,
};

const BY_OID = new Map<string, SignatureScheme>([
  ['1.2.840.113549.1.1.11', SHA256_RSA],
  ['1.2.840.113549.1.1.12', scheme('sha384WithRSAEncryption', '1.2.840.113549.1.1.12', 'rsa', 'sha384')],
  ['1.2.840.113549.1.1.13', scheme('sha512WithRSAEncryption', '1.2.840.113549.1.1.13', 'rsa', 'sha512')],
  ['1.2.840.10045.4.3.2', ECDSA_SHA256],
  ['1.2.840.10045.4.3.3', ECDSA_SHA384],
  ['1.2.840.10045.4.3.4', ECDSA_SHA512],
  ['1.3.101.112', ED25519],
]);

const BY_NAME = new Map([...BY_OID.values()].map(scheme => [scheme.name, scheme]));
