import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import type { CertificateAndKey } from '../../pki/authority.ts';
import type { KeyUsage } from '../../pki/certificate.ts';
import type { CertificateRequest } from '../../pki/csr.ts';
import { issueForPublicKey } from '../../pki/issue.ts';
import type { Keys } from '../../pki/keys.ts';
import { encodeCertificates } from '../../pki/pem.ts';
import { CLIENT_SIGNER, readSigningRequest } from './signing-request.ts';
import { SYSTEM_NODES } from './user.ts';

export const KUBELET_CLIENT_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
export const KUBELET_SERVING_SIGNER = 'kubernetes.io/kubelet-serving';

export interface SignerOptions {
  /** The CA for one signer name; undefined when this signer is not ours. Asked each time because CAs rotate. */
  readonly authority: (signerName: string) => CertificateAndKey | undefined;
  readonly keys: Keys;
  /** The longest lifetime; requests may ask for less. */
  readonly lifetimeMs: number;
}

/** Requests for less get this much: a certificate that ends before it is fetched helps nobody. */
const SHORTEST_LIFETIME_MS = minutes(10);

/**
 * The status of an approved request with its certificate, or with the condition `Failed` where the signer's rules are
 * not met. Undefined when there is nothing to do: not approved, decided already, or not for a signer of ours.
 */
export async function signedStatus(
  object: CertificateSigningRequest,
  options: SignerOptions,
  now: Date,
): Promise<CertificateSigningRequest['status']> {
  const { spec, status = {} } = object;
  const has = (type: string) =>
    (status.conditions ?? []).some(condition => condition.type === type && condition.status === 'True');
  if (!has('Approved') || has('Denied') || has('Failed') || (status.certificate ?? '') !== '') return undefined;
  const signer = SIGNERS.get(spec.signerName);
  const authority = signer === undefined ? undefined : options.authority(spec.signerName);
  if (signer === undefined || authority === undefined) return undefined;
  const usages = spec.usages ?? [];
  const parsed = readSigningRequest(spec.request);
  const why = parsed.ok ? signer(parsed.request, usages) : parsed.why;
  if (!parsed.ok || why !== undefined) return failed(status, why ?? '', now);
  const asked = spec.expirationSeconds === undefined ? options.lifetimeMs : seconds(spec.expirationSeconds);
  const certificate = await issueForPublicKey({
    keys: options.keys,
    now,
    lifetimeMs: Math.min(Math.max(asked, SHORTEST_LIFETIME_MS), options.lifetimeMs),
    signer: authority,
    publicKey: parsed.request.publicKey,
    subject: parsed.request.subject,
    dnsNames: parsed.request.dnsNames,
    ipAddresses: parsed.request.ipAddresses,
    keyUsages: usages.flatMap(usage => KEY_USAGES[usage] ?? []),
    extKeyUsages: usages.flatMap(usage => EXTENDED_KEY_USAGES[usage] ?? []),
  });
  return { ...status, certificate: Buffer.from(encodeCertificates([certificate])).toString('base64') };
}

type SignerRule = (request: CertificateRequest, usages: readonly string[]) => string | undefined;

/** Why a signer does not sign a request; undefined when it does. */
const SIGNERS: ReadonlyMap<string, SignerRule> = new Map<string, SignerRule>([
  [
    CLIENT_SIGNER,
    (request, usages) => {
      const odd = usages.find(usage => !['digital signature', 'key encipherment', 'client auth'].includes(usage));
      if (odd !== undefined) return `invalid usage for client certificate: ${odd}`;
      if (!usages.includes('client auth')) return 'missing required usage for client certificate: client auth';
      return whyOtherNames(request);
    },
  ],
  [
    KUBELET_CLIENT_SIGNER,
    (request, usages) => {
      if (!isForNodes(request)) return 'subject organization is not system:nodes';
      if (request.dnsNames.length > 0) return 'DNS subjectAltNames are not allowed';
      if (request.ipAddresses.length > 0) return 'IP subjectAltNames are not allowed';
      return whyOtherNames(request) ?? whyNotNodeName(request) ?? whyUsages(usages, 'client auth');
    },
  ],
  [
    KUBELET_SERVING_SIGNER,
    (request, usages) => {
      if (!isForNodes(request)) return 'subject organization is not system:nodes';
      if (request.dnsNames.length === 0 && request.ipAddresses.length === 0)
        return 'DNS or IP subjectAltName is required';
      return whyOtherNames(request) ?? whyUsages(usages, 'server auth') ?? whyNotNodeName(request);
    },
  ],
]);

const KEY_USAGES: Readonly<Record<string, KeyUsage>> = {
  'digital signature': 'digitalSignature',
  'key encipherment': 'keyEncipherment',
};
const EXTENDED_KEY_USAGES: Readonly<Record<string, string>> = {
  'client auth': 'clientAuth',
  'server auth': 'serverAuth',
};

function isForNodes(request: CertificateRequest): boolean {
  const { organizations } = request.subject;
  return organizations.length === 1 && organizations[0] === SYSTEM_NODES;
}

function whyNotNodeName(request: CertificateRequest): string | undefined {
  const named = request.subject.commonName.startsWith('system:node:');
  return named ? undefined : 'subject common name does not begin with system:node:';
}

/** Email addresses and URIs have no meaning in a cluster; what is asked for is never silently left out. */
function whyOtherNames(request: CertificateRequest): string | undefined {
  if (request.emailAddresses.length > 0) return 'Email subjectAltNames are not allowed';
  return request.uris.length > 0 ? 'URI subjectAltNames are not allowed' : undefined;
}

/** Key encipherment is for RSA keys; others come without. */
function whyUsages(usages: readonly string[], purpose: string): string | undefined {
  const wanted = [purpose, 'digital signature'];
  const rest = usages.filter(usage => usage !== 'key encipherment');
  const matches = rest.length === wanted.length && wanted.every(usage => rest.includes(usage));
  return matches ? undefined : `usages did not match [${[purpose, 'digital signature', 'key encipherment'].join(' ')}]`;
}

function failed(
  status: NonNullable<CertificateSigningRequest['status']>,
  message: string,
  now: Date,
): CertificateSigningRequest['status'] {
  const stamp = formatRfc3339(now);
  const condition = { type: 'Failed', status: 'True', reason: 'SignerValidationFailure', message };
  const times = { lastUpdateTime: stamp, lastTransitionTime: stamp };
  return { ...status, conditions: [...(status.conditions ?? []), { ...condition, ...times }] };
}
