import type { KeyObject } from 'node:crypto';
import { type Certificate, parseCertificate } from './certificate.ts';
import { bitString, contextConstructed, element, integer, sequence, time } from './der-write.ts';
import { PkiError } from './error.ts';
import { type Extension, encodeExtensions, type KeyUsage } from './extensions.ts';
import type { Keys } from './keys.ts';
import { encodeName, type Name, type NameAttributes } from './name.ts';
import { isSignedBy, signatureSchemeOf } from './signature.ts';

/** A certificate before it is signed. A hook may change what is not `readonly` (spec 10, 5.7). */
export interface MutableTemplate {
  readonly serial: bigint;
  readonly notBefore: Date;
  readonly notAfter: Date;
  readonly isCA: boolean;
  /** Attributes to encode, or a name to copy byte for byte. */
  subject: NameAttributes | Name;
  keyUsages: KeyUsage[];
  /** `clientAuth`, `serverAuth` or dotted object identifiers. */
  extKeyUsages: string[];
  dnsNames: string[];
  ipAddresses: string[];
  subjectKeyId: Buffer | undefined;
  readonly authorityKeyId: Buffer | undefined;
  /** Written after the others, as they are. */
  extraExtensions: Extension[];
}

/** Who signs, and under which name. */
export interface Issuer {
  /** The raw subject of the signer's certificate; undefined for a self-signed certificate. */
  readonly name: Buffer | undefined;
  readonly key: KeyObject;
  /** The public half of `key`, as the signer's certificate has it. */
  readonly publicKey: KeyObject;
}

/** Encodes, signs and reads back a certificate. */
export async function signTemplate(
  template: MutableTemplate,
  publicKeyInfo: Buffer,
  issuer: Issuer,
  keys: Keys,
): Promise<Certificate> {
  const scheme = signatureSchemeOf(issuer.key);
  const subject = 'der' in template.subject ? template.subject.der : encodeName(template.subject);
  const tbs = sequence(
    VERSION_3,
    integer(template.serial),
    scheme.identifier,
    issuer.name ?? subject,
    sequence(time(template.notBefore), time(template.notAfter)),
    subject,
    publicKeyInfo,
    element(
      contextConstructed(3),
      encodeExtensions({
        keyUsages: template.keyUsages,
        extKeyUsages: template.extKeyUsages,
        basicConstraints: { isCA: template.isCA },
        subjectKeyId: template.subjectKeyId,
        authorityKeyId: template.authorityKeyId,
        dnsNames: template.dnsNames,
        ipAddresses: template.ipAddresses,
        extra: template.extraExtensions,
      }),
    ),
  );
  const signature = await keys.sign(issuer.key, tbs);
  const certificate = parseCertificate(sequence(tbs, scheme.identifier, bitString(signature)));
  proveKey(issuer, certificate);
  return certificate;
}

/** Issuer keys whose signatures were seen to verify with the public key of the issuer's certificate. */
const proven = new WeakMap<KeyObject, KeyObject>();

/** Checks the first signature of each signer, so that nothing signed with a wrong or damaged key gets out. */
function proveKey({ key, publicKey }: Issuer, certificate: Certificate): void {
  if (proven.get(key) === publicKey) return;
  if (!isSignedBy(certificate, publicKey)) {
    throw new PkiError('KEY_MISMATCH', "the signer's key does not belong to the signer's certificate");
  }
  proven.set(key, publicKey);
}

/** A positive random serial number that fits 63 bits, never 0 (spec 10, 5.1). */
export function randomSerial(keys: Keys): bigint {
  for (;;) {
    const serial = keys.random(8).readBigUInt64BE() >> 1n;
    if (serial > 0n) return serial;
  }
}

const VERSION_3 = element(contextConstructed(0), integer(2));
