import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import { KUBELET_CLIENT_SIGNER, signedStatus } from '../../../api/auth/signer.ts';
import { systemClock } from '../../../kube/clock.ts';
import type { Kube } from '../../../kube/port.ts';
import { CERTIFICATE_SIGNING_REQUESTS } from '../../../kube/resource.ts';
import { formatRfc3339 } from '../../../kube/time.ts';
import { readCertificateRequest } from '../../../pki/csr.ts';
import { systemKeys } from '../../../pki/keys.ts';
import { readCertificates, readPrivateKey } from '../../../pki/pem.ts';
import type { Loaded } from './program.ts';

/** Approves what a kubelet asks for itself with the certificate that it has. */
export async function approveOwn(kube: Kube, request: CertificateSigningRequest | undefined): Promise<void> {
  if (request === undefined || (request.status?.conditions ?? []).length > 0 || !isOwn(request)) return;
  const { name = '', resourceVersion } = request.metadata ?? {};
  const at = formatRfc3339(systemClock.now());
  const approved = {
    type: 'Approved',
    status: 'True',
    reason: 'AutoApproved',
    message: 'a kubelet asks for its own certificate, with the one that it has',
    lastUpdateTime: at,
  };
  const body = { metadata: { resourceVersion }, status: { conditions: [approved] } };
  await kube.patch(CERTIFICATE_SIGNING_REQUESTS, { name }, { type: 'merge', body }, { subresource: 'approval' });
}

function isOwn({ spec }: CertificateSigningRequest): boolean {
  const { signerName, username = '', groups = [] } = spec;
  if (signerName !== KUBELET_CLIENT_SIGNER || !username.startsWith('system:node:') || !groups.includes('system:nodes'))
    return false;
  const { subject } = readCertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
  return subject.commonName === username;
}

/** Issues what is approved, with the pair of `--cluster-signing-cert-file` as it is in effect now. */
export async function issueApproved(
  kube: Kube,
  request: CertificateSigningRequest | undefined,
  loaded: Loaded,
  lifetimeMs: number,
): Promise<void> {
  const [certificate, key] = [loaded('cluster-signing'), loaded('cluster-signing', 1)];
  if (request === undefined || certificate === undefined || key === undefined) return;
  const authority = () => ({ chain: readCertificates(certificate).certificates, key: readPrivateKey(key) });
  const status = await signedStatus(request, { authority, keys: systemKeys, lifetimeMs }, systemClock.now());
  if (status === undefined) return;
  const { name = '', resourceVersion } = request.metadata ?? {};
  const body = { metadata: { resourceVersion }, status };
  await kube.patch(CERTIFICATE_SIGNING_REQUESTS, { name }, { type: 'merge', body }, { subresource: 'status' });
}
