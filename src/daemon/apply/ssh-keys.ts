import type { Log } from '../../controller/log.ts';
import type { OperatingSystem } from '../../host/os-release.ts';
import type { FileOwner, Host } from '../../host/port.ts';
import type { IgnitionUser } from '../../machine-config-api/ignition/types.ts';
import { lockMissingUsers } from './password.ts';

const CORE_USER = 'core';
const SSH_DIRECTORY = '/home/core/.ssh';
const LEGACY_FILE = `${SSH_DIRECTORY}/authorized_keys`;
const FRAGMENTS = `${SSH_DIRECTORY}/authorized_keys.d`;
const FRAGMENT = `${FRAGMENTS}/ignition`;
const DIRECTORY_MODE = 0o700;
const KEY_FILE_MODE = 0o600;

/** The file that holds the keys of the config on this operating system (spec 60, 8.5.4). */
export function sshKeyFile(os: OperatingSystem): string {
  return usesFragments(os) ? FRAGMENT : LEGACY_FILE;
}

/** Whether keys are to be moved to the newer place at start (spec 60, 5.3.10). */
export function mustMoveKeys(usesNewPlace: boolean, hasLegacyFile: boolean, hasFragment: boolean): boolean {
  return usesNewPlace && hasLegacyFile && !hasFragment;
}

/** Moves the keys of the config to the newer place, if they are at the older one. */
export async function moveSshKeys(
  host: Host,
  os: OperatingSystem,
  users: readonly IgnitionUser[],
  log?: Log,
): Promise<boolean> {
  const has = async (path: string) => (await host.files.stat(path)) !== undefined;
  if (!mustMoveKeys(usesFragments(os), await has(LEGACY_FILE), await has(FRAGMENT))) return false;
  await updateSshKeys(host, os, users, users, log);
  return true;
}

/** Puts the keys of the new config in place of those of the old one (spec 60, 8.5). */
export async function updateSshKeys(
  host: Host,
  os: OperatingSystem,
  before: readonly IgnitionUser[],
  after: readonly IgnitionUser[],
  log?: Log,
): Promise<void> {
  await lockMissingUsers(host, before, after, log);
  const uid = await host.accounts.uid(CORE_USER);
  if (uid === undefined) {
    log?.info({ user: CORE_USER }, 'there is no such user; SSH keys are not written');
    return;
  }
  const owner = { uid, gid: (await host.accounts.gid(CORE_USER)) ?? uid };
  if (usesFragments(os)) await removeOtherKeys(host);
  await ensureDirectories(host, owner, usesFragments(os));
  const content = Buffer.from(
    after.flatMap(({ sshAuthorizedKeys = [] }) => sshAuthorizedKeys.map(key => `${key}\n`)).join(''),
  );
  await host.files.write(sshKeyFile(os), content, { mode: KEY_FILE_MODE, owner });
}

/** Every file with keys that an update may touch. */
export async function sshKeyFiles({ files }: Host): Promise<string[]> {
  const isDirectory = async (path: string) => (await files.stat(path))?.kind === 'directory';
  if (!(await isDirectory(SSH_DIRECTORY))) return [LEGACY_FILE, FRAGMENT];
  const names = (await isDirectory(FRAGMENTS)) ? ((await files.list(FRAGMENTS)) ?? []) : [];
  return [...new Set([LEGACY_FILE, FRAGMENT, ...names.map(name => `${FRAGMENTS}/${name}`)])];
}

function usesFragments({ isEL9, isFCOS, isSCOS }: OperatingSystem): boolean {
  return isEL9 || isFCOS || isSCOS;
}

/** Keys that are not of the config would let in who is not in it (spec 60, 8.5.5). */
async function removeOtherKeys(host: Host): Promise<void> {
  const { files } = host;
  for (const path of await sshKeyFiles(host)) {
    if (path !== FRAGMENT && (await files.stat(path)) !== undefined) await files.removeTree(path);
  }
}

/** Links count as foreign: what they lead to is not ours to write to. */
async function ensureDirectories({ files }: Host, owner: FileOwner, withFragments: boolean): Promise<void> {
  for (const path of [SSH_DIRECTORY, ...(withFragments ? [FRAGMENTS] : [])]) {
    const stat = await files.stat(path);
    const isForeign = stat?.kind !== 'directory' || (files.keepsOwners !== false && stat.uid !== owner.uid);
    if (stat !== undefined && isForeign) await files.removeTree(path);
    await files.makeDirectory(path, DIRECTORY_MODE, owner);
  }
}
