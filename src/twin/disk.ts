import { posix } from 'node:path';
import { filesOn, type Disk as HostDisk } from '../host/files.ts';
import { type FileOwner, type FileStat, HostError, type HostFiles } from '../host/port.ts';
import type { EntryKind, Files } from '../staticpod/node/files.ts';

/**
 * The disk of one node, in memory: the static pod's programs see it as `Files`, the agent as `HostFiles`. Nothing on it is lost; a
 * process that is killed leaves there what it had done by then.
 */
export class Disk {
  readonly files: Files;
  readonly hostFiles: HostFiles;
  readonly #root: Directory;
  readonly #now: () => Date;
  readonly #watchers = new Set<(path: string) => void>();
  /** Grows with every change. */
  version = 0;
  /** What paths lead to, as long as nothing changes. */
  readonly #resolved = new Map<string, Resolved>();

  constructor(now: () => Date) {
    this.#now = now;
    this.#root = { kind: 'directory', mode: 0o755, modifiedAt: now(), entries: new Map() };
    this.files = this.#asFiles();
    this.hostFiles = filesOn(this.#asHostDisk());
  }

  /** The text of a file, links followed; undefined when there is none. */
  text(path: string): string | undefined {
    const found = this.#find(path);
    if (found?.kind !== 'file') return undefined;
    found.text ??= found.content.toString('latin1');
    return found.text;
  }

  /** Names in a directory, in order; undefined when there is none. */
  names(path: string): string[] | undefined {
    const found = this.#find(path);
    return found?.kind === 'directory' ? [...found.entries.keys()].sort() : undefined;
  }

  write(path: string, content: Uint8Array | string, mode = 0o644): void {
    this.#put(posix.join('/', path), { kind: 'file', mode, modifiedAt: this.#now(), content: Buffer.from(content) });
  }

  remove(path: string): void {
    const parent = this.#find(posix.dirname(path));
    if (parent?.kind === 'directory' && parent.entries.delete(posix.basename(path))) this.#changed(path);
  }

  #changed(path: string): void {
    this.version++;
    this.#resolved.clear();
    const real = this.#resolve(posix.dirname(path), true).path;
    for (const watcher of this.#watchers) watcher(posix.join(real, posix.basename(path)));
  }

  #find(path: string, followLast = true): Entry | undefined {
    return this.#resolve(path, followLast).entry;
  }

