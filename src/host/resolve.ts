import { posix } from 'node:path';
import { pathProblem } from '../machine-config-api/ignition/path-rules.ts';
import { type FileKind, HostError } from './port.ts';

/** As many links as the kernel follows. */
const MOST_LINKS = 40;

/** What resolving has to know about a disk. Paths are free of links. */
export interface LinkSource {
  kind(path: string): Promise<FileKind | undefined>;
  linkText(path: string): Promise<string>;
}

export interface ResolvedPath {
  /** Where the path leads, free of links. What does not exist yet is taken as it is written. */
  readonly path: string;
  readonly kind: FileKind | undefined;
  /** Every directory entry that was looked up on the way: what decides where the path leads. */
  readonly visited: readonly { readonly directory: string; readonly name: string }[];
}

/**
 * Follows a path of the host component by component, as the kernel does for a process whose root directory it is: absolute
 * links begin at the root again and `..` does not lead above it, so nothing planted in the root leads out of it. The last
 * component is followed only when asked.
 */
export async function resolveBelowRoot(source: LinkSource, path: string, followLast: boolean): Promise<ResolvedPath> {
  requireCleanPath(path);
  const visited: { directory: string; name: string }[] = [];
  const ahead = componentsOf(path);
  let here = '/';
  let kind: FileKind | undefined = 'directory';
  let links = 0;
  while (ahead.length > 0) {
    const name = ahead.shift() as string;
    if (kind !== undefined && kind !== 'directory') {
      throw new HostError('not-a-directory', `${quoted(path)}: ${quoted(here)} is no directory but a ${kind}`);
    }
    if (name === '..') {
      here = posix.dirname(here);
      continue;
    }
    visited.push({ directory: here, name });
    const next = posix.join(here, name);
    kind = kind === undefined ? undefined : await source.kind(next);
    if (kind !== 'symlink' || (ahead.length === 0 && !followLast)) {
      here = next;
      continue;
    }
    if (++links > MOST_LINKS) throw new HostError('io', `${quoted(path)}: more than ${MOST_LINKS} symbolic links`);
    const target = await source.linkText(next);
    ahead.unshift(...componentsOf(target));
    if (target.startsWith('/')) here = '/';
    kind = 'directory';
  }
  return { path: here, kind, visited };
}

/** Refuses what is no path of a host: relative, with `..`, `.`, `//` or a slash at its end. */
export function requireCleanPath(path: string): void {
  const problem = pathProblem(path);
  if (problem !== undefined) throw new HostError('outside-root', `path ${problem}`);
}

function componentsOf(path: string): string[] {
  return path.split('/').filter(name => name !== '' && name !== '.');
}

/** A path in an error: line feeds and other oddities escaped. */
export function quoted(path: string): string {
  return JSON.stringify(path);
}
