import { CORE_SCHEMA, load } from 'js-yaml';
import { isRecord } from './shape.ts';

/** What is public in a kubeconfig: the CAs its clusters are verified with, and the certificates its users show. */
export interface KubeconfigCertificates {
  readonly authorities: readonly NamedPem[];
  readonly clients: readonly NamedPem[];
  /** Files that are named instead: of certificates that users show. */
  readonly clientFiles: readonly string[];
}

/** Of the cluster or user with this name. */
export interface NamedPem {
  readonly name: string;
  readonly pem: string;
}

const LONGEST_KUBECONFIG = 1024 * 1024;

/** The certificates inside a kubeconfig, in YAML or JSON; undefined for texts that are none. Paths to files are not followed. */
export function certificatesOfKubeconfig(text: string): KubeconfigCertificates | undefined {
  // Nearly every text that comes here is something else: no need to read it all.
  if (text.length > LONGEST_KUBECONFIG || !/\b(certificate-authority|client-certificate)\b/.test(text))
    return undefined;
  let config: unknown;
  try {
    config = load(text, { schema: CORE_SCHEMA, maxAliases: 0 });
  } catch {
    return undefined;
  }
  if (!isRecord(config) || !(Array.isArray(config.clusters) || Array.isArray(config.users))) return undefined;
  return {
    authorities: embedded(config.clusters, 'cluster', 'certificate-authority-data'),
    clients: embedded(config.users, 'user', 'client-certificate-data'),
    clientFiles: values(config.users, 'user', 'client-certificate').map(({ value }) => value),
  };
}

function embedded(entries: unknown, part: string, field: string): NamedPem[] {
  return values(entries, part, field).map(({ name, value }) => ({
    name,
    pem: Buffer.from(value, 'base64').toString('utf8'),
  }));
}

function values(entries: unknown, part: string, field: string): { name: string; value: string }[] {
  return (Array.isArray(entries) ? entries : []).flatMap((entry: unknown) => {
    if (!isRecord(entry)) return [];
    const { name, [part]: inner } = entry;
    const value = isRecord(inner) ? inner[field] : undefined;
    if (typeof value !== 'string' || value === '') return [];
    return [{ name: String(name), value }];
  });
}
