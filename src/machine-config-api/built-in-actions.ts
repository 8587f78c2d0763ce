import { posix } from 'node:path';
import type { ConfigDifference } from './config-difference.ts';

/** What a node does after a new config is on its disk when no disruption policies are in force, the mildest first (spec 60, 9.1). */
export type BuiltInAction = 'none' | 'reload crio' | 'restart crio' | 'reboot';

const ORDER: readonly BuiltInAction[] = ['none', 'reload crio', 'restart crio', 'reboot'];

export const REGISTRIES_CONF = '/etc/containers/registries.conf';
export const KUBELET_CA = '/etc/kubernetes/kubelet-ca.crt';
export const USER_CA_BUNDLE = '/etc/pki/ca-trust/source/anchors/openshift-config-user-ca-bundle.crt';
export const NMSTATE_DIRECTORY = '/etc/nmstate/openshift';
export const REGISTRIES_DIRECTORY = '/etc/containers/registries.d';

const FILE_ACTIONS: ReadonlyMap<string, BuiltInAction> = new Map([
  [KUBELET_CA, 'none'],
  ['/var/lib/kubelet/config.json', 'none'],
  [REGISTRIES_CONF, 'reload crio'],
  ['/etc/containers/policy.json', 'reload crio'],
  ['/etc/machine-config-daemon/no-reboot/containers-gpg.pub', 'reload crio'],
  [USER_CA_BUNDLE, 'restart crio'],
]);
/** Files directly in these; nothing deeper. */
const DIRECTORY_ACTIONS: ReadonlyMap<string, BuiltInAction> = new Map([
  [NMSTATE_DIRECTORY, 'none'],
  [REGISTRIES_DIRECTORY, 'reload crio'],
]);

/** Differences that only a boot brings into effect, whatever else is said. */
export const REBOOTING_PARTS = ['osUpdate', 'kargs', 'fips', 'kernelType', 'extensions'] as const;

/** What a change asks for by the built-in table: the strongest that any part of it asks for (spec 60, 9.1). */
export function builtInAction(
  difference: ConfigDifference,
  changedFiles: readonly string[],
  hasForceFile = false,
): BuiltInAction {
  if (hasForceFile || difference.units || REBOOTING_PARTS.some(part => difference[part])) return 'reboot';
  return changedFiles.map(builtInFileAction).reduce<BuiltInAction>(stronger, 'none');
}

/** What the change of one file asks for: a reboot, unless the table knows better. */
export function builtInFileAction(path: string): BuiltInAction {
  return FILE_ACTIONS.get(path) ?? DIRECTORY_ACTIONS.get(posix.dirname(path)) ?? 'reboot';
}

function stronger(one: BuiltInAction, other: BuiltInAction): BuiltInAction {
  return ORDER.indexOf(one) >= ORDER.indexOf(other) ? one : other;
}

/**
 * Whether the node is drained first (spec 60, 9.2). `registriesReason` says why a change of registries.conf is not safe; it is asked
 * only where that file changed and nobody has switched such drains off. What is not known is drained for.
 */
export function builtInNeedsDrain(
  action: string,
  changedFiles: readonly string[],
  hasDrainOverride: boolean,
  registriesReason: () => string | undefined,
): boolean {
  switch (action) {
    case 'none':
      return false;
    case 'reload crio':
    case 'restart crio':
      return changedFiles.includes(REGISTRIES_CONF) && !hasDrainOverride && registriesReason() !== undefined;
    default:
      return true;
  }
}
