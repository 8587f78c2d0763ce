import { posix } from 'node:path';
import { aborted } from '../kube/aborted.ts';
import type { Disk } from './files.ts';
import { type LinkSource, type ResolvedPath, resolveBelowRoot } from './resolve.ts';

/** A path that ends in this stands for every entry of its directory. */
export const ANY_NAME = '*';

/** For each directory the names in it that matter, and the paths they matter to. */
type Entries = ReadonlyMap<string, ReadonlyMap<string, ReadonlySet<string>>>;

/**
 * Watches every directory that has a say in where a path leads, not only the last one: a parent that is removed or moved away,
 * or a link that is turned, is a change too (spec 60, D-36). Ends when aborted, or throws when a directory cannot be watched.
 */
export async function watchPaths(
  disk: Pick<Disk, 'watch'>,
  source: LinkSource,
  paths: readonly string[],
  changed: (path: string) => void,
  signal: AbortSignal,
): Promise<void> {
  const failed = Promise.withResolvers<never>();
  failed.promise.catch(() => {});
  let current = new AbortController();
  /** Paths that lead elsewhere by now; the watches must be put where they lead. */
  const moved = new Set<string>();
  let isArming = false;

  function heard(entries: Entries, directory: string, name: string | undefined): void {
    const names = entries.get(directory) ?? new Map<string, ReadonlySet<string>>();
    // A directory that goes away itself is told of by its own name.
    const isWhole = name === undefined || (!names.has(name) && name === posix.basename(directory));
    const affected = isWhole
      ? new Set([...names.values()].flatMap(found => [...found]))
      : [...(names.get(name) ?? []), ...(names.get(ANY_NAME) ?? [])];
    for (const path of affected) {
      changed(path);
      if (isWhole || posix.dirname(path) !== directory) moved.add(path);
    }
    if (moved.size > 0 && !isArming) void rearm().catch(failed.reject);
  }

  async function arm(): Promise<void> {
    const entries = await entriesOf(source, paths);
    if (signal.aborted) return;
    current.abort();
    current = new AbortController();
    disk.watch([...entries.keys()], (directory, name) => heard(entries, directory, name), current.signal);
  }

  async function rearm(): Promise<void> {
    isArming = true;
    do {
      const again = [...moved];
      moved.clear();
      await arm();
      // Something may have happened there before the new watch was in place.
      for (const path of again) changed(path);
    } while (moved.size > 0 && !signal.aborted);
    isArming = false;
  }

  try {
    await rearm();
    await Promise.race([aborted(signal), failed.promise]);
  } finally {
    current.abort();
  }
}

async function entriesOf(source: LinkSource, paths: readonly string[]): Promise<Entries> {
  const entries = new Map<string, Map<string, Set<string>>>();
  for (const path of paths) {
    for (const { directory, name } of await visitedBy(source, path)) {
      const names = entries.get(directory) ?? new Map<string, Set<string>>();
      entries.set(directory, names.set(name, (names.get(name) ?? new Set()).add(path)));
    }
  }
  return entries;
}

/** A path that leads nowhere sensible at the moment, as through a file, is watched as far as it goes. */
async function visitedBy(source: LinkSource, path: string): Promise<ResolvedPath['visited']> {
  for (let part = path; part !== '/'; part = posix.dirname(part)) {
    try {
      return (await resolveBelowRoot(source, part, true)).visited;
    } catch {
      // Then its parent.
    }
  }
  return [];
}
