import type { ObjectReference } from 'kubernetes-types/core/v1.d.ts';
import type { LabelSelector } from 'kubernetes-types/meta/v1.d.ts';
import type { Condition } from '../controller/condition.ts';
import { type KubeObject, resource } from '../kube/resource.ts';

const API_VERSION = 'machineconfiguration.openshift.io/v1';

export type IntOrString = number | string;

export interface MachineConfigSpec {
  /** An Ignition document of any accepted version. */
  config?: object | null;
  osImageURL?: string;
  baseOSExtensionsContainerImage?: string;
  kernelArguments?: readonly string[] | null;
  extensions?: readonly string[];
  fips?: boolean;
  kernelType?: string;
}

export interface MachineConfig extends KubeObject {
  spec?: MachineConfigSpec;
}

export const MACHINE_CONFIGS = resource<MachineConfig>(API_VERSION, 'MachineConfig', 'machineconfigs', false);

export interface PoolConfiguration {
  name?: string;
  source?: readonly ObjectReference[];
}

export interface MachineConfigPoolSpec {
  machineConfigSelector?: LabelSelector;
  nodeSelector?: LabelSelector;
  paused?: boolean;
  maxUnavailable?: IntOrString;
  configuration?: PoolConfiguration;
}

export interface CertificateExpiry {
  bundle: string;
  subject: string;
  expiry?: string;
}

export interface MachineConfigPoolStatus {
  observedGeneration?: number;
  configuration?: PoolConfiguration;
  machineCount?: number;
  updatedMachineCount?: number;
  readyMachineCount?: number;
  unavailableMachineCount?: number;
  degradedMachineCount?: number;
  certExpirys?: readonly CertificateExpiry[];
  conditions?: readonly Condition[];
}

export interface MachineConfigPool extends KubeObject {
  spec?: MachineConfigPoolSpec;
  status?: MachineConfigPoolStatus;
}

export const MACHINE_CONFIG_POOLS = resource<MachineConfigPool>(
  API_VERSION,
  'MachineConfigPool',
  'machineconfigpools',
  false,
);

/** What KubeletConfig and ContainerRuntimeConfig have in common. */
export interface SubConfig extends KubeObject {
  spec?: { machineConfigPoolSelector?: LabelSelector };
  status?: SubConfigStatus;
}

export interface SubConfigStatus {
  observedGeneration?: number;
  /** A history; the last one counts. */
  conditions?: readonly Condition[];
}

export interface TlsSecurityProfile {
  type?: string;
  custom?: { ciphers?: readonly string[]; minTLSVersion?: string } | null;
}

export interface KubeletConfig extends SubConfig {
  spec?: {
    machineConfigPoolSelector?: LabelSelector;
    kubeletConfig?: object;
    logLevel?: number;
    autoSizingReserved?: boolean;
    tlsSecurityProfile?: TlsSecurityProfile;
  };
}

export const KUBELET_CONFIGS = resource<KubeletConfig>(API_VERSION, 'KubeletConfig', 'kubeletconfigs', false);

export interface ContainerRuntimeSettings {
  pidsLimit?: number;
  logLevel?: string;
  logSizeMax?: IntOrString;
  overlaySize?: IntOrString;
  defaultRuntime?: string;
}

export interface ContainerRuntimeConfig extends SubConfig {
  spec?: { machineConfigPoolSelector?: LabelSelector; containerRuntimeConfig?: ContainerRuntimeSettings };
}

export const CONTAINER_RUNTIME_CONFIGS = resource<ContainerRuntimeConfig>(
  API_VERSION,
  'ContainerRuntimeConfig',
  'containerruntimeconfigs',
  false,
);
