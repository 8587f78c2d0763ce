import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS } from '../../kube/resource.ts';
import { BOOTSTRAP_CONFIG_MAP, BOOTSTRAP_MEMBER, SYSTEM_NAMESPACE } from '../names.ts';
import { isRevisionStable, type RolloutStatus } from './rollout.ts';
import type { ScalingStrategy } from './strategy.ts';

/** On a ConfigMap `kube-system/bootstrap` that says "complete" although there never was a bootstrap host, as outside OpenShift. */
const NO_BOOTSTRAP_HOST = 'rotunda.dev/no-bootstrap-host';

/** What the installer says of its bootstrap host; undefined where there is no installer with a member of its own. */
export async function readInstallerBootstrap(kube: Kube, signal?: AbortSignal): Promise<ConfigMap | undefined> {
  const key = { namespace: SYSTEM_NAMESPACE, name: BOOTSTRAP_CONFIG_MAP };
  const found = await getIfPresent(kube, CONFIG_MAPS, key, { signal });
  return found?.metadata?.annotations?.[NO_BOOTSTRAP_HOST] === 'true' ? undefined : found;
}

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
