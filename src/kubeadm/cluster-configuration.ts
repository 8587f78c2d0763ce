import { CORE_SCHEMA, load } from 'js-yaml';
import { isFields } from './exchange.ts';
import { CERTIFICATES_DIRECTORY } from './names.ts';

/** What is of use here of the ClusterConfiguration in `kube-system/kubeadm-config` (spec 80, 1). */
export interface ClusterConfiguration {
  readonly kubernetesVersion: string | undefined;
  readonly certificatesDirectory: string;
  readonly controlPlaneEndpoint: string | undefined;
  readonly etcd: 'stacked' | 'external';
}

const LONGEST_TEXT = 1024 * 1024;

/** Reads it; undefined for a text that is none. */
export function readClusterConfiguration(text: string | undefined): ClusterConfiguration | undefined {
  if (text === undefined || text.length > LONGEST_TEXT) return undefined;
  let found: unknown;
  try {
    found = load(text, { schema: CORE_SCHEMA, maxAliases: 0 });
  } catch {
    return undefined;
  }
  if (!isFields(found) || found.kind !== 'ClusterConfiguration') return undefined;
  const { kubernetesVersion, certificatesDir, controlPlaneEndpoint, etcd } = found;
  return {
    kubernetesVersion: textOf(kubernetesVersion),
    certificatesDirectory: textOf(certificatesDir) ?? CERTIFICATES_DIRECTORY,
    controlPlaneEndpoint: textOf(controlPlaneEndpoint),
    etcd: isFields(etcd) && isFields(etcd.external) ? 'external' : 'stacked',
  };
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
