import type { FeatureGate, NodeConfig } from '../../machine-config-api/cluster-config.ts';
import type { IgnitionFile } from '../../machine-config-api/ignition/types.ts';
import { WORKER_POOL } from '../../machine-config-api/names.ts';
import { generatedFile } from '../sub-config/generated.ts';
import { KUBELET_CONF_PATH } from '../template/files/kubelet.ts';
import {
  configurationText,
  hasLatencyProfile,
  KubeletConfigError,
  type KubeletDefaults,
  poolConfiguration,
} from './render.ts';

/** What becomes a MachineConfig of its own. */
export interface GeneratedParts {
  readonly files: readonly IgnitionFile[];
  readonly kernelArguments: readonly string[];
  /** What was asked for and is not in them. */
  readonly warning?: string | undefined;
}

/** The parts of `97-<pool>-generated-kubelet`: how the cluster wants its nodes (spec 50, section 7). Undefined: it says nothing. */
export function nodeConfigParts(defaults: KubeletDefaults): GeneratedParts | undefined {
  const { nodeConfig } = defaults;
  if (nodeConfig === undefined) return undefined;
  const isPaced = defaults.pool === WORKER_POOL && hasLatencyProfile(nodeConfig);
  return { files: isPaced ? [kubeletFile(defaults)] : [], kernelArguments: cgroupArguments(nodeConfig) };
}

/** The parts of `98-<pool>-generated-kubelet`: what is switched on and off in all kubelets. Undefined: nothing is. */
export function featureGateParts(defaults: KubeletDefaults): GeneratedParts | undefined {
  if (Object.keys(defaults.featureGates).length === 0) return undefined;
  return { files: [kubeletFile(defaults)], kernelArguments: [] };
}

/** Of several generated configs the last one has the file, so each of them holds all of it. */
function kubeletFile(defaults: KubeletDefaults): IgnitionFile {
  return generatedFile(KUBELET_CONF_PATH, configurationText(poolConfiguration(defaults)));
}

/** An empty mode is 4.16's default. */
const CGROUP_ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  '': ['systemd.unified_cgroup_hierarchy=1', 'cgroup_no_v1="all"', 'psi=0'],
  v2: ['systemd.unified_cgroup_hierarchy=1', 'cgroup_no_v1="all"', 'psi=0'],
  v1: ['systemd.unified_cgroup_hierarchy=0', 'systemd.legacy_systemd_cgroup_controller=1'],
};

function cgroupArguments({ spec }: NodeConfig): readonly string[] {
  const mode = spec?.cgroupMode ?? '';
  const found = Object.hasOwn(CGROUP_ARGUMENTS, mode) ? CGROUP_ARGUMENTS[mode] : undefined;
  if (found !== undefined) return found;
  throw new KubeletConfigError(`node.config.openshift.io cluster: spec.cgroupMode: expected v1 or v2, found ${mode}`);
}

/**
 * Which features are on and off: what was worked out for this release, or, where nobody does that, the lists of a custom set. A set
 * that only has a name says nothing then: what is in it is part of an OpenShift release.
 */
export function featureGatesOf(
  featureGate: FeatureGate | undefined,
  releaseVersion: string,
): Readonly<Record<string, boolean>> {
  const { spec = {}, status = {} } = featureGate ?? {};
  const known = status.featureGates?.find(({ version }) => version === releaseVersion);
  const custom = spec.featureSet === 'CustomNoUpgrade' ? spec.customNoUpgrade : undefined;
  const enabled = known === undefined ? (custom?.enabled ?? []) : (known.enabled ?? []).map(({ name }) => name);
  const disabled = known === undefined ? (custom?.disabled ?? []) : (known.disabled ?? []).map(({ name }) => name);
  const gates = [...enabled.map(name => [name, true] as const), ...disabled.map(name => [name, false] as const)];
  return Object.fromEntries(gates.sort(([a], [b]) => (a < b ? -1 : 1)));
}
