import type { CertificateSigningRequest } from 'kubernetes-types/certificates/v1.d.ts';
import { certificatesOfKubeconfig } from '../../inventory/kubeconfig.ts';
import { readPem } from '../../inventory/relations.ts';
import { isNotFound } from '../../kube/error.ts';
import { listAll } from '../../kube/list.ts';
import type { Kube } from '../../kube/port.ts';
import { CERTIFICATE_SIGNING_REQUESTS, CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import type { Certificate } from '../../pki/certificate.ts';

/** A certificate in use somewhere, what is shown along with it, and where. */
export interface UsedCertificate {
  readonly where: string;
  readonly certificate: Certificate;
  readonly intermediates?: readonly Certificate[] | undefined;
}

export interface CertificatesInUse {
  readonly inUse: readonly UsedCertificate[];
  /** Places that seem to hold certificates and could not be read. */
  readonly unreadable: readonly string[];
}

/** Every certificate that the API knows somebody may show: in Secrets and ConfigMaps of all namespaces, in kubeconfigs, in signing requests. */
export async function certificatesInUse(kube: Kube): Promise<CertificatesInUse> {
  const [secrets, configMaps, requests] = await Promise.all([
    listAll(kube, SECRETS),
    listAll(kube, CONFIG_MAPS),
    signingRequests(kube),
  ]);
  return joined([
    ...secrets.items.flatMap(({ metadata, data }) =>
      Object.entries(data ?? {}).map(([key, value]) =>
        usedIn(`secret/${metadata?.name} in ${metadata?.namespace} (${key})`, fromBase64(value)),
      ),
    ),
    ...configMaps.items.flatMap(({ metadata, data }) =>
      Object.entries(data ?? {}).map(([key, value]) =>
        usedIn(`configmap/${metadata?.name} in ${metadata?.namespace} (${key})`, value),
      ),
    ),
    ...requests.map(({ metadata, status }) =>
      usedIn(`certificatesigningrequest/${metadata?.name}`, fromBase64(status?.certificate ?? '')),
    ),
  ]);
}

/** An API may do without signing requests; any other failure must not look as if there were none. */
async function signingRequests(kube: Kube): Promise<CertificateSigningRequest[]> {
  try {
    return (await listAll(kube, CERTIFICATE_SIGNING_REQUESTS)).items;
  } catch (error) {
    if (isNotFound(error)) return [];
    throw error;
  }
}

/** The certificates of a PEM text or of the users of a kubeconfig. */
function usedIn(where: string, text: string): CertificatesInUse {
  if (text.includes('-----BEGIN CERTIFICATE-----')) return usedInPem(where, text);
  if (!text.includes('client-certificate-data')) return NONE;
  const clients = certificatesOfKubeconfig(text)?.clients;
  if (clients === undefined) return { inUse: [], unreadable: [where] };
  return joined(clients.map(({ name, pem }) => usedInPem(`${where}, user "${name}"`, pem)));
}

/** Each certificate that is no CA, with the others of the text as what is shown along with it. */
function usedInPem(where: string, text: string): CertificatesInUse {
  const { certificates, problem } = readPem(text);
  if (problem !== undefined) return { inUse: [], unreadable: [where] };
  const inUse = certificates
    .filter(({ isCA }) => !isCA)
    .map(certificate => ({ where, certificate, intermediates: certificates.filter(other => other !== certificate) }));
  return { inUse, unreadable: [] };
}

const NONE: CertificatesInUse = { inUse: [], unreadable: [] };

function joined(found: readonly CertificatesInUse[]): CertificatesInUse {
  return { inUse: found.flatMap(({ inUse }) => inUse), unreadable: found.flatMap(({ unreadable }) => unreadable) };
}

function fromBase64(text: string): string {
  return Buffer.from(text, 'base64').toString('latin1');
}
