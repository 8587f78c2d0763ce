import { formatRfc3339 } from '../../kube/time.ts';
import type { ControllerCertificate, ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import { parseCertificate } from '../../pki/certificate.ts';
import { isPkiError } from '../../pki/error.ts';
import { pemBlocks } from '../../pki/pem-block.ts';
import { distinguishedName } from '../distinguished-name.ts';

export const KUBELET_CA_BUNDLE = 'KubeAPIServerServingCAData';

/** More certificates than this are not listed: an object of the API has its limit. */
const MOST_LISTED = 1000;

/** Every certificate of the bundles that nodes get, with its dates (spec 50, CT-1, CT-2, CT-5). */
export function certificateInventory(spec: ControllerConfigSpec): ControllerCertificate[] {
  const bundles: [string, string | null | undefined][] = [
    [KUBELET_CA_BUNDLE, spec.kubeAPIServerServingCAData],
    ['CloudProviderCAData', spec.cloudProviderCAData],
    ['RootCAData', spec.rootCAData],
    ['AdditionalTrustBundle', spec.additionalTrustBundle],
    ...[...(spec.imageRegistryBundleData ?? []), ...(spec.imageRegistryBundleUserData ?? [])].map(
      ({ file, data }) => [file, data] as [string, string],
    ),
  ];
  const listed = bundles.flatMap(([file, data]) => certificatesOf(file, Buffer.from(data ?? '', 'base64')));
  return listed.slice(0, MOST_LISTED);
}

/** In the order of the file, up to the first block that is no certificate (spec 50, CT-2 as later releases have it). */
function certificatesOf(bundleFile: string, bytes: Buffer): ControllerCertificate[] {
  const found: ControllerCertificate[] = [];
  for (const block of pemBlocks(bytes.toString('latin1'))) {
    if (!block.ok) continue;
    const certificate = read(block.bytes);
    if (certificate === undefined) break;
    found.push({
      bundleFile,
      subject: distinguishedName(certificate.subject.der),
      signer: distinguishedName(certificate.issuer.der),
      notBefore: formatRfc3339(certificate.notBefore),
      notAfter: formatRfc3339(certificate.notAfter),
    });
  }
  return found;
}

function read(der: Buffer): ReturnType<typeof parseCertificate> | undefined {
  try {
    return parseCertificate(der);
  } catch (error) {
    if (isPkiError(error)) return undefined;
    throw error;
  }
}
