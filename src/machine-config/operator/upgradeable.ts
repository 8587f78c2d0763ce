import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { Condition } from '../../controller/condition.ts';
import type { NodeConfig } from '../../machine-config-api/cluster-config.ts';
import type {
  ContainerRuntimeConfig,
  KubeletConfig,
  MachineConfigPool,
} from '../../machine-config-api/machine-config.ts';
import { conditionIs } from '../conditions.ts';

const SUPPORTED_SKEW = 2;

/**
 * Whether an upgrade may begin (spec 50, section 11): not while a pool is degraded or its build was interrupted. Old kubelets
 * change only the reason. `nodes` are the managed ones.
 */
export function upgradeableCondition(
  pools: readonly MachineConfigPool[],
  nodes: readonly Node[],
  apiServerVersion: string | undefined,
): Condition {
  const any = (type: string) => pools.some(({ status }) => conditionIs(status?.conditions, type, 'True'));
  const type = 'Upgradeable';
  if (any('Degraded')) {
    const message =
      'One or more machine config pools are degraded; see `kubectl get mcp` and resolve that before upgrading';
    return { type, status: 'False', reason: 'DegradedPool', message };
  }
  if (any('BuildInterrupted')) {
    const message = "One or more machine config pools' builds have been interrupted; see `kubectl get mcp`";
    return { type, status: 'False', reason: 'InterruptedBuild', message };
  }
  const skew = any('Updating') ? undefined : skewOf(nodes, apiServerVersion);
  return { type, status: 'True', reason: skew?.reason ?? 'AsExpected', message: skew?.message ?? '' };
}

interface Skew {
  readonly reason: 'KubeletSkewUnchecked' | 'KubeletSkewUnsupported' | 'KubeletSkewPresent';
  readonly message: string;
}

function skewOf(nodes: readonly Node[], apiServerVersion: string | undefined): Skew | undefined {
  const unchecked = (why: string): Skew => ({
    reason: 'KubeletSkewUnchecked',
    message: `The kubelet versions could not be checked: ${why}`,
  });
  if (!apiServerVersion) return unchecked('kube-apiserver does not yet have a version');
  const apiServerMinor = minorVersion(apiServerVersion);
  if (apiServerMinor === undefined) return unchecked(`kube-apiserver reports ${JSON.stringify(apiServerVersion)}`);
  const versions = nodes.map(({ status }) => status?.nodeInfo?.kubeletVersion ?? '').filter(version => version !== '');
  if (versions.length === 0) return unchecked('kubelet does not yet have a version');
  const behind = versions.map(version => ({ version, by: apiServerMinor - (minorVersion(version) ?? Number.NaN) }));
  if (behind.some(({ by }) => by > SUPPORTED_SKEW)) {
    const oldest = `${majorVersion(apiServerVersion)}.${apiServerMinor - SUPPORTED_SKEW}`;
    return {
      reason: 'KubeletSkewUnsupported',
      message: `One or more nodes have an unsupported kubelet version; at least ${oldest} is needed`,
    };
  }
  const limit = behind.find(({ by }) => by === SUPPORTED_SKEW);
  if (limit !== undefined) {
    return {
      reason: 'KubeletSkewPresent',
      message: `Kubelet version ${limit.version} will not be supported by a newer kube-apiserver`,
    };
  }
  const unreadable = behind.find(({ by }) => Number.isNaN(by));
  return unreadable === undefined ? undefined : unchecked(`a kubelet reports ${JSON.stringify(unreadable.version)}`);
}

/** The minor number of a version like `v1.20.1+abc`, undefined if it has none. */
export function minorVersion(version: string): number | undefined {
  const [, digits] = /^[^.]*\.(\d+)(?:\.|$)/.exec(version) ?? [];
  return digits === undefined ? undefined : Number(digits);
}

function majorVersion(version: string): string {
  return version.split('.')[0] ?? '';
}

/** What of this cluster will hinder a later release (spec 50, section 11). */
export function evaluationCondition(
  kubeletConfigs: readonly KubeletConfig[],
  runtimeConfigs: readonly ContainerRuntimeConfig[],
  nodeConfig: NodeConfig | undefined,
): Condition {
  const findings = [
    ...(nodeConfig?.spec?.cgroupMode === 'v1' ? ['cgroupsv1: support has been deprecated in favor of cgroupsv2'] : []),
    ...(kubeletConfigs.some(({ spec }) => isSwapAllowed(spec?.kubeletConfig))
      ? ['failswapon: KubeletConfig setting is currently unsupported']
      : []),
    ...(runtimeConfigs.some(({ spec }) => spec?.containerRuntimeConfig?.defaultRuntime === 'runc')
      ? ['runc: transition to default crun']
      : []),
  ];
  const type = 'EvaluationConditionsDetected';
  if (findings.length === 0) return { type, status: 'False', reason: 'AsExpected', message: '' };
  return { type, status: 'True', reason: findings.join('::'), message: '' };
}

function isSwapAllowed(kubeletConfig: object = {}): boolean {
  return (kubeletConfig as { failSwapOn?: unknown }).failSwapOn === false;
}
