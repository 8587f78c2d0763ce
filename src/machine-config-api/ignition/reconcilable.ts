import { isDeepStrictEqual } from 'node:util';
import type { IgnitionConfig, IgnitionUser } from './types.ts';

/** An administrator makes it to have a config applied again, whatever the disk looks like (spec 60, 5.6). */
export const FORCE_FILE = '/run/machine-config-daemon-force';
const CORE_USER = 'core';

/** What a machine runs, as far as it matters here. */
export interface MachineState {
  readonly ignition: IgnitionConfig;
  readonly fips: boolean;
}

/**
 * Why a running machine cannot be brought from one configuration to the other, undefined if it can: files and units change in
 * place, and keys and password of the user `core`; everything else needs a new machine (spec 50, 6.5; spec 60, section 7, rules
 * 2 to 11). Both documents were read by `readIgnition`, which makes an empty list and an absent one the same (D-16).
 */
export function irreconcilable(before: MachineState, after: MachineState): string | undefined {
  return (
    passwdProblem(before.ignition, after.ignition) ??
    kernelArgumentsProblem(before.ignition, after.ignition) ??
    storageProblem(before.ignition, after.ignition) ??
    (before.fips === after.fips
      ? undefined
      : 'detected change to FIPS flag; refusing to modify FIPS on a running cluster')
  );
}

function passwdProblem(before: IgnitionConfig, after: IgnitionConfig): string | undefined {
  const [old, current] = [before.passwd ?? {}, after.passwd ?? {}];
  if (!isDeepStrictEqual(old.groups, current.groups)) return 'ignition Passwd Groups section contains changes';
  if (isDeepStrictEqual(old.users, current.users)) return undefined;
  const users = current.users ?? [];
  if (users.some(({ name }) => name !== CORE_USER)) {
    return 'ignition passwd user section contains unsupported changes: non-core user';
  }
  return users.map(coreUserProblem).find(problem => problem !== undefined);
}

function coreUserProblem({
  name: _name,
  sshAuthorizedKeys = [],
  passwordHash,
  ...others
}: IgnitionUser): string | undefined {
  if (passwordHash === undefined && sshAuthorizedKeys.length === 0) {
    return 'ignition passwd user section contains unsupported changes: user must be core and have 1 or more sshKeys';
  }
  return Object.keys(others).length === 0
    ? undefined
    : `SSH keys and password hash are not reconcilable: user core has ${Object.keys(others).join(', ')} too`;
}

function kernelArgumentsProblem(before: IgnitionConfig, after: IgnitionConfig): string | undefined {
  return isDeepStrictEqual(before.kernelArguments, after.kernelArguments)
    ? undefined
    : 'ignition kargs section contains changes';
}

function storageProblem(before: IgnitionConfig, after: IgnitionConfig): string | undefined {
  const [old, current] = [before.storage ?? {}, after.storage ?? {}];
  for (const section of ['disks', 'filesystems', 'raid', 'directories'] as const) {
    if (!isDeepStrictEqual(old[section], current[section])) return `ignition ${section} section contains changes`;
  }
  // Links may all go; machines that had them keep them.
  if (!isDeepStrictEqual(old.links, current.links) && current.links !== undefined)
    return 'ignition links section contains changes';
  for (const { path, append = [] } of current.files ?? []) {
    if (append.length > 0) return `ignition file ${path} includes append`;
    if (path === FORCE_FILE) return `cannot create ${path} via Ignition`;
  }
  return undefined;
}
