import { type CertificateAndKey, ownCertificate, requireCA } from './authority.ts';
import { PkiError } from './error.ts';

/** From when to when a certificate counts, in whole seconds. */
export interface Validity {
  readonly notBefore: Date;
  readonly notAfter: Date;
}

/**
 * The validity of a certificate made now (spec 10, V-1 to V-4): from a second ago, for clocks that are a little behind, until
 * the lifetime is over or the signer ends, whichever is first. Fails if the signer is no CA or has ended.
 */
export function validityFor(
  { now, lifetimeMs }: { readonly now: Date; readonly lifetimeMs: number },
  signer: CertificateAndKey | undefined,
): Validity {
  if (!(lifetimeMs > 0))
    throw new PkiError('VALIDITY_INVALID', `expected a lifetime above 0 ms, found ${lifetimeMs} ms`);
  const startMs = now.getTime() - BACKDATE_MS;
  const endMs = Math.min(now.getTime() + lifetimeMs, signer ? endOf(signer, now) : Number.POSITIVE_INFINITY);
  if (!(startMs >= FIRST_EXPRESSIBLE_MS && endMs <= LAST_EXPRESSIBLE_MS)) {
    const found = `found ${startMs} ms to ${endMs} ms`;
    throw new PkiError('VALIDITY_INVALID', `expected a validity between the years 1 and 9999, ${found}`);
  }
  return { notBefore: wholeSeconds(startMs), notAfter: wholeSeconds(endMs) };
}

const BACKDATE_MS = 1000;
const FIRST_EXPRESSIBLE_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_EXPRESSIBLE_MS = Date.parse('9999-12-31T23:59:59Z');

function endOf(signer: CertificateAndKey, now: Date): number {
  requireCA(signer);
  const { notAfter, subject } = ownCertificate(signer);
  if (notAfter > now) return notAfter.getTime();
  const times = `at ${notAfter.toISOString()}, now is ${now.toISOString()}`;
  throw new PkiError('SIGNER_EXPIRED', `the signer ${JSON.stringify(subject.commonName)} expired ${times}`);
}

const wholeSeconds = (ms: number): Date => new Date(Math.floor(ms / 1000) * 1000);
