import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import type { Clock } from '../../kube/clock.ts';
import { isConflict, isNotFound } from '../../kube/error.ts';
import type { EventRecorder } from '../../kube/events.ts';
import type { Kube } from '../../kube/port.ts';
import { CERTIFICATE_SIGNING_REQUESTS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { readCertificateRequest } from '../../pki/csr.ts';
import { AGENT_USER } from './names.ts';

/** The signer of kubelets' client certificates. */
const KUBELET_SIGNER = 'kubernetes.io/kube-apiserver-client-kubelet';
/** The API server notes here for which node a pod's token was made; nobody can say so himself. */
const NODE_OF_TOKEN = 'authentication.kubernetes.io/node-name';
const NODE_USER = 'system:node:';
const NODES_GROUP = 'system:nodes';
const USAGES = new Set(['client auth', 'digital signature', 'key encipherment']);

/** Whether a request is one of an agent for the kubelet of its own node; else why not, or that it is somebody else's. */
export type Verdict =
  | { readonly is: 'approved'; readonly node: string }
  | { readonly is: 'denied'; readonly why: string }
  | { readonly is: 'not-ours' };

/** Judges a request for a client certificate of a kubelet whose own credentials have ended (spec 80, KA-5). */
export function judgeRequest({ spec, status }: CertificateSigningRequest): Verdict {
  if (spec.signerName !== KUBELET_SIGNER || spec.username !== AGENT_USER) return { is: 'not-ours' };
  if ((status?.conditions ?? []).length > 0) return { is: 'not-ours' };
  const denied = (why: string): Verdict => ({ is: 'denied', why });
  const nodes = spec.extra?.[NODE_OF_TOKEN] ?? [];
  const [node] = nodes;
  if (node === undefined || nodes.length !== 1) return denied('the token it was made with names no node');
  const wrongUsage = (spec.usages ?? []).find(usage => !USAGES.has(usage));
  if (wrongUsage !== undefined || !spec.usages?.includes('client auth'))
    return denied('expected the usages of a kubelet: client auth, digital signature');
  let request: ReturnType<typeof readCertificateRequest>;
  try {
    request = readCertificateRequest(Buffer.from(spec.request, 'base64').toString('latin1'));
  } catch {
    return denied('expected a certificate request in PEM');
  }
  const { subject, dnsNames, ipAddresses } = request;
  if (subject.commonName !== `${NODE_USER}${node}`) return denied(`expected the name ${NODE_USER}${node}`);
  if (subject.organizations.length !== 1 || subject.organizations[0] !== NODES_GROUP)
    return denied(`expected the organization ${NODES_GROUP} alone`);
  if (dnsNames.length + ipAddresses.length > 0) return denied('expected no host names');
  return { is: 'approved', node };
}

interface ApproveDeps {
  readonly kube: Kube;
  readonly clock: Clock;
  readonly events: Pick<EventRecorder, 'event'>;
  readonly requests: { get(key: { readonly name: string }): CertificateSigningRequest | undefined };
}

/** Approves it, or refuses it with the reason. */
export async function approveRequests(name: string, { kube, clock, events, requests }: ApproveDeps): Promise<void> {
  const request = requests.get({ name });
  if (request === undefined) return;
  const verdict = judgeRequest(request);
  if (verdict.is === 'not-ours') return;
  const isApproved = verdict.is === 'approved';
  const message = isApproved ? `asked for by the agent of node ${verdict.node}` : verdict.why;
  const at = formatRfc3339(clock.now());
  const condition = {
    type: isApproved ? 'Approved' : 'Denied',
    status: 'True',
    reason: isApproved ? 'RotundaApproved' : 'RotundaDenied',
    message,
    lastUpdateTime: at,
    lastTransitionTime: at,
  };
  const { resourceVersion } = request.metadata ?? {};
  const body = { metadata: { resourceVersion }, status: { conditions: [condition] } };
  try {
    await kube.patch(CERTIFICATE_SIGNING_REQUESTS, { name }, { type: 'merge', body }, { subresource: 'approval' });
  } catch (error) {
    if (isConflict(error) || isNotFound(error)) return;
    throw error;
  }
  if (isApproved) events.event('Normal', 'KubeletRequestApproved', `${name}: ${message}`);
  else events.event('Warning', 'KubeletRequestDenied', `${name}: ${message}`);
}
