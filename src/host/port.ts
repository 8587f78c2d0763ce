/**
 * The machine the agent works on, as a port (DESIGN, "Ports"): on a real node its root file system and its programs, on a local
 * node or in a test a directory or memory. Every path is a path of the host: absolute and clean; an implementation resolves it
 * below its root and never follows a symbolic link out of it.
 */
export interface Host {
  readonly files: HostFiles;
  readonly services: HostServices;
  /** rpm-ostree or bootc; undefined where the operating system is not an image. */
  readonly os: HostOs | undefined;
  readonly accounts: HostAccounts;
  readonly sessions: HostSessions;
  /** The package database; undefined where there is none. */
  readonly packages?: HostPackages | undefined;
  /** Has the system's store of trusted CAs made anew from its sources; absent where there is no such store. */
  updateCaTrust?(): Promise<void>;
  /** What people ask first about a machine, for the log: a title and what a program printed (spec 60, 1.6.1). */
  describe?(): Promise<ReadonlyMap<string, string>>;
  /** Identity of this boot, as in /proc/sys/kernel/random/boot_id. */
  bootId(): Promise<string>;
  /** Asks for a reboot and returns once it is queued (spec 60, 10.3). `rationale` is shown to people. */
  reboot(rationale: string): Promise<void>;
}

export type FileKind = 'file' | 'directory' | 'symlink' | 'other';

export interface FileStat {
  readonly kind: FileKind;
  /** Permission bits, 0 to 0o7777. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly size: number;
}

export interface FileOwner {
  readonly uid: number;
  readonly gid: number;
}

export interface WriteOptions {
  /** Default: mode of the file there is, else 0644. */
  readonly mode?: number;
  /** Default: owner of the file there is, else the agent's own. */
  readonly owner?: FileOwner;
  /** Without an owner: the file is the agent's own afterwards, whoever had it before. */
  readonly takesOver?: boolean;
  /** Mode of parent directories that have to be made; default 0755. */
  readonly directoryMode?: number;
}

