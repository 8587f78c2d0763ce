import { randomBytes } from 'node:crypto';
import { constants, type FSWatcher, watch } from 'node:fs';
import {
  chmod,
  type FileHandle,
  lchown,
  lstat,
  mkdir,
  open,
  readdir,
  readlink,
  rename,
  rm,
  rmdir,
  symlink,
  unlink,
} from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { type Disk, filesOn } from './files.ts';
import { type FileKind, type FileOwner, HostError, type HostFiles } from './port.ts';
import { quoted } from './resolve.ts';

/** The files of a host whose root is a directory of this machine; `/` is the machine itself. */
export function rootedFiles(root: string): HostFiles {
  return filesOn(directoryDisk(root));
}

const TEMPORARY = /^\.(.*)\.rotunda-[0-9a-f]{12}$/s;
/** A name may have 255 bytes, and the temporary one beside it is longer. */
const LONGEST_STEM = 160;

function directoryDisk(root: string): Disk {
  const at = (path: string) => (root === '/' ? path : join(root, path));
  const keepsOwners = process.getuid?.() === 0;

  async function own(path: string, owner: FileOwner | undefined): Promise<void> {
    if (owner !== undefined && keepsOwners) await lchown(path, owner.uid, owner.gid);
  }

  /** Makes something beside its place and moves it there; after a crash the old thing or the new one is found. */
  async function putInPlace(path: string, make: (temporary: string) => Promise<void>): Promise<void> {
    const temporary = join(dirname(path), temporaryName(basename(path)));
    try {
      await make(temporary);
      await rename(temporary, path);
    } catch (error) {
      await rm(temporary, { force: true }).catch(() => {});
      throw error;
    }
    await flushDirectory(dirname(path));
  }

  const disk: Disk = {
    keepsOwners,
    async stat(path) {
      const found = await ifThere(lstat(at(path)));
      return (
        found && { kind: kindOf(found), mode: found.mode & 0o7777, uid: found.uid, gid: found.gid, size: found.size }
      );
    },
    modifiedAt: async path => (await lstat(at(path))).mtime,
    linkText: path => readlink(at(path)),
    list: path => readdir(at(path)),
    async read(path, limit) {
      // Never waits for the other end of a pipe, and never follows a link that was put there a moment ago.
      const file = await open(at(path), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        return await readRegular(file, path, limit);
      } finally {
        await file.close();
      }
    },
    replace: (path, content, mode, owner) =>
      putInPlace(at(path), async temporary => {
        const file = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
        try {
          // Owner before mode: changing the owner takes special bits away.
          if (owner !== undefined && keepsOwners) await file.chown(owner.uid, owner.gid);
          await file.chmod(mode);
          await file.writeFile(content);
          await file.sync();
        } finally {
          await file.close();
        }
      }),
    async replaceByLink(path, target) {
      // Where nothing is, making a link is atomic by itself and leaves no temporary one behind.
      const isMade = await symlink(target, at(path)).then(
        () => true,
        (error: unknown) => {
          if (codeOf(error) === 'EEXIST') return false;
          throw error;
        },
      );
      if (isMade) await flushDirectory(dirname(at(path)));
      else await putInPlace(at(path), temporary => symlink(target, temporary));
    },
    async makeDirectory(path, mode, owner) {
      try {
        await mkdir(at(path), { mode: 0o700 });
      } catch (error) {
        if (codeOf(error) === 'EEXIST') return;
        throw error;
      }
      await own(at(path), owner);
      // The mask of the process must not decide.
      await chmod(at(path), mode);
      await flushDirectory(dirname(at(path)));
    },
    copy: (from, to, stat) =>
      putInPlace(at(to), async temporary => {
        const source = await open(at(from), constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
        const target = await open(temporary, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o600);
        try {
          const { atime, mtime } = await source.stat();
          if (keepsOwners) await target.chown(stat.uid, stat.gid);
          await target.chmod(stat.mode);
          for await (const chunk of source.createReadStream({ autoClose: false }))
            await target.writeFile(chunk as Buffer);
          await target.utimes(atime, mtime);
          await target.sync();
        } finally {
          await source.close();
          await target.close();
        }
      }),
    async rename(from, to) {
      await rename(at(from), at(to));
      await flushDirectory(dirname(at(to)));
      if (dirname(from) !== dirname(to)) await flushDirectory(dirname(at(from)));
    },
    chmod: (path, mode) => chmod(at(path), mode),
    async unlink(path) {
      await ifThere(unlink(at(path)));
      await flushDirectory(dirname(at(path)));
    },
    async removeDirectory(path) {
      await ifThere(rmdir(at(path)));
    },
    async removeLeftovers(path) {
      const stem = stemOf(basename(path));
      for (const name of (await ifThere(readdir(dirname(at(path))))) ?? []) {
        const written = TEMPORARY.exec(name)?.[1];
        if (written !== undefined && (stem === '*' || written === stem))
          await rm(join(dirname(at(path)), name), { force: true });
      }
    },
    watch(directories, changed, signal) {
      for (const directory of directories) watchDirectory(at(directory), name => changed(directory, name), signal);
    },
  };
  return speakingHostError(disk);
}

function temporaryName(name: string): string {
  return `.${stemOf(name)}.rotunda-${randomBytes(6).toString('hex')}`;
}

function stemOf(name: string): string {
  return Buffer.from(name).subarray(0, LONGEST_STEM).toString('utf8');
}

async function readRegular(file: FileHandle, path: string, limit: number): Promise<Buffer> {
  const stat = await file.stat();
  if (!stat.isFile()) throw new HostError('not-a-file', `${quoted(path)} must be a file`);
  if (stat.size > limit) throw tooLarge(path, stat.size, limit);
  // Files of the kernel have no size of their own.
  const content = await file.readFile();
  if (content.length > limit) throw tooLarge(path, content.length, limit);
  return content;
}

function tooLarge(path: string, size: number, limit: number): HostError {
  return new HostError('too-large', `${quoted(path)} has ${size} bytes; expected at most ${limit}`);
}

function watchDirectory(path: string, changed: (name: string | undefined) => void, signal: AbortSignal): void {
  let watcher: FSWatcher;
  try {
    watcher = watch(path, { persistent: false, signal }, (_event, name) => changed(name ?? undefined));
  } catch (error) {
    // It is gone, or is not yet there: the directory above tells when it comes.
    if (['ENOENT', 'ENOTDIR'].includes(codeOf(error) ?? '')) return;
    throw asHostError(error, path);
  }
  watcher.on('error', () => changed(undefined));
}

async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}

