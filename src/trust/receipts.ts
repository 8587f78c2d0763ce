import { createHash } from 'node:crypto';
import type { Certificate } from '../pki/certificate.ts';

/** Annotation of a Node in which its agent says which CAs the processes of the node verify with (spec 90, HO-9). */
export const NODE_RECEIPTS = 'rotunda.dev/receipts';

/** What one reader of one file on a node has loaded. */
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

/** The same receipts give the same text, in whatever order they were found. */
export function encodeReceipts(receipts: readonly NodeReceipt[]): string {
  const sorted = receipts
    .map(({ process, file, kind, cas }) => ({ process, file, kind, cas: [...new Set(cas)].toSorted() }))
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
  const { process, file, kind, cas } = (value ?? {}) as Record<string, unknown>;
  return (
    typeof process === 'string' &&
    typeof file === 'string' &&
    (kind === 'started' || kind === 'on-use') &&
    Array.isArray(cas) &&
    cas.length <= MOST_CAS &&
    cas.every(ca => typeof ca === 'string' && /^[0-9a-f]{64}$/.test(ca))
  );
}
