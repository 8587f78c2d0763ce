import { createPrivateKey, type KeyObject } from 'node:crypto';
import { type Certificate, parseCertificate } from './certificate.ts';
import { DerReader } from './der-read.ts';
import { TAG } from './der-write.ts';
import { isPkiError, PkiError } from './error.ts';
import { MAX_BUNDLE_CERTIFICATES, MAX_PEM_CHARACTERS, MAX_RSA_BITS, MAX_SKIPPED_REPORTED } from './limits.ts';
import { encodePem, pemBlocks } from './pem-block.ts';
import { Recent } from './recent.ts';

/** A block that was passed over, and will be gone when the text is next written (spec 10, trap 14.20). */
export interface SkippedBlock {
  /** The label of its BEGIN line, empty where that could not be read. */
  readonly type: string;
  /** Counted from 1. */
  readonly line: number;
  /** `malformed`: no base64, or no matching BEGIN and END; `headers`: has PEM headers; `type`: is something else. */
  readonly reason: 'malformed' | 'headers' | 'type';
}

/**
 * The certificates of a PEM text (spec 10, P-7): blocks `CERTIFICATE` without PEM headers; others are skipped and named.
 * Throws `PkiError`: CERTIFICATE_INVALID for a block that is no certificate, NO_CERTIFICATES for a text without any, TOO_LARGE.
 */
export function readCertificates(text: string): ReadCertificates {
  if (text.length > LONGEST_KEPT) return readBlocks(text);
  const { certificates, skipped } = kept.get(text, () => readBlocks(text));
  // Whoever asks may change the lists, as if nobody else had them.
  return { certificates: [...certificates], skipped: [...skipped] };
}

interface ReadCertificates {
  certificates: Certificate[];
  skipped: SkippedBlock[];
}

const kept = new Recent<ReadCertificates>(200);
const LONGEST_KEPT = 65_536;

function readBlocks(text: string): ReadCertificates {
  checkPemSize(text);
  const certificates: Certificate[] = [];
  const skipped: SkippedBlock[] = [];
  for (const block of pemBlocks(text)) {
    const reason = !block.ok
      ? 'malformed'
      : block.type !== CERTIFICATE
        ? 'type'
        : block.hasHeaders
          ? 'headers'
          : undefined;
    if (reason !== undefined) {
      if (skipped.length < MAX_SKIPPED_REPORTED) skipped.push({ type: block.type, line: block.line, reason });
    } else if (block.ok) {
      if (certificates.length === MAX_BUNDLE_CERTIFICATES) {
        throw new PkiError('TOO_LARGE', `a bundle has at most ${MAX_BUNDLE_CERTIFICATES} certificates, found more`);
      }
      certificates.push(parseBlock(block));
    }
  }
  if (certificates.length === 0) {
    throw new PkiError('NO_CERTIFICATES', 'data does not contain any valid RSA or ECDSA certificates');
  }
  return { certificates, skipped };
}

/** The certificates of a PEM text; none where there are none, or one of them cannot be read. */
export function certificatesIn(text: string | undefined): Certificate[] {
  try {
    return readCertificates(text ?? '').certificates;
  } catch {
    return [];
  }
}

/** The certificates one after the other, byte for byte what Go writes (spec 10, P-1). */
export function encodeCertificates(certificates: readonly Certificate[]): string {
  return certificates.map(({ der }) => encodePem(CERTIFICATE, der)).join('');
}

/** The first private key of a PEM text, in PKCS#1, PKCS#8 or SEC1 form whatever the label says (spec 10, P-5). */
export function readPrivateKey(text: string): KeyObject {
  checkPemSize(text);
  for (const block of pemBlocks(text)) {
    if (!block.ok || !PRIVATE_KEY.test(block.type)) continue;
    if (block.type === 'ENCRYPTED PRIVATE KEY' || block.hasHeaders) {
      throw new PkiError('KEY_INVALID', `the private key at line ${block.line} is encrypted, expected a plain one`);
    }
    return keptKeys.get(block.bytes.toString('latin1'), () => decodePrivateKey(block.bytes, block.line));
  }
  throw new PkiError('KEY_INVALID', 'the text holds no PEM block with a private key');
}

/** As many as an operator looks after; to find out in which form a key is costs more than everything else of it. */
const keptKeys = new Recent<KeyObject>(100);

/** One PKCS#1 (RSA) or SEC1 (ECDSA) block (spec 10, P-4); Ed25519, which has no such form, as PKCS#8. */
export function encodePrivateKey(key: KeyObject): string {
  const form = KEY_FORMS[key.asymmetricKeyType ?? ''];
  if (!form || key.type !== 'private') {
    throw new PkiError('KEY_UNSUPPORTED', 'expected a private RSA, ECDSA or Ed25519 key');
  }
  return encodePem(form.label, key.export({ format: 'der', type: form.type }));
}

const CERTIFICATE = 'CERTIFICATE';

const PRIVATE_KEY = /(^| )PRIVATE KEY$/;

const KEY_FORMS: Record<string, { label: string; type: 'pkcs1' | 'sec1' | 'pkcs8' }> = {
  rsa: { label: 'RSA PRIVATE KEY', type: 'pkcs1' },
  ec: { label: 'EC PRIVATE KEY', type: 'sec1' },
  ed25519: { label: 'PRIVATE KEY', type: 'pkcs8' },
};

export function checkPemSize(text: string): void {
  if (text.length > MAX_PEM_CHARACTERS) {
    throw new PkiError('TOO_LARGE', `PEM text has at most ${MAX_PEM_CHARACTERS} characters, found ${text.length}`);
  }
}

function parseBlock(block: { line: number; bytes: Buffer }): Certificate {
  try {
    return parseCertificate(block.bytes);
  } catch (error) {
    if (!isPkiError(error)) throw error;
    throw new PkiError(error.code, `the CERTIFICATE block at line ${block.line}: ${error.message}`, { cause: error });
  }
}

/** The error says where the key is, never what it is; OpenSSL's own error stays out. */
function decodePrivateKey(der: Buffer, line: number): KeyObject {
  const invalid = (problem: string) => new PkiError('KEY_INVALID', `the private key at line ${line} ${problem}`);
  if (!isOneSequence(der)) throw invalid('is not one DER structure');
  for (const type of ['pkcs1', 'pkcs8', 'sec1'] as const) {
    const key = tryDecode(der, type);
    if (!key) continue;
    if ((key.asymmetricKeyDetails?.modulusLength ?? 0) > MAX_RSA_BITS) {
      throw new PkiError('TOO_LARGE', `an RSA key has at most ${MAX_RSA_BITS} bits`);
    }
    if (!KEY_FORMS[key.asymmetricKeyType ?? '']) throw invalid(`is of the unsupported kind ${key.asymmetricKeyType}`);
    return key;
  }
  throw invalid('is neither PKCS#1, PKCS#8 nor SEC1');
}

function isOneSequence(der: Buffer): boolean {
  try {
    const reader = new DerReader(der, 'private key');
    reader.next(TAG.sequence, 'structure');
    return reader.atEnd;
  } catch {
    return false;
  }
}

function tryDecode(der: Buffer, type: 'pkcs1' | 'pkcs8' | 'sec1'): KeyObject | undefined {
  try {
    return createPrivateKey({ key: der, format: 'der', type });
  } catch {
    return undefined;
  }
}
