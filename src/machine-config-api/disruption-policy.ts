import { posix } from 'node:path';
import { NMSTATE_DIRECTORY, REBOOTING_PARTS, REGISTRIES_DIRECTORY } from './built-in-actions.ts';
import type { ConfigDifference } from './config-difference.ts';
import type { DisruptionAction, DisruptionPolicies, MachineConfiguration } from './machine-configuration.ts';

const RELOAD_CRIO: DisruptionAction = { type: 'Reload', reload: { serviceName: 'crio.service' } };

/** What happens on a node when these files or keys change and nobody said otherwise (spec 50, MP-2). */
export const DEFAULT_POLICIES: Required<Pick<DisruptionPolicies, 'files' | 'sshkey'>> = {
  files: [
    { path: '/var/lib/kubelet/config.json', actions: [{ type: 'None' }] },
    { path: '/etc/machine-config-daemon/no-reboot/containers-gpg.pub', actions: [RELOAD_CRIO] },
    { path: '/etc/containers/policy.json', actions: [RELOAD_CRIO] },
    { path: '/etc/containers/registries.conf', actions: [{ type: 'Special' }] },
  ],
  sshkey: { actions: [{ type: 'None' }] },
};

/** The defaults with those of an administrator in their place, or after them (spec 50, MP-2, MP-3). */
export function mergePolicies(user: DisruptionPolicies): DisruptionPolicies {
  const userFiles = user.files ?? [];
  const files = [
    ...DEFAULT_POLICIES.files.map(policy => userFiles.find(({ path }) => path === policy.path) ?? policy),
    ...userFiles.filter(({ path }) => !DEFAULT_POLICIES.files.some(policy => policy.path === path)),
  ];
  const isSshSet = (user.sshkey?.actions ?? []).length > 0;
  return {
    files,
    ...(user.units && user.units.length > 0 && { units: user.units }),
    sshkey: isSshSet && user.sshkey ? user.sshkey : DEFAULT_POLICIES.sshkey,
  };
}

/** The policies a cluster acts by: those in the status, once the operator has published some (spec 60, 9.4). */
export function policiesInForce(configuration: MachineConfiguration | undefined): DisruptionPolicies | undefined {
  const policies = configuration?.status?.nodeDisruptionPolicyStatus?.clusterPolicies;
  return (policies?.files?.length ?? 0) > 0 ? policies : undefined;
}

/** A change as the policies see it. */
export interface PolicyChange {
  readonly difference: ConfigDifference;
  readonly changedFiles: readonly string[];
  readonly changedUnits: readonly string[];
  readonly hasForceFile?: boolean | undefined;
}

const REBOOT: readonly DisruptionAction[] = [{ type: 'Reboot' }];
const NONE: readonly DisruptionAction[] = [{ type: 'None' }];

/** Finds the policy for a changed file. */
export type FilePolicyFinder = (files: readonly FilePolicy[], path: string) => FilePolicy | undefined;
type FilePolicy = NonNullable<DisruptionPolicies['files']>[number];

/**
 * What policies ask for when these parts change, in order and with repetitions (spec 60, 9.4). What no policy names needs a reboot,
 * and so does all of it then. The list may be empty: nothing is to be done.
 */
export function policyActions(
  policies: DisruptionPolicies,
  change: PolicyChange,
  findPolicy: FilePolicyFinder = exactPolicy,
): readonly DisruptionAction[] {
  const { difference, changedFiles, changedUnits, hasForceFile = false } = change;
  if (hasForceFile || REBOOTING_PARTS.some(part => difference[part])) return REBOOT;
  if (!difference.files && !difference.units && !difference.passwd) return NONE;
  const asked = [
    ...changedFiles.map(path => findPolicy(policies.files ?? [], path)?.actions ?? builtInActions(path)),
    ...changedUnits.map(unit => policies.units?.find(({ name }) => name === unit)?.actions),
    ...(difference.passwd ? [policies.sshkey?.actions ?? []] : []),
  ];
  const actions = asked.flatMap(found => found ?? REBOOT);
  if (actions.some(({ type }) => type === 'Reboot')) return REBOOT;
  const active = actions.filter(({ type }) => type !== 'None');
  return active.length === 0 && actions.length > 0 ? NONE : active;
}

/** Policies name whole paths, and the first one counts: 4.16. */
export function exactPolicy(files: readonly FilePolicy[], path: string): FilePolicy | undefined {
  return files.find(entry => entry.path === path);
}

/** Policies may also name a directory above the file, and the longest one counts: from 4.17 on (spec 60, section 16). */
export function longestPolicy(files: readonly FilePolicy[], path: string): FilePolicy | undefined {
  return files
    .filter(entry => entry.path === path || path.startsWith(`${entry.path.replace(/\/$/, '')}/`))
    .reduce<FilePolicy | undefined>(
      (best, entry) => (best === undefined || entry.path.length > best.path.length ? entry : best),
      undefined,
    );
}

/** Directories that are known without a policy; undefined for every other file. */
function builtInActions(path: string): readonly DisruptionAction[] | undefined {
  switch (posix.dirname(path)) {
    case REGISTRIES_DIRECTORY:
      return [{ type: 'Reload', reload: { serviceName: 'crio' } }];
    case NMSTATE_DIRECTORY:
      return [];
    default:
      return undefined;
  }
}

/** Whether the node is drained first: asked for, or by what became of registries.conf where it is treated specially (spec 60, 9.4). */
export function policyNeedsDrain(
  actions: readonly DisruptionAction[],
  registriesReason: () => string | undefined,
): boolean {
  if (actions.some(({ type }) => type === 'Reboot' || type === 'Drain')) return true;
  return actions.some(({ type }) => type === 'Special') && registriesReason() !== undefined;
}
