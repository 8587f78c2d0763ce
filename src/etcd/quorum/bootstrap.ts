import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { BOOTSTRAP_MEMBER } from '../names.ts';
import { isRevisionStable, type RolloutStatus } from './rollout.ts';
import type { ScalingStrategy } from './strategy.ts';

/** What the installer says of itself in `kube-system/bootstrap`; undefined: there is no such ConfigMap. */
export type BootstrapStatus = string | undefined;

export function bootstrapStatusOf(configMap: ConfigMap | undefined): BootstrapStatus {
  return configMap === undefined ? undefined : (configMap.data?.status ?? '');
}

/** Whether the installer is done: it says so, its temporary member is gone, and, where that is asked, what it started has settled. */
export function isBootstrapComplete(
  status: BootstrapStatus,
  memberNames: readonly string[],
  rollout?: RolloutStatus,
): boolean {
  if (status !== 'complete' || memberNames.includes(BOOTSTRAP_MEMBER)) return false;
  return rollout === undefined || isRevisionStable(rollout);
}

/** How many members there must be, the temporary one included, before it may go (spec 40, B-5). */
const MEMBERS_BEFORE_REMOVAL: Record<ScalingStrategy, number> = {
  HAScalingStrategy: 4,
  DelayedHAScalingStrategy: 3,
  TwoNodeScalingStrategy: 3,
  DelayedTwoNodeScalingStrategy: 2,
  UnsafeScalingStrategy: 2,
};

export interface BootstrapRemoval {
  readonly hasBootstrap: boolean;
  readonly safeToRemove: boolean;
}

/** Whether the temporary member may be removed: the others are enough, and all of them are well. */
export function decideBootstrapRemoval(
  memberNames: readonly string[],
  unhealthy: readonly string[],
  strategy: ScalingStrategy,
): BootstrapRemoval {
  if (!memberNames.includes(BOOTSTRAP_MEMBER)) return { hasBootstrap: false, safeToRemove: false };
  const isEnough = memberNames.length >= MEMBERS_BEFORE_REMOVAL[strategy];
  return { hasBootstrap: true, safeToRemove: isEnough && unhealthy.every(name => name === BOOTSTRAP_MEMBER) };
}
