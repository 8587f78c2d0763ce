import { CORE_SCHEMA, dump, load } from 'js-yaml';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn, encodeCertificates } from '../../pki/pem.ts';
import { isFields } from '../exchange.ts';
import { withoutSignatures } from './join-tokens.ts';

const KUBECONFIG = 'kubeconfig';
const CA_DATA = 'certificate-authority-data';
const LONGEST_TEXT = 1024 * 1024;

/** The CAs that a node that joins is told of. */
export function certificatesOfClusterInfo(clusterInfo: ConfigMap | undefined): Certificate[] {
  const data = clusterOf(readKubeconfig(clusterInfo))?.[CA_DATA];
  return typeof data === 'string' ? certificatesIn(Buffer.from(data, 'base64').toString('latin1')) : [];
}

/**
 * The ConfigMap with these CAs for whoever joins; the same one where it has them already, in whatever order, undefined for one that cannot
 * be understood. The signatures of tokens are over this text: they go, and kube-controller-manager makes others.
 */
export function withCertificates(
  clusterInfo: ConfigMap,
  cas: readonly Certificate[],
  now: Date,
): ConfigMap | undefined {
  const held = certificatesOfClusterInfo(clusterInfo);
  const isHeld = (ca: Certificate) => held.some(({ der }) => der.equals(ca.der));
  if (held.length === cas.length && cas.every(isHeld)) return clusterInfo;
  const kubeconfig = readKubeconfig(clusterInfo);
  const cluster = clusterOf(kubeconfig);
  if (cluster === undefined) return undefined;
  cluster[CA_DATA] = Buffer.from(encodeCertificates(cas), 'latin1').toString('base64');
  const text = dump(kubeconfig, { lineWidth: -1 });
  return withoutSignatures({ ...clusterInfo, data: { ...clusterInfo.data, [KUBECONFIG]: text } }, now);
}

function readKubeconfig(clusterInfo: ConfigMap | undefined): unknown {
  const text = clusterInfo?.data?.[KUBECONFIG];
  if (text === undefined || text.length > LONGEST_TEXT) return undefined;
  try {
    return load(text, { schema: CORE_SCHEMA, maxAliases: 0 });
  } catch {
    return undefined;
  }
}

function clusterOf(kubeconfig: unknown): Record<string, unknown> | undefined {
  if (!isFields(kubeconfig) || !Array.isArray(kubeconfig.clusters)) return undefined;
  const [first] = kubeconfig.clusters as unknown[];
  return isFields(first) && isFields(first.cluster) ? first.cluster : undefined;
}
