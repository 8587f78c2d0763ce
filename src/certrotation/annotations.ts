/** Keys of the annotations and the label that carry all rotation state (spec 10, 2.4). */
export const NOT_BEFORE = 'auth.openshift.io/certificate-not-before';
export const NOT_AFTER = 'auth.openshift.io/certificate-not-after';
export const ISSUER = 'auth.openshift.io/certificate-issuer';
export const HOSTNAMES = 'auth.openshift.io/certificate-hostnames';
export const REFRESH_PERIOD = 'certificates.openshift.io/refresh-period';
/** Ours, on a leaf: somebody had it made before its signer was known to be loaded everywhere, and when (spec 70, 9.2). */
export const GATE_OVERRIDE = 'rotunda.dev/regeneration-gate-overridden';
export const MANAGED_CERTIFICATE_TYPE = 'auth.openshift.io/managed-certificate-type';

export type Annotations = Record<string, string>;
export type CertificateRole = 'signer' | 'ca-bundle' | 'target';

/** What a person should know about an object; each text that is set goes into its annotation. */
export interface AdditionalAnnotations {
  readonly jiraComponent?: string | undefined;
  readonly description?: string | undefined;
  readonly autoRegenerateAfterOfflineExpiry?: string | undefined;
  readonly testName?: string | undefined;
}

const DESCRIPTIVE: Record<keyof AdditionalAnnotations, string> = {
  jiraComponent: 'openshift.io/owning-component',
  description: 'openshift.io/description',
  autoRegenerateAfterOfflineExpiry: 'certificates.openshift.io/auto-regenerate-after-offline-expiry',
  testName: 'certificates.openshift.io/test-name',
};

/** The annotations with every configured text in place; an empty text neither sets nor removes (spec 10, M-1). */
export function withDescriptions(
  existing: Annotations,
  configured: AdditionalAnnotations,
): { result: Annotations; changed: boolean } {
  const result = { ...existing };
  for (const [field, key] of Object.entries(DESCRIPTIVE)) {
    const text = configured[field as keyof AdditionalAnnotations];
    if (text) result[key] = text;
  }
  return { result, changed: Object.keys(result).some(key => result[key] !== existing[key]) };
}

/** The role an object says it has; anything unexpected reads as `unknown` (spec 10, L-2). */
export function roleOf(labels: Record<string, string> | undefined): CertificateRole | 'unknown' {
  const value = labels?.[MANAGED_CERTIFICATE_TYPE];
  return value === 'signer' || value === 'ca-bundle' || value === 'target' ? value : 'unknown';
}

/** When somebody last asked for a new certificate with a command of ours. */
export const REQUESTED_AT = 'rotunda.dev/requested-at';
/** On a signer: names of earlier seconds may have been given to a CA that no object holds any more. */
export const NAME_FREE_AT = 'rotunda.dev/name-free-at';
