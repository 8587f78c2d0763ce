import { type Certificate, parseCertificate } from '../../pki/certificate.ts';
import { isPkiError } from '../../pki/error.ts';
import { MAX_BUNDLE_CERTIFICATES } from '../../pki/limits.ts';
import { checkPemSize, encodeCertificates } from '../../pki/pem.ts';
import { pemBlocks } from '../../pki/pem-block.ts';

/** The certificates of a text, once each and in its order; what cannot be read is counted and passed over (D-6). */
export interface Bundle {
  readonly certificates: readonly Certificate[];
  readonly malformed: number;
}

type Certificates = Pick<Bundle, 'certificates'>;

/** Reads what can be read of a bundle. Throws `PkiError` TOO_LARGE. */
export function readBundle(bytes: Uint8Array): Bundle {
  const text = Buffer.from(bytes).toString('latin1');
  checkPemSize(text);
  const found = new Map<string, Certificate>();
  let malformed = 0;
  for (const block of pemBlocks(text)) {
    if (block.ok && (block.type !== 'CERTIFICATE' || block.hasHeaders)) continue;
    const certificate = block.ok ? certificateOf(block.bytes) : undefined;
    if (certificate === undefined) malformed++;
    else if (found.size < MAX_BUNDLE_CERTIFICATES) found.set(identityOf(certificate), certificate);
  }
  return { certificates: [...found.values()], malformed };
}

/** The certificates as text, without a line feed at the end (spec 60, 4.7.8). */
export function bundleText({ certificates }: Certificates): string {
  return encodeCertificates(certificates).trimEnd();
}

/** The certificates of `a` that are not in `b`, by their bytes: order and spacing do not count (D-9). */
export function without(a: Certificates, b: Certificates): Certificate[] {
  const known = new Set(b.certificates.map(identityOf));
  return a.certificates.filter(certificate => !known.has(identityOf(certificate)));
}

/** The certificates of `a` that are in `b` too. */
export function within(a: Certificates, b: Certificates): Certificate[] {
  return without(a, { certificates: without(a, b) });
}

/** Appends a line feed where there is none at the end (spec 60, 4.4). */
export function endingInLineFeed(bytes: Uint8Array): Buffer {
  const buffer = Buffer.from(bytes);
  return buffer.at(-1) === LINE_FEED ? buffer : Buffer.concat([buffer, Buffer.of(LINE_FEED)]);
}

export function isBlank(bytes: Uint8Array): boolean {
  return Buffer.from(bytes).toString('latin1').trim() === '';
}

const LINE_FEED = 0x0a;

function identityOf({ der }: Certificate): string {
  return der.toString('base64');
}

function certificateOf(der: Buffer): Certificate | undefined {
  try {
    return parseCertificate(der);
  } catch (error) {
    if (isPkiError(error)) return undefined;
    throw error;
  }
}
