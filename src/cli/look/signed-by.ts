import type { Certificate } from '../../pki/certificate.ts';
import { isSignedBy } from '../../pki/signature.ts';

/** Whether one of these has signed a certificate: by name, then by signature. */
export function isSignedByAny(certificate: Certificate, issuers: readonly Certificate[]): boolean {
  return issuers.some(issuer => {
    if (!issuer.subject.der.equals(certificate.issuer.der)) return false;
    try {
      return isSignedBy(certificate, issuer.publicKey);
    } catch {
      return false;
    }
  });
}

/** Its own issuer, by name. */
export function isSelfIssued({ subject, issuer }: Certificate): boolean {
  return subject.der.equals(issuer.der);
}
