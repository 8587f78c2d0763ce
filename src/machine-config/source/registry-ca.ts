import { isUtf8 } from 'node:buffer';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { decodeStrictBase64 } from '../../machine-config-api/base64.ts';
import type { ImageRegistryBundle } from '../../machine-config-api/controller-config.ts';
import { CONFIG_MANAGED_NAMESPACE } from '../../machine-config-api/names.ts';

export const MANAGED_REGISTRY_CA = 'image-registry-ca';
export const MERGED_REGISTRY_CA = 'merged-trusted-image-registry-ca';

/**
 * The CAs of registries in a ConfigMap: `data` keys ascending, then `binaryData` keys ascending (spec 50, IR-1, IR-2). A text in
 * `data` is decoded where it is strict base64 of a text: what decodes to anything else was never meant to, and is itself.
 */
export function registryBundles(configMap: ConfigMap | undefined): ImageRegistryBundle[] {
  const [data, binaryData] = [configMap?.data ?? {}, configMap?.binaryData ?? {}];
  return [
    ...Object.keys(data)
      .sort()
      .map(file => ({ file, data: pemBytes(data[file] as string).toString('base64') })),
    ...Object.keys(binaryData)
      .sort()
      .map(file => ({ file, data: Buffer.from(binaryData[file] as string, 'base64').toString('base64') })),
  ];
}

function pemBytes(text: string): Buffer {
  const decoded = decodeStrictBase64(text);
  return decoded !== undefined && isUtf8(decoded) ? decoded : Buffer.from(text, 'utf8');
}

/**
 * Both lists as one ConfigMap for readers outside of machine configuration: user entries replace managed ones of the same
 * name (spec 50, IR-3). An entry whose source is gone is gone, also when it was the last one (IR-4 without its defect).
 */
export function mergedRegistryCa(
  managed: readonly ImageRegistryBundle[],
  user: readonly ImageRegistryBundle[],
): ConfigMap {
  const entries = [...managed, ...user].map(({ file, data }) => [file, Buffer.from(data, 'base64').toString('utf8')]);
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      namespace: CONFIG_MANAGED_NAMESPACE,
      name: MERGED_REGISTRY_CA,
      annotations: { 'openshift.io/description': 'Created and managed by the machine-config-operator' },
    },
    data: Object.fromEntries(entries) as Record<string, string>,
  };
}

/** Where a node keeps the CA of a registry: two dots become the colon before a port (spec 50, IR-2). */
export function registryCaPath(file: string): string {
  return `/etc/docker/certs.d/${file.replaceAll('..', ':')}/ca.crt`;
}
