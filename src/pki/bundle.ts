import type { Certificate } from './certificate.ts';
import { PkiError } from './error.ts';
import { MAX_BUNDLE_CERTIFICATES } from './limits.ts';

/** The certificates that end strictly after `now`, whether or not they have begun (spec 10, B-3). */
export function unexpired<C extends Pick<Certificate, 'notAfter'>>(certificates: readonly C[], now: Date): C[] {
  return certificates.filter(({ notAfter }) => notAfter.getTime() > now.getTime());
}

/** The certificates once each, ascending by their bytes, so that the text does not depend on who is first (B-4, B-5). */
export function canonicalBundle(certificates: readonly Certificate[]): Certificate[] {
  if (certificates.length > MAX_BUNDLE_CERTIFICATES) {
    const found = `found ${certificates.length}`;
    throw new PkiError('TOO_LARGE', `a bundle has at most ${MAX_BUNDLE_CERTIFICATES} certificates, ${found}`);
  }
  const sorted = [...certificates].sort((a, b) => Buffer.compare(a.der, b.der));
  return sorted.filter((certificate, i) => !sorted[i - 1]?.der.equals(certificate.der));
}

/**
 * What a bundle becomes when `signer` is in use at `now` (spec 10, B-2 to B-5). Throws `PkiError` BUNDLE_EMPTY where nothing
 * would be left, because an empty bundle means that nobody is trusted any more (B-8).
 */
export function mergeBundle(stored: readonly Certificate[], signer: Certificate, now: Date): Certificate[] {
  const merged = canonicalBundle(unexpired([signer, ...stored], now));
  if (merged.length > 0) return merged;
  const expired = `${stored.length} stored certificates and the signer ${JSON.stringify(signer.subject.commonName)} have expired`;
  throw new PkiError('BUNDLE_EMPTY', `the bundle would be empty: ${expired}`);
}