  /** Everybody asks for the same few dozen paths, again and again between two changes. */
  #resolve(path: string, followLast: boolean): Resolved {
    if (!followLast) return this.#walk(path, followLast);
    const known = this.#resolved.get(path);
    if (known !== undefined) return known;
    const found = this.#walk(path, followLast);
    this.#resolved.set(path, found);
    return found;
  }

  #walk(path: string, followLast: boolean): Resolved {
    let here: Entry | undefined = this.#root;
    let at = '';
    let names = namesIn(path);
    let links = 0;
    for (let index = 0; index < names.length; index++) {
      const name = names[index] as string;
      const found: Entry | undefined = here?.kind === 'directory' ? here.entries.get(name) : undefined;
      if (found?.kind !== 'link' || (index === names.length - 1 && !followLast)) {
        here = found;
        at = `${at}/${name}`;
        continue;
      }
      if (++links > MOST_LINKS) throw failure('ELOOP', path);
      names = [...namesIn(posix.resolve(at === '' ? '/' : at, found.target)), ...names.slice(index + 1)];
      index = -1;
      here = this.#root;
      at = '';
    }
    return { path: at === '' ? '/' : at, entry: here };
  }

  #put(path: string, entry: Entry): void {
    const directory = this.#makeDirectory(posix.dirname(path));
    directory.entries.set(posix.basename(path), entry);
    this.#changed(path);
  }

  #makeDirectory(path: string, mode = 0o755): Directory {
    const found = this.#find(path);
    if (found?.kind === 'directory') return found;
    if (found !== undefined) throw failure('ENOTDIR', path);
    const made: Directory = { kind: 'directory', mode, modifiedAt: this.#now(), entries: new Map() };
    const { path: real } = this.#resolve(path, true);
    this.#makeDirectory(posix.dirname(real)).entries.set(posix.basename(real), made);
    this.#changed(real);
    return made;
  }

  #rename(from: string, to: string): void {
    const source = this.#find(posix.dirname(from));
    const moved = source?.kind === 'directory' ? source.entries.get(posix.basename(from)) : undefined;
    const target = this.#find(posix.dirname(to));
    if (source?.kind !== 'directory' || moved === undefined || target?.kind !== 'directory')
      throw failure('ENOENT', from);
    const there = target.entries.get(posix.basename(to));
    if (there?.kind === 'directory' && (moved.kind !== 'directory' || there.entries.size > 0))
      throw failure('EISDIR', to);
    source.entries.delete(posix.basename(from));
    target.entries.set(posix.basename(to), moved);
    this.#changed(from);
    this.#changed(to);
  }

  #asFiles(): Files {
    const file = (path: string) => {
      const found = this.#find(path);
      if (found?.kind !== 'file') throw failure(found === undefined ? 'ENOENT' : 'EISDIR', path);
      return found;
    };
    const create = (path: string, entry: Entry) => {
      if (this.#find(path, false) !== undefined) throw failure('EEXIST', path);
      if (this.#find(posix.dirname(path))?.kind !== 'directory') throw failure('ENOENT', path);
      this.#put(path, entry);
    };
    return {
      readFile: async path => file(path).content,
      list: async path => {
        const found = this.#find(path);
        if (found === undefined) return [];
        if (found.kind !== 'directory') throw failure('ENOTDIR', path);
        return [...found.entries]
          .map(([name, { kind }]) => ({ name, kind }))
          .sort((a, b) => (a.name < b.name ? -1 : 1));
      },
      info: async path => {
        const found = this.#find(path);
        if (found === undefined) return undefined;
        const size = found.kind === 'file' ? found.content.length : 0;
        return { kind: found.kind as EntryKind, mode: found.mode, size, modifiedAt: found.modifiedAt };
      },
      linkTarget: async path => {
        const found = this.#find(path, false);
        return found?.kind === 'link' ? found.target : undefined;
      },
      makeDirectory: async path => void this.#makeDirectory(path),
      createFile: async (path, content, mode) =>
        create(path, { kind: 'file', mode, modifiedAt: this.#now(), content: Buffer.from(content) }),
      link: async (target, path) => create(path, { kind: 'link', mode: 0o777, modifiedAt: this.#now(), target }),
      rename: async (from, to) => this.#rename(from, to),
      remove: async path => this.remove(path),
      flushDirectory: async () => {},
    };
  }

  #asHostDisk(): HostDisk {
    const get = (path: string) => {
      const found = this.#find(path, false);
      if (found === undefined) throw new HostError('io', `${path} does not exist`);
      return found;
    };
    return {
      keepsOwners: false,
      stat: async (path): Promise<FileStat | undefined> => {
        const found = this.#find(path, false);
        if (found === undefined) return undefined;
        const kind = found.kind === 'link' ? 'symlink' : found.kind;
        return { kind, mode: found.mode, ...ROOT, size: found.kind === 'file' ? found.content.length : 0 };
      },
      modifiedAt: async path => get(path).modifiedAt,
      linkText: async path => (get(path) as Link).target,
      list: async path => this.names(path) ?? [],
      read: async (path, limit) => {
        const found = get(path);
        if (found.kind !== 'file') throw new HostError('io', `${path} is no file`);
        if (found.content.length > limit) throw new HostError('too-large', `${path} is larger than ${limit} bytes`);
        return found.content;
      },
      replace: async (path, content, mode) => this.write(path, content, mode),
      replaceByLink: async (path, target) =>
        this.#put(path, { kind: 'link', mode: 0o777, modifiedAt: this.#now(), target }),
      makeDirectory: async (path, mode) => void this.#makeDirectory(path, mode),
      copy: async (from, to) => this.#put(to, { ...get(from) }),
      rename: async (from, to) => this.#rename(from, to),
      chmod: async (path, mode) => {
        get(path).mode = mode;
        this.#changed(path);
      },
      unlink: async path => this.remove(path),
      removeDirectory: async path => {
        if ((this.names(path)?.length ?? 0) > 0) throw new HostError('io', `${path} is not empty`);
        this.remove(path);
      },
      removeLeftovers: async () => {},
      watch: (directories, changed, signal) => {
        const watched = new Set(directories);
        const watcher = (path: string) => {
          const directory = posix.dirname(path);
          if (watched.has(directory)) changed(directory, posix.basename(path));
        };
        this.#watchers.add(watcher);
        signal.addEventListener('abort', () => this.#watchers.delete(watcher), { once: true });
      },
    };
  }
}

type Entry = File | Directory | Link;
interface Resolved {
  readonly path: string;
  readonly entry: Entry | undefined;
}
interface Common {
  mode: number;
  readonly modifiedAt: Date;
}
interface File extends Common {
  readonly kind: 'file';
  readonly content: Buffer;
  /** Made when somebody asks, then the same one every time. */
  text?: string;
}
interface Directory extends Common {
  readonly kind: 'directory';
  readonly entries: Map<string, Entry>;
}
interface Link extends Common {
  readonly kind: 'link';
  readonly target: string;
}

const ROOT: FileOwner = { uid: 0, gid: 0 };
const MOST_LINKS = 40;

/** Paths that are asked for again and again. */
const SPLIT = new Map<string, readonly string[]>();
const MOST_SPLIT = 10_000;

function namesIn(path: string): readonly string[] {
  const known = SPLIT.get(path);
  if (known !== undefined) return known;
  if (SPLIT.size >= MOST_SPLIT) SPLIT.clear();
  const names = path.split('/').filter(name => name !== '');
  SPLIT.set(path, names);
  return names;
}

function failure(code: string, path: string): Error {
  return Object.assign(new Error(`${code}: ${path}`), { code });
}
