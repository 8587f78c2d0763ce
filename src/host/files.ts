import { posix } from 'node:path';
import { type FileOwner, type FileStat, HostError, type HostFiles, type WriteOptions } from './port.ts';
import { quoted, requireCleanPath, resolveBelowRoot } from './resolve.ts';
import { watchPaths } from './watch-paths.ts';

/** The largest file that is read into memory. */
export const LARGEST_FILE_BYTES: number = 64 * 1024 * 1024;
const FILE_MODE = 0o644;
const DIRECTORY_MODE = 0o755;

/**
 * What files of a host are kept on. Paths are resolved: absolute, clean and free of links; the parent is there. Errors are
 * `HostError`.
 */
export interface Disk {
  readonly keepsOwners: boolean;
  stat(path: string): Promise<FileStat | undefined>;
  modifiedAt(path: string): Promise<Date>;
  linkText(path: string): Promise<string>;
  list(path: string): Promise<string[]>;
  read(path: string, limit: number): Promise<Buffer>;
  /** Makes the new file complete before it takes the place of the old one. */
  replace(path: string, content: Uint8Array, mode: number, owner: FileOwner | undefined): Promise<void>;
  replaceByLink(path: string, target: string): Promise<void>;
  makeDirectory(path: string, mode: number, owner: FileOwner | undefined): Promise<void>;
  copy(from: string, to: string, stat: FileStat): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
  unlink(path: string): Promise<void>;
  removeDirectory(path: string): Promise<void>;
  removeLeftovers(path: string): Promise<void>;
  /** Tells of changes of entries of directories, until aborted. `name` is undefined when it is not known which. */
  watch(
    directories: readonly string[],
    changed: (directory: string, name: string | undefined) => void,
    signal: AbortSignal,
  ): void;
}

/** The files of a host on a disk: every rule about links, kinds and limits is here, whatever the disk is made of. */
export function filesOn(disk: Disk): HostFiles {
  const source = { kind: async (path: string) => (await disk.stat(path))?.kind, linkText: disk.linkText };
  const resolve = (path: string, followLast = false) => resolveBelowRoot(source, path, followLast);

  /** Where an entry is to be made: its directory is there, or is made. */
  async function placeFor(path: string, directoryMode = DIRECTORY_MODE): Promise<string> {
    requireCleanPath(path);
    const directory = await makeDirectory(posix.dirname(path), directoryMode, undefined);
    return posix.join(directory, posix.basename(path));
  }

  async function makeDirectory(path: string, mode: number, owner: FileOwner | undefined): Promise<string> {
    const { path: real, kind } = await resolve(path, true);
    if (kind === 'directory') return real;
    if (kind !== undefined)
      throw new HostError('not-a-directory', `${quoted(path)} must be a directory but is a ${kind}`);
    await makeDirectory(posix.dirname(real), mode, owner);
    await disk.makeDirectory(real, mode, owner);
    return real;
  }

  async function removeTree(real: string): Promise<void> {
    const stat = await disk.stat(real);
    if (stat === undefined) return;
    if (stat.kind !== 'directory') return disk.unlink(real);
    for (const name of await disk.list(real)) await removeTree(posix.join(real, name));
    await disk.removeDirectory(real);
  }

  return {
    keepsOwners: disk.keepsOwners,
    async read(path, limit = LARGEST_FILE_BYTES) {
      const { path: real, kind } = await resolve(path, true);
      if (kind === undefined) return undefined;
      if (kind !== 'file') throw new HostError('not-a-file', `${quoted(path)} must be a file but is a ${kind}`);
      return disk.read(real, limit);
    },
    async stat(path) {
      return disk.stat((await resolve(path)).path);
    },
    async modifiedAt(path) {
      const { path: real, kind } = await resolve(path, true);
      return kind === undefined ? undefined : disk.modifiedAt(real);
    },
    async readLink(path) {
      const { path: real, kind } = await resolve(path);
      return kind === 'symlink' ? disk.linkText(real) : undefined;
    },
    async list(path) {
      const { path: real, kind } = await resolve(path, true);
      if (kind === undefined) return undefined;
      if (kind !== 'directory') throw new HostError('not-a-directory', `${quoted(path)} is a ${kind}`);
      return (await disk.list(real)).sort();
    },
    async write(path, content, options: WriteOptions = {}) {
      const real = await placeFor(path, options.directoryMode);
      const there = await disk.stat(real);
      requireReplaceable(path, there);
      const kept = there?.kind === 'file' ? there : undefined;
      const owner = options.owner ?? (options.takesOver === true ? undefined : kept);
      await disk.replace(real, content, options.mode ?? kept?.mode ?? FILE_MODE, owner);
    },
    async symlink(target, path) {
      const real = await placeFor(path);
      requireReplaceable(path, await disk.stat(real));
      await disk.replaceByLink(real, target);
    },
    async makeDirectory(path, mode = DIRECTORY_MODE, owner) {
      await makeDirectory(path, mode, owner);
    },
    async copy(from, to) {
      const { path: real } = await resolve(from);
      const stat = await disk.stat(real);
      if (stat === undefined) throw new HostError('io', `${quoted(from)} does not exist`);
      const place = await placeFor(to);
      requireReplaceable(to, await disk.stat(place));
      if (stat.kind === 'symlink') return disk.replaceByLink(place, await disk.linkText(real));
      if (stat.kind !== 'file')
        throw new HostError('not-a-file', `${quoted(from)} must be a file but is a ${stat.kind}`);
      return disk.copy(real, place, stat);
    },
    async rename(from, to) {
      const { path: real, kind } = await resolve(from);
      if (kind === undefined) throw new HostError('io', `${quoted(from)} does not exist`);
      await disk.rename(real, await placeFor(to));
    },
    async chmod(path, mode) {
      const { path: real, kind } = await resolve(path, true);
      if (kind === undefined) throw new HostError('io', `${quoted(path)} does not exist`);
      await disk.chmod(real, mode);
    },
    async remove(path) {
      const { path: real, kind } = await resolve(path);
      if (kind === 'directory') await disk.removeDirectory(real);
      else if (kind !== undefined) await disk.unlink(real);
    },
    async removeTree(path) {
      await removeTree((await resolve(path)).path);
    },
    async removeLeftovers(path) {
      const { path: directory, kind } = await resolve(posix.dirname(path), true);
      if (kind === 'directory') await disk.removeLeftovers(posix.join(directory, posix.basename(path)));
    },
    watch: (paths, changed, signal) => watchPaths(disk, source, paths, changed, signal),
  };
}

/** A directory or a device in the way is a sign of something that must not be thrown away. */
function requireReplaceable(path: string, there: FileStat | undefined): void {
  if (there === undefined || there.kind === 'file' || there.kind === 'symlink') return;
  const what = there.kind === 'directory' ? 'a directory' : 'neither a file nor a link';
  throw new HostError('not-a-file', `${quoted(path)} cannot be replaced by a file: it is ${what}`);
}
