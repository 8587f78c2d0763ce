import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { Infrastructure } from '../../machine-config-api/cluster-config.ts';
import { CONFIG_MANAGED_NAMESPACE } from '../../machine-config-api/names.ts';
import { readBytes, readText } from './config-map.ts';
import { SourceError } from './error.ts';

export const KUBE_CLOUD_CONFIG = 'kube-cloud-config';
const CLOUD_CONF = 'cloud.conf';
const CLOUD_CA = 'ca-bundle.pem';
const PLATFORMS_WITH_CLOUD_CONF = new Set(['Azure', 'GCP', 'OpenStack', 'VSphere']);

export interface CloudConfig {
  /** Empty where there is none. */
  readonly config: string;
  readonly ca: Buffer | undefined;
}

/** The cloud's configuration and CA (spec 50, CL-1 to CL-4). Throws `SourceError` where the platform needs what is missing. */
export function cloudConfig(infra: Infrastructure, configMap: ConfigMap | undefined): CloudConfig {
  const platform = infra.status?.platformStatus?.type ?? '';
  const needsConf = PLATFORMS_WITH_CLOUD_CONF.has(platform);
  const object = `configmap ${CONFIG_MANAGED_NAMESPACE}/${KUBE_CLOUD_CONFIG}`;
  if (configMap === undefined) {
    if (!needsConf && !infra.spec?.cloudConfig?.name) return { config: '', ca: undefined };
    throw new SourceError(object, '', `${object} is required on platform ${platform} but not found`);
  }
  if (needsConf && !Object.hasOwn(configMap.data ?? {}, CLOUD_CONF)) {
    throw new SourceError(object, CLOUD_CONF, `${object} must have the key ${CLOUD_CONF} on platform ${platform}`);
  }
  const hasConf = Object.hasOwn(configMap.data ?? {}, CLOUD_CONF);
  const hasCa = [configMap.data, configMap.binaryData].some(part => Object.hasOwn(part ?? {}, CLOUD_CA));
  return {
    config: hasConf ? readText(configMap, CLOUD_CONF) : '',
    ca: hasCa ? readBytes(configMap, CLOUD_CA) : undefined,
  };
}
