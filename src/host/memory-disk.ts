import { posix } from 'node:path';
import { type Disk, filesOn } from './files.ts';
import { type FileOwner, type FileStat, HostError, type HostFiles } from './port.ts';
import { quoted } from './resolve.ts';

/** The files of a host that exists only in memory. */
export function memoryFiles(now: () => Date = () => new Date()): HostFiles {
  return filesOn(memoryDisk(now));
}

type Entry = { mode: number; uid: number; gid: number; modifiedAt: Date } & (
  | { kind: 'file'; content: Buffer }
  | { kind: 'directory' }
  | { kind: 'symlink'; target: string }
);

const ROOT_OWNER: FileOwner = { uid: 0, gid: 0 };

function memoryDisk(now: () => Date): Disk {
  const root: Entry = { kind: 'directory', mode: 0o755, ...ROOT_OWNER, modifiedAt: now() };
  const entries = new Map<string, Entry>([['/', root]]);
  const watchers = new Set<(path: string) => void>();

  function set(path: string, entry: Entry): void {
    entries.set(path, entry);
    tell(path);
  }

  function tell(path: string): void {
    for (const watcher of watchers) watcher(path);
  }

  function get<K extends Entry['kind']>(path: string, kind: K): Extract<Entry, { kind: K }> {
    const entry = entries.get(path);
    if (entry?.kind !== kind) throw new HostError('io', `${quoted(path)} is no ${kind}`);
    return entry as Extract<Entry, { kind: K }>;
  }

  const childrenOf = (path: string) =>
    [...entries.keys()].filter(other => other !== '/' && posix.dirname(other) === path);

  return {
    keepsOwners: true,
    async stat(path): Promise<FileStat | undefined> {
      const entry = entries.get(path);
      if (entry === undefined) return undefined;
      const { kind, mode, uid, gid } = entry;
      return { kind, mode, uid, gid, size: kind === 'file' ? entry.content.length : 0 };
    },
    async modifiedAt(path) {
      const entry = entries.get(path);
      if (entry === undefined) throw new HostError('io', `${quoted(path)} does not exist`);
      return entry.modifiedAt;
    },
    linkText: async path => get(path, 'symlink').target,
    list: async path => childrenOf(path).map(child => posix.basename(child)),
    async read(path, limit) {
      const { content } = get(path, 'file');
      if (content.length <= limit) return Buffer.from(content);
      throw new HostError('too-large', `${quoted(path)} has ${content.length} bytes; expected at most ${limit}`);
    },
    async replace(path, content, mode, owner = ROOT_OWNER) {
      const { uid, gid } = owner;
      set(path, { kind: 'file', content: Buffer.from(content), mode, uid, gid, modifiedAt: now() });
    },
    async replaceByLink(path, target) {
      set(path, { kind: 'symlink', target, mode: 0o777, ...ROOT_OWNER, modifiedAt: now() });
    },
    async makeDirectory(path, mode, owner = ROOT_OWNER) {
      set(path, { kind: 'directory', mode, uid: owner.uid, gid: owner.gid, modifiedAt: now() });
    },
    async copy(from, to) {
      set(to, { ...get(from, 'file') });
    },
    async rename(from, to) {
      for (const path of [...entries.keys()].filter(path => path === from || path.startsWith(`${from}/`))) {
        set(to + path.slice(from.length), entries.get(path) as Entry);
        entries.delete(path);
        tell(path);
      }
    },
    async chmod(path, mode) {
      const entry = entries.get(path);
      if (entry !== undefined) set(path, { ...entry, mode });
    },
    async unlink(path) {
      entries.delete(path);
      tell(path);
    },
    async removeDirectory(path) {
      if (childrenOf(path).length > 0) throw new HostError('io', `${quoted(path)} is not empty`);
      entries.delete(path);
      tell(path);
    },
    async removeLeftovers() {},
    watch(directories, changed, signal) {
      const watched = new Set(directories);
      const watcher = (path: string) => {
        const directory = posix.dirname(path);
        if (watched.has(directory)) changed(directory, posix.basename(path));
      };
      watchers.add(watcher);
      signal.addEventListener('abort', () => watchers.delete(watcher), { once: true });
    },
  };
}
