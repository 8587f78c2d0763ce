import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { HOSTNAMES, MANAGED_CERTIFICATE_TYPE } from '../certrotation/annotations.ts';
import { withCertificate } from '../certrotation/secret.ts';
import { days, seconds } from '../kube/duration.ts';
import type { CertificateAndKey } from '../pki/authority.ts';
import { issueClient, issueServing, issueSigner } from '../pki/issue.ts';
import { systemKeys } from '../pki/keys.ts';
import { encodeCertificates } from '../pki/pem.ts';

/** What the tests of this room share: one moment, and objects as a rotation controller writes them. */
export const NOW = new Date('2026-01-01T00:00:00Z');

export function daysFromNow(count: number): Date {
  return new Date(NOW.getTime() + days(count));
}

export function testSigner(name: string, madeDaysAgo = 1, validityDays = 60): Promise<CertificateAndKey> {
  const now = daysFromNow(-madeDaysAgo);
  const commonName = `ns_${name}@${Math.floor(now.getTime() / 1000)}`;
  return issueSigner({ commonName, lifetimeMs: days(validityDays), now, keys: systemKeys, algorithm: 'P-256' });
}

export function testClient(signer: CertificateAndKey, user: string, madeDaysAgo = 1): Promise<CertificateAndKey> {
  const now = daysFromNow(-madeDaysAgo);
  return issueClient({ signer, user: { name: user }, lifetimeMs: days(30), now, keys: systemKeys, algorithm: 'P-256' });
}

export function testServing(signer: CertificateAndKey, hostnames: readonly string[]): Promise<CertificateAndKey> {
  const now = new Date(NOW.getTime() - seconds(1));
  return issueServing({ signer, hostnames, lifetimeMs: days(30), now, keys: systemKeys, algorithm: 'P-256' });
}

export function secretOf(
  name: string,
  pair: CertificateAndKey,
  role: 'signer' | 'target',
  hostnames?: readonly string[],
): Secret {
  const annotations = hostnames === undefined ? {} : { [HOSTNAMES]: hostnames.join(',') };
  const secret: Secret = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: { namespace: 'ns', name, annotations, creationTimestamp: NOW.toISOString() },
    type: 'kubernetes.io/tls',
  };
  return withCertificate(secret, pair, role, days(15));
}

export function bundleOf(name: string, ...signers: readonly CertificateAndKey[]): ConfigMap {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { namespace: 'ns', name, labels: { [MANAGED_CERTIFICATE_TYPE]: 'ca-bundle' } },
    data: { 'ca-bundle.crt': encodeCertificates(signers.flatMap(({ chain }) => chain)) },
  };
}
