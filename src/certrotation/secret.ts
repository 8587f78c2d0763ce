import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import { formatGoDuration } from '../kube/duration.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { type CertificateAndKey, loadCertificateAndKey } from '../pki/authority.ts';
import type { KeyAlgorithm } from '../pki/keys.ts';
import { encodeCertificates, encodePrivateKey } from '../pki/pem.ts';
import {
  type Annotations,
  type CertificateRole,
  ISSUER,
  MANAGED_CERTIFICATE_TYPE,
  NOT_AFTER,
  NOT_BEFORE,
  REFRESH_PERIOD,
} from './annotations.ts';

export const TLS_SECRET = 'kubernetes.io/tls';
export const TLS_CERT = 'tls.crt';
export const TLS_KEY = 'tls.key';

/** RSA 2048 is what existing readers expect (spec 10, 5.1). */
export const DEFAULT_KEY_ALGORITHM: KeyAlgorithm = 'RSA-2048';

/** The annotations of an object as a map, never undefined. */
export function annotationsOf(object: { metadata?: { annotations?: Annotations } }): Annotations {
  return object.metadata?.annotations ?? {};
}

/** The text under a data key; undefined when the key is absent. Go writes a key without bytes as null. */
export function dataText(secret: Secret, key: string): string | undefined {
  const encoded: string | null | undefined = secret.data?.[key];
  return encoded === undefined ? undefined : Buffer.from(encoded ?? '', 'base64').toString('latin1');
}

/** Loads certificate and key, which must belong together; throws `PkiError` saying what is wrong. */
export function loadSecret(secret: Secret): CertificateAndKey {
  return loadCertificateAndKey(dataText(secret, TLS_CERT), dataText(secret, TLS_KEY));
}

/**
 * The Secret with the type it must have. Data is kept when both keys are there; otherwise it is emptied, and the caller
 * must regenerate in the same pass (spec 10, Y-1 to Y-3).
 */
export function withTlsType(secret: Secret): { secret: Secret; changed: boolean; emptied: boolean } {
  if (secret.type === TLS_SECRET) return { secret, changed: false, emptied: false };
  const complete = secret.data?.[TLS_CERT] !== undefined && secret.data[TLS_KEY] !== undefined;
  const data = complete ? { data: secret.data as Record<string, string> } : { data: {} };
  return { secret: { ...secret, type: TLS_SECRET, ...data }, changed: true, emptied: !complete };
}

/** The Secret with new key material and everything that is written together with it. Other data keys stay (P-6). */
export function withCertificate(
  secret: Secret,
  certificate: CertificateAndKey,
  role: CertificateRole,
  refreshMs: number,
): Secret {
  const leaf = certificate.chain[0];
  if (leaf === undefined) throw new RangeError('a certificate chain has at least one certificate');
  return {
    ...secret,
    metadata: {
      ...secret.metadata,
      annotations: {
        ...annotationsOf(secret),
        [NOT_BEFORE]: formatRfc3339(leaf.notBefore),
        [NOT_AFTER]: formatRfc3339(leaf.notAfter),
        [ISSUER]: leaf.issuer.commonName,
        [REFRESH_PERIOD]: formatGoDuration(refreshMs),
      },
      labels: { ...secret.metadata?.labels, [MANAGED_CERTIFICATE_TYPE]: role },
    },
    data: {
      ...secret.data,
      [TLS_CERT]: base64(encodeCertificates(certificate.chain)),
      [TLS_KEY]: base64(encodePrivateKey(certificate.key)),
    },
  };
}

function base64(text: string): string {
  return Buffer.from(text, 'latin1').toString('base64');
}

/** The Secret with other annotations, undefined taking one away; the same one where nothing changes. */
export function withAnnotations(secret: Secret, changes: Readonly<Record<string, string | undefined>>): Secret {
  const before = annotationsOf(secret);
  if (Object.entries(changes).every(([name, value]) => before[name] === value)) return secret;
  const kept = Object.entries({ ...before, ...changes }).filter(([, value]) => value !== undefined);
  return { ...secret, metadata: { ...secret.metadata, annotations: Object.fromEntries(kept) as Annotations } };
}