/** Files below the host's root. A missing file is `undefined`, everything else that is wrong is thrown as `HostError`. */
export interface HostFiles {
  /** False where owners cannot be set, as for a local node whose process is not root: nobody should compare them there. */
  readonly keepsOwners?: boolean;
  /** Content of a regular file, links followed within the root. Larger than `limit` bytes is an error. */
  read(path: string, limit?: number): Promise<Buffer | undefined>;
  /** What is at the path itself; a symbolic link is not followed. */
  stat(path: string): Promise<FileStat | undefined>;
  /** When the content was last written, links followed; undefined where there is nothing. */
  modifiedAt(path: string): Promise<Date | undefined>;
  /** Text of a symbolic link. */
  readLink(path: string): Promise<string | undefined>;
  /** Names in a directory, sorted; undefined when there is none. */
  list(path: string): Promise<string[] | undefined>;
  /** Atomic: temporary file beside it with its final mode and owner, fsync, rename, fsync of the directory (spec 60, 4.5). */
  write(path: string, content: Uint8Array, options?: WriteOptions): Promise<void>;
  /** Replaces whatever is there by a symbolic link, atomically. `target` is the link's text, not resolved. */
  symlink(target: string, path: string): Promise<void>;
  /** Makes a directory and its parents; mode and owner are for those that are made. One that is there stays as it is. */
  makeDirectory(path: string, mode?: number, owner?: FileOwner): Promise<void>;
  /** Copies a file or link with mode, owner and times, atomically. */
  copy(from: string, to: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
  /** Removes a file, link or empty directory; nothing there is fine. */
  remove(path: string): Promise<void>;
  /** Removes a directory with all that is in it, links not followed; nothing there is fine. */
  removeTree(path: string): Promise<void>;
  /** Removes temporary files that a write of this path left when it was killed; one that ends in `/*` stands for every entry of its directory. */
  removeLeftovers?(path: string): Promise<void>;
  /** Calls `changed` with each of `paths` at which something may have happened, until aborted. Paths may not exist yet; one
   * that ends in `/*` stands for every entry of its directory. */
  watch(paths: readonly string[], changed: (path: string) => void, signal: AbortSignal): Promise<void>;
}

/** systemd of the host. A unit is named with its suffix. */
export interface HostServices {
  isEnabled(unit: string): Promise<UnitEnablement>;
  enable(units: readonly string[]): Promise<void>;
  disable(units: readonly string[]): Promise<void>;
  preset(unit: string): Promise<void>;
  daemonReload(): Promise<void>;
  start(unit: string): Promise<void>;
  stop(unit: string): Promise<void>;
  restart(unit: string): Promise<void>;
  reload(unit: string): Promise<void>;
  isActive(unit: string): Promise<boolean>;
}

/** What `systemctl is-enabled` prints; `not-found` where there is no such unit. */
export type UnitEnablement = 'enabled' | 'disabled' | 'masked' | 'static' | 'not-found' | 'other';

/** An operating system that is an image. Changes are staged and become real with the next boot. */
export interface HostOs {
  readonly tool: 'rpm-ostree' | 'bootc';
  booted(): Promise<BootedOs>;
  /** Stages another image. */
  rebase(image: string): Promise<void>;
  kernelArguments(): Promise<string[]>;
  /** `change` are the arguments of `rpm-ostree kargs`, such as `--append=a` and `--delete=b`. */
  changeKernelArguments(change: readonly string[]): Promise<void>;
  /** `change` are arguments of rpm-ostree that begin with `update` or `override`, such as `update --install a`. */
  changePackages(change: readonly string[]): Promise<void>;
  /** Throws away what is staged and not booted. */
  discardStaged(): Promise<void>;
  removeRollback(): Promise<void>;
  /** Why the deployment that was staged in the last boot did not come into effect; empty where nothing is known to be wrong. */
  finalizeFailure?(): Promise<string>;
  /** For nodes with etcd: a new deployment is written without holding up others on the disk. */
  flushEachObject?(): Promise<void>;
  /** Makes the packages of an extensions image installable; what it gives takes them away again (spec 60, 8.8). */
  offerExtensions?(image: string): Promise<() => Promise<void>>;
}

export interface BootedOs {
  /** Reference of the image, without transport; empty when the system was not deployed from one. */
  readonly image: string;
  readonly commit: string;
  readonly version: string;
  /** Packages that were layered onto the image. */
  readonly layeredPackages: readonly string[];
  /** Packages of the image that were taken out of it, as for another kernel. */
  readonly removedPackages?: readonly string[];
  /** Packages from files and packages of the image that were replaced by files. */
  readonly localPackages?: readonly string[];
}

export interface HostAccounts {
  uid(user: string): Promise<number | undefined>;
  gid(group: string): Promise<number | undefined>;
  addUser(user: string, groups: readonly string[]): Promise<void>;
  /** The password hash a user has; undefined where nobody can say. Never logged. */
  passwordHash?(user: string): Promise<string | undefined>;
  /** Sets a password hash (crypt format); the empty text removes it. Never logged. */
  setPasswordHash(user: string, hash: string): Promise<void>;
}

/** Which files came with the operating system (spec 60, 8.2.1). */
export interface HostPackages {
  /** Whether a package claims the file. */
  owns(path: string): Promise<boolean>;
}

export interface LoginSession {
  readonly id: string;
  readonly user: string;
  /** True for sessions that came over the network. */
  readonly isRemote: boolean;
  readonly since: string;
}

export interface HostSessions {
  list(): Promise<LoginSession[]>;
  /** Calls `changed` when sessions may have changed, until aborted. */
  watch(changed: () => void, signal: AbortSignal): Promise<void>;
}

/** Something the host refused. `code` is for callers, the message for people; it never holds file contents. */
export class HostError extends Error {
  override readonly name = 'HostError';
  readonly code:
    | 'outside-root'
    | 'not-a-file'
    | 'not-a-directory'
    | 'too-large'
    | 'no-space'
    | 'command'
    | 'unsupported'
    | 'io';

  constructor(code: HostError['code'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.code = code;
  }
}
