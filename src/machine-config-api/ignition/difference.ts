import { isDeepStrictEqual } from 'node:util';
import type { IgnitionConfig } from './types.ts';

/** The paths of files that were added, removed or changed in anything, content or mode or owner. */
export function changedFiles(before: IgnitionConfig, after: IgnitionConfig): string[] {
  return changedKeys(before.storage?.files ?? [], after.storage?.files ?? [], ({ path }) => path);
}

/** The names of units that were added, removed or changed. */
export function changedUnits(before: IgnitionConfig, after: IgnitionConfig): string[] {
  return changedKeys(before.systemd?.units ?? [], after.systemd?.units ?? [], ({ name }) => name);
}

function changedKeys<T>(before: readonly T[], after: readonly T[], key: (item: T) => string): string[] {
  const [old, current] = [
    new Map(before.map(item => [key(item), item])),
    new Map(after.map(item => [key(item), item])),
  ];
  return [...new Set([...old.keys(), ...current.keys()])]
    .filter(name => !isDeepStrictEqual(old.get(name), current.get(name)))
    .sort();
}
