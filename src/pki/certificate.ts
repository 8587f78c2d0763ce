import { createPublicKey, type KeyObject } from 'node:crypto';
import { DerReader } from './der-read.ts';
import { contextConstructed, TAG } from './der-write.ts';
import { isPkiError, PkiError } from './error.ts';
import { type Extensions, noExtensions, parseExtensions } from './extensions.ts';
import { MAX_CERTIFICATE_BYTES } from './limits.ts';
import { type Name, parseName } from './name.ts';
import { readPublicKeyInfo } from './public-key-info.ts';
import { Recent } from './recent.ts';
import { signatureAlgorithmName } from './signature.ts';

export type { KeyUsage } from './extensions.ts';
export type { Name } from './name.ts';

/** An X.509 certificate, read. The bytes of names and key ids are those of the certificate, never re-encoded. */
export interface Certificate extends Extensions {
  readonly der: Buffer;
  readonly version: 1 | 2 | 3;
  readonly serial: bigint;
  readonly issuer: Name;
  readonly subject: Name;
  readonly notBefore: Date;
  readonly notAfter: Date;
  /** `sha256WithRSAEncryption`, `ecdsa-with-SHA256`, ... or a dotted object identifier. */
  readonly signatureAlgorithm: string;
  /** The part that is signed. */
  readonly tbs: Buffer;
  readonly signature: Buffer;
  /** The DER SubjectPublicKeyInfo. */
  readonly publicKeyInfo: Buffer;
  /** Made on first use; throws `PkiError` KEY_UNSUPPORTED for a kind of key that OpenSSL does not know. */
  readonly publicKey: KeyObject;
}

/**
 * Reads a DER certificate. Throws `PkiError` CERTIFICATE_INVALID or TOO_LARGE. Takes whatever Go takes, also junk behind the
 * last field of a structure: one certificate refused would stop a whole bundle that a Go operator reads (spec 10, P-7).
 */
export function parseCertificate(der: Uint8Array): Certificate {
  if (der.length > MAX_CERTIFICATE_BYTES) {
    throw new PkiError('TOO_LARGE', `a certificate has at most ${MAX_CERTIFICATE_BYTES} bytes, found ${der.length}`);
  }
  try {
    return kept.get(Buffer.from(der.buffer, der.byteOffset, der.length).toString('latin1'), () =>
      read(Buffer.from(der)),
    );
  } catch (error) {
    if (isPkiError(error, 'DER_INVALID')) throw new PkiError('CERTIFICATE_INVALID', error.message, { cause: error });
    throw error;
  }
}

/** The same certificates stand in bundle after bundle; a read one is immutable, so that all can share it. */
const kept = new Recent<Certificate>(500);

function read(der: Buffer): Certificate {
  const whole = new DerReader(der, 'certificate');
  const outer = whole.enter(TAG.sequence, 'outer sequence');
  whole.end();
  const tbs = outer.next(TAG.sequence, 'signed part');
  const outerAlgorithm = outer.next(TAG.sequence, 'signature algorithm');
  const signature = outer.bits('signature');

  const fields = new DerReader(tbs.content, 'certificate');
  const version = readVersion(fields);
  const serial = fields.integer('serial number');
  const innerAlgorithm = fields.next(TAG.sequence, 'signature algorithm');
  if (!innerAlgorithm.der.equals(outerAlgorithm.der)) {
    throw new PkiError('DER_INVALID', 'certificate: inner and outer signature algorithm differ');
  }
  const issuer = parseName(fields.next(TAG.sequence, 'issuer').der, 'certificate: issuer');
  const validity = fields.enter(TAG.sequence, 'validity');
  const notBefore = validity.time('not before');
  const notAfter = validity.time('not after');
  const subject = parseName(fields.next(TAG.sequence, 'subject').der, 'certificate: subject');
  const publicKeyInfo = fields.next(TAG.sequence, 'public key').der;
  readPublicKeyInfo(publicKeyInfo);
  fields.optional(ISSUER_UNIQUE_ID, 'issuer unique id');
  fields.optional(SUBJECT_UNIQUE_ID, 'subject unique id');
  const extensions = version === 3 ? readExtensions(fields) : noExtensions();

  let publicKey: KeyObject | undefined;
  return {
    der,
    version,
    serial,
    issuer,
    subject,
    notBefore,
    notAfter,
    signatureAlgorithm: signatureAlgorithmName(new DerReader(outerAlgorithm.content, 'certificate').oid('algorithm')),
    tbs: tbs.der,
    signature,
    publicKeyInfo,
    get publicKey() {
      return (publicKey ??= publicKeyFromInfo(publicKeyInfo));
    },
    ...extensions,
  };
}

/** A public key from its DER SubjectPublicKeyInfo. */
export function publicKeyFromInfo(info: Buffer): KeyObject {
  try {
    return createPublicKey({ key: info, format: 'der', type: 'spki' });
  } catch (cause) {
    throw new PkiError('KEY_UNSUPPORTED', 'the public key is broken or of an unknown kind', { cause });
  }
}

const ISSUER_UNIQUE_ID = 0x81;
const SUBJECT_UNIQUE_ID = 0x82;

function readVersion(fields: DerReader): 1 | 2 | 3 {
  if (fields.peek() !== contextConstructed(0)) return 1;
  const version = fields.enter(contextConstructed(0), 'version').integer('number');
  if (version === 0n) return 1;
  if (version === 1n) return 2;
  if (version === 2n) return 3;
  throw new PkiError('DER_INVALID', `certificate: expected version number 0, 1 or 2, found ${version}`);
}

function readExtensions(fields: DerReader): Extensions {
  if (fields.peek() !== contextConstructed(3)) return noExtensions();
  const list = fields.enter(contextConstructed(3), 'extensions').enter(TAG.sequence, 'list');
  return parseExtensions(list, 'certificate');
}
