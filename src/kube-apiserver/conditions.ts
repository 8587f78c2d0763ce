import { HAND_OVER_CONDITION } from '../hand-over/report.ts';
import { KUBE_APISERVER_CHAINS } from './chains.ts';

/** The outcome of one chain. */
export function rotationCondition(controller: string): string {
  return `CertRotation_${controller}_Degraded`;
}

/** Every type of condition that the operator's status may carry (spec 20, 6.3). */
export const CONDITION_TYPES: readonly string[] = [
  ...KUBE_APISERVER_CHAINS.map(({ controller }) => rotationCondition(controller)),
  // Ours: a source of host names that cannot be told; the chains keep the names they have.
  'CertRotationHostnamesDegraded',
  // Ours: signers that are being handed over.
  HAND_OVER_CONDITION,
  'TargetConfigControllerDegraded',
  'ResourceSyncControllerDegraded',
  'RevisionControllerDegraded',
  'InstallerControllerDegraded',
  'NodeInstallerDegraded',
  'NodeInstallerProgressing',
  'StaticPodsAvailable',
  'StaticPodsDegraded',
  'NodeControllerDegraded',
  'InstallerPodPendingDegraded',
  'InstallerPodContainerWaitingDegraded',
  'InstallerPodNetworkingDegraded',
  'MissingStaticPodControllerDegraded',
  'GuardControllerDegraded',
  'BackingResourceControllerDegraded',
  'KubeAPIServerStaticResourcesDegraded',
  'StartupMonitorPodDegraded',
  'StartupMonitorPodContainerExcessiveRestartsDegraded',
  'StaticPodFallbackRevisionDegraded',
  'ConfigObservationDegraded',
  'AuditPolicyDegraded',
  'NodeKubeconfigControllerDegraded',
  'CertRotationTimeUpgradeable',
  'UnsupportedConfigOverridesUpgradeable',
  'KubeletMinorVersionUpgradeable',
];
