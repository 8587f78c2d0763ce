import { constants } from 'node:fs';
import { chmod, lstat, mkdir, open, readdir, readlink, rename, rm, stat, symlink } from 'node:fs/promises';
import { dirname, join, normalize, resolve, sep } from 'node:path';

/**
 * What the programs of a node ask of the disk. Each method is one step that a crash can fall before or after, so that a
 * test can let one fall everywhere. Paths are absolute; with a root directory they are below it.
 */
export interface Files {
  /** Rejects with code ENOENT when there is none; refuses files larger than `LARGEST_FILE_BYTES`. */
  readFile(path: string): Promise<Buffer>;
  /** The entries of a directory in order of name; none when it does not exist. */
  list(path: string): Promise<Entry[]>;
  /** What is there, links followed; undefined when nothing is. */
  info(path: string): Promise<FileInfo | undefined>;
  /** What a symbolic link says; undefined when there is nothing or something else. */
  linkTarget(path: string): Promise<string | undefined>;
  /** Makes a directory and its parents, durably. One that exists is left as it is. */
  makeDirectory(path: string): Promise<void>;
  /** Makes a file that must not exist yet, with its content on the disk; at no moment is it more open than `mode`. */
  createFile(path: string, content: Uint8Array, mode: number): Promise<void>;
  /** Makes a symbolic link that must not exist yet. */
  link(target: string, path: string): Promise<void>;
  /** Puts what is at `from` in the place of what is at `to`, in one step. */
  rename(from: string, to: string): Promise<void>;
  /** Removes whatever is there, links not followed; nothing there is fine. */
  remove(path: string): Promise<void>;
  /** Makes what was created in, renamed in and removed from a directory durable. */
  flushDirectory(path: string): Promise<void>;
}

export type EntryKind = 'file' | 'directory' | 'link' | 'other';

export interface Entry {
  readonly name: string;
  readonly kind: EntryKind;
}

export interface FileInfo {
  readonly kind: EntryKind;
  /** Permission bits. */
  readonly mode: number;
  readonly size: number;
  readonly modifiedAt: Date;
}

/** An object of the API has at most 1.5 MiB; what is larger was not written by us. */
export const LARGEST_FILE_BYTES: number = 4 * 1024 * 1024;
export const DIRECTORY_MODE = 0o755;

/** The files of this machine below `root`. */
export function systemFiles(root = '/'): Files {
  const base = resolve(root);
  const at = (path: string): string => below(base, path);
  return {
    async readFile(path) {
      const file = await open(at(path), 'r');
      try {
        const { size } = await file.stat();
        if (size > LARGEST_FILE_BYTES) {
          throw new Error(`${path} has ${size} bytes; expected at most ${LARGEST_FILE_BYTES}`);
        }
        return await file.readFile();
      } finally {
        await file.close();
      }
    },
    async list(path) {
      const entries = (await ifThere(readdir(at(path), { withFileTypes: true }))) ?? [];
      return entries
        .map(entry => ({ name: entry.name, kind: kindOf(entry) }))
        .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0));
    },
    async info(path) {
      const found = await ifThere(stat(at(path)));
      return found && { kind: kindOf(found), mode: found.mode & 0o7777, size: found.size, modifiedAt: found.mtime };
    },
    async linkTarget(path) {
      const found = await ifThere(lstat(at(path)));
      return found?.isSymbolicLink() === true ? readlink(at(path)) : undefined;
    },
    makeDirectory: path => makeDirectory(at(path)),
    async createFile(path, content, mode) {
      // Born with nothing for group and others, whatever it becomes: the content must not be readable before its time.
      const file = await open(at(path), constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, mode & 0o700);
      try {
        await file.writeFile(content);
        await file.chmod(mode);
        await file.sync();
      } finally {
        await file.close();
      }
    },
    link: (target, path) => symlink(target, at(path)),
    rename: (from, to) => rename(at(from), at(to)),
    remove: path => rm(at(path), { recursive: true, force: true }),
    flushDirectory: path => flushDirectory(at(path)),
  };
}

/** Whether an error says that a file or directory does not exist. */
export function isMissingFile(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ENOENT';
}

/** `path` below `base`, whatever `..` it holds. */
function below(base: string, path: string): string {
  const inside = normalize(sep + path);
  return base === sep ? inside : join(base, inside);
}

async function ifThere<T>(found: Promise<T>): Promise<T | undefined> {
  try {
    return await found;
  } catch (error) {
    if (isMissingFile(error)) return undefined;
    throw error;
  }
}

function kindOf(entry: { isFile(): boolean; isDirectory(): boolean; isSymbolicLink(): boolean }): EntryKind {
  if (entry.isSymbolicLink()) return 'link';
  if (entry.isDirectory()) return 'directory';
  return entry.isFile() ? 'file' : 'other';
}

async function makeDirectory(path: string): Promise<void> {
  const first = await mkdir(path, { recursive: true, mode: DIRECTORY_MODE });
  if (first === undefined) return;
  // The mask of the process may have taken bits away; what other pods have to read must not depend on it.
  for (let made = path; made.length >= first.length; made = dirname(made)) {
    await chmod(made, DIRECTORY_MODE);
    await flushDirectory(dirname(made));
  }
}

async function flushDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
