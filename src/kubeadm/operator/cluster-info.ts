import { CORE_SCHEMA, dump, load } from 'js-yaml';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { Certificate } from '../../pki/certificate.ts';
import { certificatesIn, encodeCertificates } from '../../pki/pem.ts';
import { isFields } from '../exchange.ts';

const KUBECONFIG = 'kubeconfig';
const CA_DATA = 'certificate-authority-data';
const LONGEST_TEXT = 1024 * 1024;

/** The CAs that a node that joins is told of. */
export function certificatesOfClusterInfo(clusterInfo: ConfigMap | undefined): Certificate[] {
  const data = clusterOf(readKubeconfig(clusterInfo))?.[CA_DATA];
  return typeof data === 'string' ? certificatesIn(Buffer.from(data, 'base64').toString('latin1')) : [];
}

/**
 * The ConfigMap with these CAs for whoever joins, and all else as it is; the same one where nothing changes, undefined for one that cannot be
 * understood. The signatures of tokens are over this text, and follow by themselves.
 */
export function withCertificates(clusterInfo: ConfigMap, cas: readonly Certificate[]): ConfigMap | undefined {
  const held = certificatesOfClusterInfo(clusterInfo);
  if (held.length === cas.length && held.every((ca, i) => cas[i]?.der.equals(ca.der))) return clusterInfo;
  const kubeconfig = readKubeconfig(clusterInfo);
  const cluster = clusterOf(kubeconfig);
  if (cluster === undefined) return undefined;
  cluster[CA_DATA] = Buffer.from(encodeCertificates(cas), 'latin1').toString('base64');
  return { ...clusterInfo, data: { ...clusterInfo.data, [KUBECONFIG]: dump(kubeconfig, { lineWidth: -1 }) } };
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
