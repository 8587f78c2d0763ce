import type { NodeConfig } from '../../machine-config-api/cluster-config.ts';
import type { ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import type { IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import type { KubeletConfig, TlsSecurityProfile } from '../../machine-config-api/machine-config.ts';
import { WORKER_POOL } from '../../machine-config-api/names.ts';
import { generatedFile } from '../sub-config/generated.ts';
import {
  KUBELET_CONF_PATH,
  KUBELET_LOG_LEVEL_PATH,
  kubeletConfiguration,
  kubeletConfText,
  kubeletLogLevelText,
  NODE_SIZING_PATH,
  nodeSizingText,
} from '../template/files/kubelet.ts';
import { templateValues } from '../template/values.ts';
import { tlsSettings } from './tls-profile.ts';

/** A KubeletConfig that is refused: the field and why. */
export class KubeletConfigError extends Error {
  override readonly name = 'KubeletConfigError';
}

/** Fields that belong to the cluster; a wrong one may keep a node from ever coming back (spec 50, section 7). */
const FORBIDDEN = ['cgroupDriver', 'clusterDNS', 'clusterDomain', 'featureGates', 'staticPodPath'] as const;
const [LOWEST_LOG_LEVEL, HIGHEST_LOG_LEVEL] = [1, 10];

/** Throws `KubeletConfigError` for one that must not reach a node. */
export function checkKubeletConfig({ spec = {} }: KubeletConfig): void {
  const { logLevel, kubeletConfig = {}, autoSizingReserved } = spec;
  if (logLevel !== undefined && (logLevel < LOWEST_LOG_LEVEL || logLevel > HIGHEST_LOG_LEVEL)) {
    throw new KubeletConfigError(
      `spec.logLevel: expected ${LOWEST_LOG_LEVEL} to ${HIGHEST_LOG_LEVEL}, found ${logLevel}`,
    );
  }
  const settings = kubeletConfig as Record<string, unknown>;
  for (const field of FORBIDDEN) {
    if (isSet(settings[field])) throw new KubeletConfigError(`spec.kubeletConfig.${field}: is not allowed to be set`);
  }
  if (autoSizingReserved === true && isSet(settings['systemReserved'])) {
    throw new KubeletConfigError('spec.kubeletConfig.systemReserved: cannot be set together with autoSizingReserved');
  }
}

export interface KubeletDefaults {
  /** The pool the files are for. */
  readonly pool: string;
  readonly controllerConfig: ControllerConfigSpec;
  readonly nodeConfig: NodeConfig | undefined;
  /** The profile of the API server, used where the KubeletConfig has none. */
  readonly tlsProfile: TlsSecurityProfile | undefined;
  readonly featureGates: Readonly<Record<string, boolean>>;
}

/** The configuration of a pool's kubelets before any KubeletConfig: the template's, with what the cluster says about nodes. */
export function poolConfiguration(defaults: KubeletDefaults): Record<string, unknown> {
  const { minTlsVersion, cipherSuites } = tlsSettings(defaults.tlsProfile);
  return {
    ...kubeletConfiguration(templateValues(defaults.controllerConfig, '')),
    ...(defaults.pool === WORKER_POOL ? latencySettings(defaults.nodeConfig) : {}),
    ...(Object.keys(defaults.featureGates).length > 0 && { featureGates: defaults.featureGates }),
    tlsMinVersion: minTlsVersion,
    tlsCipherSuites: cipherSuites,
  };
}

/** The files of a KubeletConfig for a pool: the template's configuration with its fields laid over it. */
export function kubeletFiles({ spec = {} }: KubeletConfig, defaults: KubeletDefaults): IgnitionFile[] {
  const { kubeletConfig = {}, logLevel, autoSizingReserved, tlsSecurityProfile } = spec;
  const { systemReserved, featureGates: _featureGates, ...settings } = kubeletConfig as Record<string, unknown>;
  const {
    memory,
    cpu,
    'ephemeral-storage': ephemeralStorage,
    ...otherReserved
  } = (systemReserved ?? {}) as Record<string, string>;
  const configuration = laidOver(
    poolConfiguration({ ...defaults, tlsProfile: tlsSecurityProfile ?? defaults.tlsProfile }),
    { ...settings, ...(Object.keys(otherReserved).length > 0 && { systemReserved: otherReserved }) },
  );
  const isReserved = [memory, cpu, ephemeralStorage].some(value => value !== undefined);
  return [
    // These go to the kubelet as a flag, and a flag beats the file.
    ...(isReserved ? [generatedFile(NODE_SIZING_PATH, nodeSizingText({ memory, cpu, ephemeralStorage }))] : []),
    ...(!isReserved && autoSizingReserved !== undefined
      ? [generatedFile(NODE_SIZING_PATH, nodeSizingText({ isAutomatic: autoSizingReserved }))]
      : []),
    ...(logLevel === undefined ? [] : [generatedFile(KUBELET_LOG_LEVEL_PATH, kubeletLogLevelText(logLevel))]),
    generatedFile(KUBELET_CONF_PATH, kubeletConfText(configuration)),
  ];
}

/** Whether the cluster asks its workers to report at another pace than by default. */
export function hasLatencyProfile(nodeConfig: NodeConfig | undefined): boolean {
  return latencySettings(nodeConfig)['nodeStatusUpdateFrequency'] !== LATENCY_PROFILES['Default'];
}

/** How often a kubelet reports, by the latency profile of the cluster's workers. */
const LATENCY_PROFILES: Readonly<Record<string, string>> = {
  Default: '10s',
  MediumUpdateAverageReaction: '20s',
  LowUpdateSlowReaction: '1m0s',
};

function latencySettings(nodeConfig: NodeConfig | undefined): Record<string, unknown> {
  const profile = nodeConfig?.spec?.workerLatencyProfile || 'Default';
  const frequency = Object.hasOwn(LATENCY_PROFILES, profile) ? LATENCY_PROFILES[profile] : undefined;
  if (frequency === undefined)
    throw new KubeletConfigError(
      `node.config.openshift.io cluster: spec.workerLatencyProfile: unknown profile ${profile}`,
    );
  return { nodeStatusUpdateFrequency: frequency };
}

/** Mappings key by key, everything else as a whole. An explicit `false` counts, where 4.16 knows only one such field. */
function laidOver(base: Record<string, unknown>, changes: Record<string, unknown>): Record<string, unknown> {
  const result = { ...base };
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined) continue;
    const before = result[name];
    result[name] = isMapping(before) && isMapping(value) ? laidOver(before, value) : value;
  }
  return result;
}

function isMapping(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === '') return false;
  return typeof value !== 'object' || Object.keys(value).length > 0;
}
