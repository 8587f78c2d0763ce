import { createHash } from 'node:crypto';
import type { Certificate } from '../pki/certificate.ts';

/** Annotation of a Node in which its agent says which CAs its processes verify with, and of whom they show a certificate (spec 90, HO-9). */
export const NODE_RECEIPTS = 'rotunda.dev/receipts';

/** What one reader of one file on a node has loaded, and shows. */
export interface NodeReceipt {
  /** Who verifies with it, as the trust graph calls it. */
  readonly process: string;
  /** On the node. */
  readonly file: string;
  /**
   * `started`: the process began with this content; `on-use`: whoever uses the file reads it then, so that what is in it is what they
   * have.
   */
  readonly kind: 'started' | 'on-use';
  /** The CAs by `caDigest`. */
  readonly cas: readonly string[];
  /** Of whom the certificate in it is that others are shown, by `issuerKey`; absent: there is none. */
  readonly shows?: string | undefined;
}

/** More than this is no list of CAs that anybody would keep. */
const MOST_RECEIPTS = 64;
const MOST_CAS = 256;
/** A Node has room for 256 KiB of annotations, and others need some. */
const LONGEST_TEXT = 64 * 1024;

/** One CA by the SHA-256 of its certificate, in hex. */
export function caDigest({ der }: Pick<Certificate, 'der'>): string {
  return createHash('sha256').update(der).digest('hex');
}

/** Who has signed a certificate, by the identifier of the key, in hex; undefined: it does not say. */
export function issuerKey({ authorityKeyId }: Pick<Certificate, 'authorityKeyId'>): string | undefined {
  return authorityKeyId?.length ? authorityKeyId.toString('hex') : undefined;
}

/** The key that a CA signs with, as `issuerKey` names it. */
export function signingKey({ subjectKeyId }: Pick<Certificate, 'subjectKeyId'>): string | undefined {
  return subjectKeyId?.length ? subjectKeyId.toString('hex') : undefined;
}

/** The same receipts give the same text, in whatever order they were found. */
export function encodeReceipts(receipts: readonly NodeReceipt[]): string {
  const sorted = receipts
    .map(({ process, file, kind, cas, shows }) => ({
      process,
      file,
      kind,
      cas: [...new Set(cas)].toSorted(),
      ...(shows !== undefined && { shows }),
    }))
    .toSorted((a, b) => (a.file + a.process < b.file + b.process ? -1 : 1));
  return JSON.stringify(sorted);
}

/** What a Node says; undefined where it says nothing, or nothing that can be understood: no evidence. */
export function decodeReceipts(text: string | undefined): NodeReceipt[] | undefined {
  if (text === undefined || text.length > LONGEST_TEXT) return undefined;
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return undefined;
  }
  return Array.isArray(found) && found.length <= MOST_RECEIPTS && found.every(isReceipt) ? found : undefined;
}

function isReceipt(value: unknown): value is NodeReceipt {
  const { process, file, kind, cas, shows } = (value ?? {}) as Record<string, unknown>;
  return (
    typeof process === 'string' &&
    typeof file === 'string' &&
    (kind === 'started' || kind === 'on-use') &&
    Array.isArray(cas) &&
    cas.length <= MOST_CAS &&
    cas.every(ca => typeof ca === 'string' && /^[0-9a-f]{64}$/.test(ca)) &&
    (shows === undefined || (typeof shows === 'string' && /^[0-9a-f]{2,128}$/.test(shows)))
  );
}
