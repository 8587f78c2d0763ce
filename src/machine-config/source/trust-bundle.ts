import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { Proxy } from '../../machine-config-api/cluster-config.ts';
import { CA_BUNDLE_KEY, CONFIG_NAMESPACE } from '../../machine-config-api/names.ts';
import { parseCertificate } from '../../pki/certificate.ts';
import { isPkiError } from '../../pki/error.ts';
import { pemBlocks } from '../../pki/pem-block.ts';
import { readBytes } from './config-map.ts';
import { SourceError } from './error.ts';

export const USER_CA_BUNDLE = 'user-ca-bundle';

/**
 * What administrators want machines to trust: the user's bundle, then the proxy's where it is another one, one after the
 * other without a separator (spec 50, TB-1 to TB-3). `configMap` reads from `openshift-config`. Throws `SourceError`.
 */
export function trustBundle(proxy: Proxy | undefined, configMap: (name: string) => ConfigMap | undefined): Buffer {
  const user = configMap(USER_CA_BUNDLE);
  const parts = user === undefined ? [] : [bundleOf(user, USER_CA_BUNDLE)];
  const proxyName = proxy?.spec?.trustedCA?.name ?? '';
  if (proxyName !== '' && proxyName !== USER_CA_BUNDLE) {
    const found = configMap(proxyName);
    const object = `configmap ${CONFIG_NAMESPACE}/${proxyName}`;
    if (found === undefined) throw new SourceError(object, '', `${object}, named by proxy cluster, not found`);
    parts.push(bundleOf(found, proxyName));
  }
  return Buffer.concat(parts);
}

function bundleOf(configMap: ConfigMap, name: string): Buffer {
  const metadata = { ...configMap.metadata, namespace: CONFIG_NAMESPACE, name };
  const bytes = readBytes({ ...configMap, metadata }, CA_BUNDLE_KEY);
  if (bytes.length > 0 && !holdsCertificate(bytes)) {
    const object = `configmap ${CONFIG_NAMESPACE}/${name}`;
    throw new SourceError(object, CA_BUNDLE_KEY, `${object}: ${CA_BUNDLE_KEY}: doesn't have a valid PEM bundle`);
  }
  return bytes;
}

/** Whether at least one certificate can be read; other text is passed on untouched (spec 50, TB-2). */
export function holdsCertificate(bytes: Buffer): boolean {
  for (const block of pemBlocks(bytes.toString('latin1'))) {
    if (block.ok && block.type === 'CERTIFICATE' && !block.hasHeaders && isCertificate(block.bytes)) return true;
  }
  return false;
}

function isCertificate(der: Buffer): boolean {
  try {
    parseCertificate(der);
    return true;
  } catch (error) {
    if (isPkiError(error)) return false;
    throw error;
  }
}
