import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import { MCO_NAMESPACE } from '../../machine-config-api/names.ts';
import { readText } from './config-map.ts';
import { SourceError } from './error.ts';

export const OPERATOR_IMAGES = 'machine-config-operator-images';
export const OS_IMAGE_URL = 'machine-config-osimageurl';
const IMAGES_KEY = 'images.json';

/** Names of ControllerConfig's `images`, and the member of `images.json` each is taken from. */
const IMAGE_KEYS: Readonly<Record<string, string>> = {
  machineConfigOperator: 'machineConfigOperator',
  apiServerWatcherKey: 'machineConfigOperator',
  infraImageKey: 'infraImage',
  keepalivedImage: 'keepalivedImage',
  corednsImage: 'corednsImage',
  haproxyImage: 'haproxyImage',
  baremetalRuntimeCfgImage: 'baremetalRuntimeCfgImage',
  kubeRbacProxyImage: 'kubeRbacProxy',
};

/** The images of the payload (spec 50, 3.3). Throws `SourceError` where they belong to another release. */
export function payloadImages(configMap: ConfigMap | undefined, releaseVersion: string): Record<string, string> {
  const object = `configmap ${MCO_NAMESPACE}/${OPERATOR_IMAGES}`;
  if (configMap === undefined) throw new SourceError(object, '', `${object} not found`);
  let images: Record<string, unknown>;
  try {
    images = JSON.parse(readText(configMap, IMAGES_KEY)) as Record<string, unknown>;
  } catch (error) {
    if (error instanceof SourceError) throw error;
    throw new SourceError(object, IMAGES_KEY, `${object}: ${IMAGES_KEY} is not JSON`);
  }
  if (typeof images !== 'object' || images === null || Array.isArray(images)) {
    throw new SourceError(object, IMAGES_KEY, `${object}: ${IMAGES_KEY} is not a JSON object`);
  }
  const found = typeof images['releaseVersion'] === 'string' ? images['releaseVersion'] : '';
  if (found !== releaseVersion) throw otherRelease(object, IMAGES_KEY, found, releaseVersion);
  return Object.fromEntries(
    Object.entries(IMAGE_KEYS).map(([name, member]) => [
      name,
      typeof images[member] === 'string' ? images[member] : '',
    ]),
  );
}

/** The images of the operating system (spec 50, 3.3). Throws `SourceError` where they belong to another release. */
export function osImages(
  configMap: ConfigMap | undefined,
  releaseVersion: string,
): Required<Pick<ControllerConfigSpec, 'baseOSContainerImage' | 'baseOSExtensionsContainerImage'>> {
  const object = `configmap ${MCO_NAMESPACE}/${OS_IMAGE_URL}`;
  if (configMap === undefined) throw new SourceError(object, '', `${object} not found`);
  const data = configMap.data ?? {};
  const found = data['releaseVersion'] ?? '';
  if (found !== releaseVersion) throw otherRelease(object, 'releaseVersion', found, releaseVersion);
  return {
    baseOSContainerImage: data['baseOSContainerImage'] ?? '',
    baseOSExtensionsContainerImage: data['baseOSExtensionsContainerImage'] ?? '',
  };
}

function otherRelease(object: string, field: string, found: string, wanted: string): SourceError {
  const message = `${object}: ${field}: refusing to read version ${JSON.stringify(found)}, operator version ${JSON.stringify(wanted)}`;
  return new SourceError(object, field, message);
}
