import type { KeyObject } from 'node:crypto';
import { publicKeyFromInfo } from './certificate.ts';
import { DerReader } from './der-read.ts';
import { bitString, contextConstructed, element, integer, oid, sequence, setOf, TAG } from './der-write.ts';
import { isPkiError, PkiError } from './error.ts';
import { type Extensions, encodeExtensions, noExtensions, parseExtensions } from './extensions.ts';
import type { Keys } from './keys.ts';
import { MAX_CERTIFICATE_BYTES } from './limits.ts';
import { encodeName, type Name, type NameAttributes, parseName } from './name.ts';
import { checkPemSize } from './pem.ts';
import { encodePem, pemBlocks } from './pem-block.ts';
import { isSignedBy, publicKeyInfoOf, signatureAlgorithmName, signatureSchemeOf } from './signature.ts';

/** A PKCS#10 certificate request whose signature has been checked, with the extensions it asks for. */
export interface CertificateRequest extends Extensions {
  readonly der: Buffer;
  readonly subject: Name;
  readonly publicKey: KeyObject;
  readonly signatureAlgorithm: string;
}

/** Reads a DER request and verifies that its sender has the key. Throws `PkiError` REQUEST_INVALID or SIGNATURE_INVALID. */
export function parseCertificateRequest(der: Uint8Array): CertificateRequest {
  if (der.length > MAX_CERTIFICATE_BYTES) {
    throw new PkiError(
      'TOO_LARGE',
      `a certificate request has at most ${MAX_CERTIFICATE_BYTES} bytes, found ${der.length}`,
    );
  }
  try {
    return read(Buffer.from(der));
  } catch (error) {
    if (isPkiError(error, 'DER_INVALID')) throw new PkiError('REQUEST_INVALID', error.message, { cause: error });
    throw error;
  }
}

/** The one request in a PEM text: its first block, labelled `CERTIFICATE REQUEST`, as Kubernetes wants it. */
export function readCertificateRequest(text: string): CertificateRequest {
  checkPemSize(text);
  for (const block of pemBlocks(text)) {
    if (!block.ok) continue;
    if (block.type === CERTIFICATE_REQUEST) return parseCertificateRequest(block.bytes);
    const found = JSON.stringify(block.type.slice(0, 100));
    throw new PkiError('REQUEST_INVALID', `expected a PEM block of type CERTIFICATE REQUEST, found ${found}`);
  }
  throw new PkiError('REQUEST_INVALID', 'expected a PEM block of type CERTIFICATE REQUEST, found none');
}

/** Makes a request signed with `key`. */
export async function createCertificateRequest(options: {
  readonly keys: Keys;
  readonly key: KeyObject;
  readonly subject: NameAttributes;
  readonly dnsNames?: readonly string[];
  readonly ipAddresses?: readonly string[];
}): Promise<CertificateRequest> {
  const { keys, key, subject, dnsNames = [], ipAddresses = [] } = options;
  const asksForNames = dnsNames.length > 0 || ipAddresses.length > 0;
  const extensionRequest = sequence(oid(EXTENSION_REQUEST), setOf([encodeExtensions({ dnsNames, ipAddresses })]));
  const info = sequence(
    integer(0),
    encodeName(subject),
    publicKeyInfoOf(key),
    element(contextConstructed(0), ...(asksForNames ? [extensionRequest] : [])),
  );
  const signature = await keys.sign(key, info);
  return parseCertificateRequest(sequence(info, signatureSchemeOf(key).identifier, bitString(signature)));
}

/** The request as PEM. */
export function encodeCertificateRequest(request: CertificateRequest): string {
  return encodePem(CERTIFICATE_REQUEST, request.der);
}

const CERTIFICATE_REQUEST = 'CERTIFICATE REQUEST';

/** PKCS#9 extensionRequest. */
const EXTENSION_REQUEST = '1.2.840.113549.1.9.14';

function read(der: Buffer): CertificateRequest {
  const whole = new DerReader(der, 'certificate request');
  const outer = whole.enter(TAG.sequence, 'outer sequence');
  whole.end();
  const info = outer.next(TAG.sequence, 'signed part');
  const algorithm = outer.enter(TAG.sequence, 'signature algorithm').oid('identifier');
  const signature = outer.bits('signature');
  outer.end();

  const fields = new DerReader(info.content, 'certificate request');
  const version = fields.integer('version');
  if (version !== 0n)
    throw new PkiError('DER_INVALID', `certificate request: expected version number 0, found ${version}`);
  const subject = parseName(fields.next(TAG.sequence, 'subject').der, 'certificate request: subject');
  const publicKey = publicKeyFromInfo(fields.next(TAG.sequence, 'public key').der);
  const extensions = fields.atEnd ? noExtensions() : readAttributes(fields.enter(contextConstructed(0), 'attributes'));
  fields.end();

  const signatureAlgorithm = signatureAlgorithmName(algorithm);
  if (!isSignedBy({ der, tbs: info.der, signature, signatureAlgorithm }, publicKey)) {
    throw new PkiError('SIGNATURE_INVALID', 'the certificate request is not signed with the key it holds');
  }
  return { der, subject, publicKey, signatureAlgorithm, ...extensions };
}

function readAttributes(attributes: DerReader): Extensions {
  let extensions: Extensions | undefined;
  while (!attributes.atEnd) {
    const attribute = attributes.enter(TAG.sequence, 'attribute');
    const type = attribute.oid('type');
    const values = attribute.enter(TAG.set, 'values');
    attribute.end();
    if (type !== EXTENSION_REQUEST) continue;
    if (extensions) throw new PkiError('DER_INVALID', 'certificate request: more than one request for extensions');
    extensions = parseExtensions(values.enter(TAG.sequence, 'extensions'), 'certificate request');
    values.end();
  }
  return extensions ?? noExtensions();
}
