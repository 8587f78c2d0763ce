import { getIfPresent } from '../kube/get.ts';
import type { Kube } from '../kube/port.ts';
import { SHORT_LIFETIMES } from './lifetimes.ts';
import { type Profile, profile416, profileLater } from './profile.ts';
import { CLUSTER, FEATURE_GATES } from './resources.ts';

export interface ProfileChoice {
  readonly layout: Profile['release'];
  /** The length of a rotation day; the cluster's feature gates are not asked when it is given. */
  readonly dayMs?: number | undefined;
}

/** The profile an operator runs with: the layout somebody chose, with short lifetimes where the cluster asks for them. */
export async function chosenProfile(
  kube: Kube,
  { layout, dayMs }: ProfileChoice,
  signal?: AbortSignal,
): Promise<Profile> {
  if (layout === '4.16') return profile416(dayMs);
  const profile = profileLater(dayMs);
  if (dayMs !== undefined || !(await wantsShortRotation(kube, signal))) return profile;
  return { ...profile, lifetimes: SHORT_LIFETIMES };
}

const SHORT_ROTATION = 'ShortCertRotation';

/** Whether the feature gate is on (spec 40, 12.1); a cluster that has no feature gates has not. */
async function wantsShortRotation(kube: Kube, signal: AbortSignal | undefined): Promise<boolean> {
  const { status } = (await getIfPresent(kube, FEATURE_GATES, CLUSTER, { signal })) ?? {};
  const enabled = (status?.featureGates ?? []).flatMap(({ enabled = [] }) => enabled);
  return enabled.some(({ name }) => name === SHORT_ROTATION);
}
