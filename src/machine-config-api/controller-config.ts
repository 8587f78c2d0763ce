import type { ObjectReference } from 'kubernetes-types/core/v1.d.ts';
import type { Condition } from '../controller/condition.ts';
import { type KubeObject, resource } from '../kube/resource.ts';
import type { Dns, Infrastructure, MtuMigration, ProxyStatus } from './cluster-config.ts';

/** Bytes as they are on the wire. */
export type Base64 = string;

export interface ImageRegistryBundle {
  /** The registry; two dots stand before a port. */
  readonly file: string;
  readonly data: Base64;
}

export type IpFamilies = 'IPv4' | 'IPv6' | 'DualStack' | 'DualStackIPv6Primary';

export interface ControllerConfigSpec {
  kubeAPIServerServingCAData?: Base64 | null;
  rootCAData?: Base64 | null;
  cloudProviderCAData?: Base64 | null;
  cloudProviderConfig?: string;
  additionalTrustBundle?: Base64 | null;
  imageRegistryBundleData?: readonly ImageRegistryBundle[];
  imageRegistryBundleUserData?: readonly ImageRegistryBundle[];
  pullSecret?: ObjectReference;
  internalRegistryPullSecret?: Base64 | null;
  baseOSContainerImage?: string;
  baseOSExtensionsContainerImage?: string;
  osImageURL?: string;
  releaseImage?: string;
  images?: Readonly<Record<string, string>>;
  infra?: Infrastructure | null;
  dns?: Dns | null;
  proxy?: ProxyStatus | null;
  clusterDNSIP?: string;
  ipFamilies?: IpFamilies;
  networkType?: string;
  network?: { mtuMigration?: MtuMigration | null } | null;
  platform?: string;
  etcdDiscoveryDomain?: string;
}

/** One certificate of a bundle in the spec (spec 50, 4.3). */
export interface ControllerCertificate {
  readonly bundleFile: string;
  readonly subject: string;
  readonly signer: string;
  readonly notBefore?: string;
  readonly notAfter?: string;
}

export interface ControllerConfigStatus {
  observedGeneration?: number;
  conditions?: readonly Condition[];
  controllerCertificates?: readonly ControllerCertificate[];
}

export interface ControllerConfig extends KubeObject {
  spec?: ControllerConfigSpec;
  status?: ControllerConfigStatus;
}

export const CONTROLLER_CONFIGS = resource<ControllerConfig>(
  'machineconfiguration.openshift.io/v1',
  'ControllerConfig',
  'controllerconfigs',
  false,
);