function kindOf(stat: { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }): FileKind {
  if (stat.isSymbolicLink()) return 'symlink';
  if (stat.isDirectory()) return 'directory';
  return stat.isFile() ? 'file' : 'other';
}

async function ifThere<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined;
    throw error;
  }
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error ? String(error.code) : undefined;
}

/** The same disk, with errors of the file system in the words of the port. */
function speakingHostError(disk: Disk): Disk {
  const translated = { ...disk } as Record<string, unknown>;
  for (const [name, member] of Object.entries(disk)) {
    if (typeof member !== 'function' || name === 'watch') continue;
    translated[name] = async (...args: unknown[]) => {
      try {
        return await (member as (...args: unknown[]) => Promise<unknown>)(...args);
      } catch (error) {
        throw asHostError(error, String(args[0]));
      }
    };
  }
  return translated as unknown as Disk;
}

const CODES: Readonly<Record<string, HostError['code']>> = {
  ENOSPC: 'no-space',
  EDQUOT: 'no-space',
  EISDIR: 'not-a-file',
  ELOOP: 'not-a-file',
  ENXIO: 'not-a-file',
  ENOTDIR: 'not-a-directory',
};

function asHostError(error: unknown, path: string): HostError {
  if (error instanceof HostError) return error;
  const code = codeOf(error) ?? '';
  return new HostError(
    CODES[code] ?? 'io',
    `${quoted(path)}: ${error instanceof Error ? error.message : String(error)}`,
    { cause: error },
  );
}
