import { semanticallyEqual } from '../../kube/equality.ts';
import { mergeKeys, mergeMetadata } from '../../kube/metadata.ts';
import type { ControllerConfig, ControllerConfigSpec } from '../../machine-config-api/controller-config.ts';

/** How a required field gets into an existing one (spec 50, CC-3 and CC-4). */
type Rule =
  /** Replaces when it says something. */
  | 'when-set'
  /** Replaces, also by nothing. */
  | 'always'
  /** Replaces when it is there. */
  | 'when-present';

const RULES: Readonly<Partial<Record<keyof ControllerConfigSpec, Rule>>> = {
  clusterDNSIP: 'when-set',
  // Ours can be cleared: what an administrator took away must not stay on machines for ever (spec 50, CC-3).
  cloudProviderConfig: 'when-present',
  platform: 'when-set',
  etcdDiscoveryDomain: 'when-set',
  osImageURL: 'when-set',
  baseOSContainerImage: 'when-set',
  baseOSExtensionsContainerImage: 'when-set',
  networkType: 'when-set',
  ipFamilies: 'when-set',
  internalRegistryPullSecret: 'always',
  additionalTrustBundle: 'always',
  rootCAData: 'always',
  kubeAPIServerServingCAData: 'always',
  cloudProviderCAData: 'always',
  imageRegistryBundleData: 'when-present',
  imageRegistryBundleUserData: 'when-present',
  infra: 'when-set',
  dns: 'when-set',
  pullSecret: 'when-set',
  proxy: 'always',
  network: 'always',
};
const BYTES = new Set<string>([
  'internalRegistryPullSecret',
  'additionalTrustBundle',
  'rootCAData',
  'kubeAPIServerServingCAData',
  'cloudProviderCAData',
]);

export interface Merged<T> {
  readonly object: T;
  /** Whether anything differs: otherwise nothing is written (spec 50, CC-5). */
  readonly changed: boolean;
}

/**
 * The existing ControllerConfig with the required one laid over it (spec 50, CC-2 to CC-5). Fields that the required spec does
 * not have at all come from sources that could not be read now: they stay.
 */
export function mergeControllerConfig(
  existing: ControllerConfig,
  required: ControllerConfig,
): Merged<ControllerConfig> {
  const metadata = mergeMetadata(existing.metadata ?? {}, required.metadata ?? {});
  const spec = mergeSpec(existing.spec ?? {}, required.spec ?? {});
  const changed = metadata.changed || !isSameSpec(existing.spec ?? {}, spec);
  return { object: changed ? { ...existing, metadata: metadata.result, spec } : existing, changed };
}

function mergeSpec(existing: ControllerConfigSpec, required: ControllerConfigSpec): ControllerConfigSpec {
  const merged: Record<string, unknown> = { ...existing };
  for (const [name, rule] of Object.entries(RULES)) {
    if (!Object.hasOwn(required, name)) continue;
    const wanted = (required as Record<string, unknown>)[name];
    const isSet = wanted !== undefined && wanted !== null && wanted !== '';
    if (rule === 'when-set' && !isSet) continue;
    if (rule === 'when-present' && (wanted === undefined || wanted === null)) continue;
    merged[name] = BYTES.has(name) && !isSet ? null : wanted;
  }
  if (required.images) merged['images'] = mergeKeys(existing.images, required.images).result;
  return merged;
}

/** Absent, null and empty mean the same, also for texts. */
function isSameSpec(a: ControllerConfigSpec, b: ControllerConfigSpec): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof ControllerConfigSpec>;
  return [...names].every(name => semanticallyEqual(a[name] || undefined, b[name] || undefined));
}
