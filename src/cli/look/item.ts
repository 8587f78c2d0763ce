import { factsOf } from '../../inventory/certificate-facts.ts';
import { EXPIRING_SOON_DAYS } from '../../inventory/certificates.ts';
import type { CertificateItem, CertificateState, SeenCertificate } from '../../inventory/model.ts';
import { days } from '../../kube/duration.ts';
import type { Certificate } from '../../pki/certificate.ts';

/** What is known of a certificate that is in no Secret. */
export interface Sighting extends Omit<SeenCertificate, 'isExternal' | 'isMissing' | 'isNormal'> {
  readonly name: string;
  readonly role: CertificateItem['role'];
  readonly purpose?: string | undefined;
  /** The one that counts, and what comes with it; empty: see `problem`, or it is missing. */
  readonly certificates: readonly Certificate[];
  /** It cannot be read at all. */
  readonly problem?: string | undefined;
  /** It can be read, and something about it is wrong. */
  readonly mismatch?: string | undefined;
  readonly isExternal?: boolean | undefined;
  readonly isMissing?: boolean | undefined;
  readonly isNormal?: boolean | undefined;
  readonly notes?: readonly string[] | undefined;
}

/** What ends with a CA. */
export const AT_END_OF_CA = 'everything it has signed is refused by everybody who verifies with it';

/** A process that renews by itself is late when less of the life than this is left. */
const LATE = 0.1;

/** A sighting as an item of the inventory. */
export function seenItem(sighting: Sighting, now: Date): CertificateItem {
  const { name, role, purpose, certificates, notes = [], isExternal = false, isMissing = false, isNormal } = sighting;
  const { places, knownAs, authority, renewal, renewWith, renewsAt, atItsEnd } = sighting;
  const [certificate, ...rest] = certificates;
  return {
    metadata: { name },
    role,
    ...stateOf(sighting, certificate, now),
    ...(certificate === undefined ? {} : { certificate: factsOf(certificate) }),
    chainLength: rest.length,
    purpose,
    trustedBy: [],
    notes,
    seen: {
      places,
      knownAs,
      authority,
      renewal,
      renewWith,
      isExternal,
      isMissing,
      isNormal,
      atItsEnd,
      ...(renewsAt !== undefined && { renewsAt }),
    },
  };
}

function stateOf(
  { problem, mismatch, isMissing, renewal }: Sighting,
  certificate: Certificate | undefined,
  now: Date,
): { state: CertificateState; problem?: string | undefined } {
  if (isMissing) return { state: 'Missing', problem: problem ?? 'it is not there' };
  if (certificate === undefined) return { state: 'Unusable', problem: problem ?? 'there is no certificate in it' };
  const { notBefore, notAfter } = certificate;
  if (notAfter < now) return { state: 'Expired', problem: `expired at ${notAfter.toISOString()}` };
  const wrong = problem ?? mismatch ?? (notBefore > now ? `begins at ${notBefore.toISOString()}` : undefined);
  if (wrong !== undefined) return { state: 'NeedsAttention', problem: wrong };
  const leftMs = notAfter.getTime() - now.getTime();
  const isByItself = renewal === 'kubelet' || renewal === 'rotunda';
  const isLate = isByItself && leftMs < LATE * (notAfter.getTime() - notBefore.getTime());
  const whose = renewal === 'kubelet' ? 'the kubelet' : 'rotunda';
  if (isLate) return { state: 'Expiring', problem: `it ends soon, and ${whose} has not renewed it yet` };
  if (!isByItself && leftMs < days(EXPIRING_SOON_DAYS)) {
    return { state: 'Expiring', problem: 'it ends soon, and nobody renews it by itself' };
  }
  return { state: 'Good' };
}
