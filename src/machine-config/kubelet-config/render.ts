import type { NodeConfig } from '../../machine-config-api/cluster-config.ts';
import type { ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';
import type { IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import type { KubeletConfig, TlsSecurityProfile } from '../../machine-config-api/machine-config.ts';
import { WORKER_POOL } from '../../machine-config-api/names.ts';
import { generatedFile } from '../sub-config/generated.ts';
import {
  KUBELET_CONF_PATH,
  KUBELET_CONFIGURATION_KIND,
  KUBELET_LOG_LEVEL_PATH,
  kubeletConfiguration,
  kubeletConfText,
  kubeletLogLevelText,
  NODE_SIZING_PATH,
  nodeSizingText,
} from '../template/files/kubelet.ts';
import { templateValues } from '../template/values.ts';
import { decodeKubeletConfiguration, type KubeletConfiguration } from './decode.ts';
import { DecodeError } from './decode-error.ts';
import { encodeKubeletConfiguration } from './encode.ts';
import { laidOver } from './lay-over.ts';
import { tlsSettings } from './tls-profile.ts';

/** A KubeletConfig that is refused: the field and why. */
export class KubeletConfigError extends Error {
  override readonly name = 'KubeletConfigError';
}

const [LOWEST_LOG_LEVEL, HIGHEST_LOG_LEVEL] = [1, 10];

/** Throws `KubeletConfigError` for one that must not reach a node, in upstream's words. */
export function checkKubeletConfig({ spec = {} }: KubeletConfig): void {
  const { logLevel, autoSizingReserved } = spec;
  if (logLevel !== undefined && (logLevel < LOWEST_LOG_LEVEL || logLevel > HIGHEST_LOG_LEVEL)) {
    throw new KubeletConfigError(
      `KubeletConfig's LogLevel is not valid [${LOWEST_LOG_LEVEL},${HIGHEST_LOG_LEVEL}]: ${logLevel}`,
    );
  }
  const settings = settingsOf(spec);
  for (const [field, printed] of FORBIDDEN) {
    const value = settings[field];
    if (value === undefined || Object.keys(Object(value)).length === 0) continue;
    throw new KubeletConfigError(
      `KubeletConfiguration: ${field} is not allowed to be set, but contains: ${printed(value)}`,
    );
  }
  if (autoSizingReserved === true && Object.keys(settings['systemReserved'] ?? {}).length > 0) {
    throw new KubeletConfigError('KubeletConfiguration: autoSizingReserved and systemdReserved cannot be set together');
  }
}

/** Fields that belong to the cluster; a wrong one may keep a node from ever coming back (spec 50, section 7). */
const FORBIDDEN: readonly (readonly [field: string, printed: (value: unknown) => string])[] = [
  ['cgroupDriver', String],
  ['clusterDNS', value => `[${(value as string[]).join(' ')}]`],
  ['clusterDomain', String],
  ['featureGates', goMapText],
  ['staticPodPath', String],
];

function goMapText(value: unknown): string {
  const entries = Object.entries(value as object).sort(([a], [b]) => (a < b ? -1 : 1));
  return `map[${entries.map(([key, each]) => `${key}:${each}`).join(' ')}]`;
}

function settingsOf({ kubeletConfig }: NonNullable<KubeletConfig['spec']>): KubeletConfiguration {
  try {
    return decodeKubeletConfiguration(kubeletConfig ?? {});
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    throw new KubeletConfigError(`KubeletConfig could not be unmarshalled, err: ${error.message}`);
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
export function poolConfiguration(defaults: KubeletDefaults): KubeletConfiguration {
  const { minTlsVersion, cipherSuites } = tlsSettings(defaults.tlsProfile);
  return decodeKubeletConfiguration({
    ...kubeletConfiguration(templateValues(defaults.controllerConfig, '')),
    ...(defaults.pool === WORKER_POOL ? latencySettings(defaults.nodeConfig) : {}),
    ...(Object.keys(defaults.featureGates).length > 0 && { featureGates: defaults.featureGates }),
    tlsMinVersion: minTlsVersion,
    tlsCipherSuites: cipherSuites,
  });
}

/** The text of a kubelet's configuration file, as upstream writes it. */
export function configurationText(configuration: KubeletConfiguration): string {
  return kubeletConfText(encodeKubeletConfiguration({ ...configuration, ...KUBELET_CONFIGURATION_KIND }));
}

/** The files of a KubeletConfig for a pool: the template's configuration with its fields laid over it. */
export function kubeletFiles({ spec = {} }: KubeletConfig, defaults: KubeletDefaults): IgnitionFile[] {
  const { kubeletConfig = {}, logLevel, autoSizingReserved, tlsSecurityProfile } = spec;
  const { systemReserved, featureGates: _featureGates, ...settings } = settingsOf(spec);
  const {
    memory,
    cpu,
    'ephemeral-storage': ephemeralStorage,
    ...otherReserved
  } = (systemReserved ?? {}) as Record<string, string>;
  const base = poolConfiguration({ ...defaults, tlsProfile: tlsSecurityProfile ?? defaults.tlsProfile });
  // The only field that is on by default and can be switched off, though its zero value says nothing.
  if ((kubeletConfig as KubeletConfiguration)['protectKernelDefaults'] === false) delete base['protectKernelDefaults'];
  const isReserved = [memory, cpu, ephemeralStorage].some(value => value !== undefined);
  return [
    // These go to the kubelet as a flag, and a flag beats the file.
    ...(isReserved ? [generatedFile(NODE_SIZING_PATH, nodeSizingText({ memory, cpu, ephemeralStorage }))] : []),
    ...(!isReserved && autoSizingReserved !== undefined
      ? [generatedFile(NODE_SIZING_PATH, nodeSizingText({ isAutomatic: autoSizingReserved }))]
      : []),
    ...(logLevel === undefined ? [] : [generatedFile(KUBELET_LOG_LEVEL_PATH, kubeletLogLevelText(logLevel))]),
    generatedFile(KUBELET_CONF_PATH, configurationText(laidOver(base, { ...settings, systemReserved: otherReserved }))),
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
