import type { ConfigMap, Secret, ServiceAccount } from 'kubernetes-types/core/v1.d.ts';
import { errorText } from '../../controller/aggregate-error.ts';
import type { Dns, Image, Infrastructure, Network, Proxy } from '../../machine-config-api/cluster-config.ts';
import type { ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import {
  CONFIG_MANAGED_NAMESPACE,
  CONFIG_NAMESPACE,
  KUBE_SYSTEM_NAMESPACE,
  MACHINE_OS_PULLER,
  MCO_NAMESPACE,
} from '../../machine-config-api/names.ts';
import { registriesFiles } from '../container-runtime/registries.ts';
import { cloudConfig, KUBE_CLOUD_CONFIG } from '../source/cloud-config.ts';
import { readBytes } from '../source/config-map.ts';
import { discoveredSpec } from '../source/discovered.ts';
import { SourceError } from '../source/error.ts';
import { OPERATOR_IMAGES, OS_IMAGE_URL, osImages, payloadImages } from '../source/images.ts';
import { kubeletClientCa } from '../source/kubelet-ca.ts';
import { internalPullSecret, PULL_SECRET } from '../source/pull-secret.ts';
import { MANAGED_REGISTRY_CA, registryBundles } from '../source/registry-ca.ts';
import { holdsCertificate, trustBundle } from '../source/trust-bundle.ts';
import { renderedPullSecret } from '../template/pull-secret.ts';

/** Everything ControllerConfig is made from, as it is now (spec 50, 3.3). */
export interface ClusterSources {
  configMap(namespace: string, name: string): ConfigMap | undefined;
  secret(namespace: string, name: string): Secret | undefined;
  serviceAccount(namespace: string, name: string): ServiceAccount | undefined;
  readonly infrastructure: Infrastructure | undefined;
  readonly network: Network | undefined;
  readonly proxy: Proxy | undefined;
  readonly dns: Dns | undefined;
  readonly image: Image | undefined;
  readonly hasImageRegistry: boolean;
}

export interface SourceOptions {
  readonly releaseVersion: string;
  readonly bringingUp: boolean;
}

export interface SourceReading {
  /** The fields of all sources that could be read. A field that is not here is not known, and keeps its value. */
  readonly spec: ControllerConfigSpec;
  readonly failures: readonly { readonly source: string; readonly message: string }[];
  /** Whether there is enough for a ControllerConfig where there is none yet. */
  readonly isEssentialComplete: boolean;
}

/**
 * Reads every source by its own rule (spec 50, 3.3 to 3.10). One that is missing or broken is told and leaves its fields out; it
 * holds back no other, where 4.16 stops at the first (trap 6).
 */
export function readSources(sources: ClusterSources, options: SourceOptions): SourceReading {
  const spec: ControllerConfigSpec = {
    pullSecret: { namespace: CONFIG_NAMESPACE, name: PULL_SECRET },
  };
  const failures: { source: string; message: string }[] = [];
  for (const [source, read] of Object.entries(READERS)) {
    try {
      Object.assign(spec, read(sources, options));
    } catch (error) {
      const message = errorText(error);
      // Two readers may stumble over the same object, and are told by the one who needs it most.
      if (ESSENTIAL.has(source) || !failures.some(failure => failure.message === message))
        failures.push({ source, message });
    }
  }
  const isEssentialComplete = !failures.some(({ source }) => ESSENTIAL.has(source));
  return { spec, failures, isEssentialComplete };
}

type Reader = (sources: ClusterSources, options: SourceOptions) => ControllerConfigSpec;

/** Without these no machine could be configured. */
const ESSENTIAL = new Set(['cluster', 'rootCa', 'kubeletCa', 'cloudConfig']);

const READERS: Readonly<Record<string, Reader>> = {
  images: (sources, { releaseVersion }) => ({
    images: payloadImages(sources.configMap(MCO_NAMESPACE, OPERATOR_IMAGES), releaseVersion),
  }),

  osImages: (sources, { releaseVersion }) => osImages(sources.configMap(MCO_NAMESPACE, OS_IMAGE_URL), releaseVersion),

  managedRegistryCas: sources => ({
    imageRegistryBundleData: registryBundles(sources.configMap(CONFIG_MANAGED_NAMESPACE, MANAGED_REGISTRY_CA)),
  }),

  userRegistryCas(sources) {
    if (sources.image === undefined) throw new SourceError('image cluster', '', 'image cluster not found');
    const name = sources.image.spec?.additionalTrustedCA?.name ?? '';
    return {
      imageRegistryBundleUserData: registryBundles(name === '' ? undefined : sources.configMap(CONFIG_NAMESPACE, name)),
    };
  },

  /** The controller makes files of it; what it refuses is told here. */
  registries({ image }) {
    registriesFiles({ image, contentPolicies: [], digestMirrors: [], tagMirrors: [] });
    return {};
  },

  rootCa(sources) {
    const object = `configmap ${KUBE_SYSTEM_NAMESPACE}/root-ca`;
    const found = sources.configMap(KUBE_SYSTEM_NAMESPACE, 'root-ca');
    if (found === undefined) throw new SourceError(object, '', `${object} not found`);
    return { rootCAData: checkedBundle(readBytes(found, 'ca.crt'), object, 'ca.crt') };
  },

  kubeletCa(sources, { bringingUp }) {
    const ca = kubeletClientCa({
      bootstrapComplete: isBootstrapComplete(sources),
      bringingUp,
      configMap: sources.configMap,
    });
    return { kubeAPIServerServingCAData: checkedBundle(ca, "the kubelet's client CA", 'ca-bundle.crt') };
  },

  /** Machines get it from the controller; only here is somebody told that it cannot be used. */
  pullSecret(sources) {
    renderedPullSecret(sources.secret(CONFIG_NAMESPACE, PULL_SECRET));
    return {};
  },

  internalPullSecret(sources, { bringingUp }) {
    // The first configuration must equal what the installer made (spec 50, KA-4, KA-5).
    if (!isBootstrapComplete(sources) || bringingUp) return { internalRegistryPullSecret: null };
    const text = internalPullSecret({
      hasImageRegistry: sources.hasImageRegistry,
      puller: sources.serviceAccount(MCO_NAMESPACE, MACHINE_OS_PULLER),
      pullerSecret: name => sources.secret(MCO_NAMESPACE, name),
      global: sources.secret(CONFIG_NAMESPACE, PULL_SECRET),
      dns: sources.dns,
    });
    return { internalRegistryPullSecret: text === undefined ? null : Buffer.from(text).toString('base64') };
  },

  cluster({ infrastructure, network, proxy, dns }) {
    if (infrastructure === undefined)
      throw new SourceError('infrastructure cluster', '', 'infrastructure cluster not found');
    if (network === undefined) throw new SourceError('network cluster', '', 'network cluster not found');
    return discoveredSpec(withoutVersion(infrastructure), network, proxy, dns && withoutVersion(dns));
  },

  trustBundle(sources) {
    const bytes = trustBundle(sources.proxy, name => sources.configMap(CONFIG_NAMESPACE, name));
    return { additionalTrustBundle: bytes.length === 0 ? null : bytes.toString('base64') };
  },

  cloudConfig(sources) {
    if (sources.infrastructure === undefined)
      throw new SourceError('infrastructure cluster', '', 'infrastructure cluster not found');
    const { config, ca } = cloudConfig(
      sources.infrastructure,
      sources.configMap(CONFIG_MANAGED_NAMESPACE, KUBE_CLOUD_CONFIG),
    );
    return {
      cloudProviderConfig: config,
      cloudProviderCAData: ca === undefined || ca.length === 0 ? null : ca.toString('base64'),
    };
  },
};

function isBootstrapComplete(sources: ClusterSources): boolean {
  return sources.configMap(KUBE_SYSTEM_NAMESPACE, 'bootstrap') !== undefined;
}

/** A bundle that machines verify others with. One without a certificate would shut everybody out: the last good one stays. */
function checkedBundle(bytes: Buffer, object: string, field: string): string {
  if (!holdsCertificate(bytes)) throw new SourceError(object, field, `${object}: ${field}: holds no certificate`);
  return bytes.toString('base64');
}

/** Embedded objects without what changes although they say the same. */
function withoutVersion<T extends Infrastructure | Dns>(object: T): T {
  const { name = '' } = object.metadata ?? {};
  return { ...object, metadata: { name } };
}
