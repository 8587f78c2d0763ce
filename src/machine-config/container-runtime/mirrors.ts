import type { ImageMirrors } from '../../machine-config-api/cluster-config.ts';

/** The mirrors of one source, in the order they are to be tried. */
export interface MirrorSet {
  readonly source: string;
  readonly mirrors: readonly string[];
  readonly neverContactSource: boolean;
}

/**
 * Lists of mirrors from several objects as one a source, by source. The order of every list is kept: (b, c) and (a, b) become
 * (a, b, c). Where two lists contradict each other, the one that comes first counts. One that names no mirror is none.
 */
export function mergedMirrors(lists: readonly ImageMirrors[]): MirrorSet[] {
  const real = lists.filter(({ source, mirrors = [] }) => mirrors.some(mirror => mirror !== source));
  return [...Map.groupBy(real, ({ source }) => source)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([source, sets]) => ({
      source,
      mirrors: inOneOrder(sets.map(({ mirrors = [] }) => mirrors.filter(mirror => mirror !== source))),
      neverContactSource: sets.some(({ mirrorSourcePolicy }) => mirrorSourcePolicy === 'NeverContactSource'),
    }));
}

/** Takes, again and again, the first that no list puts behind another one that is left; the first of all where there is none. */
function inOneOrder(lists: readonly (readonly string[])[]): string[] {
  const left = new Set(lists.flat());
  const before = new Map<string, Set<string>>([...left].map(each => [each, new Set()]));
  for (const list of lists) {
    for (const [index, each] of list.entries()) {
      const previous = list[index - 1];
      if (previous !== undefined && previous !== each) before.get(each)?.add(previous);
    }
  }
  const ordered: string[] = [];
  const isFree = (each: string) => ![...(before.get(each) ?? [])].some(other => left.has(other));
  for (let [first] = left; first !== undefined; [first] = left) {
    const next = [...left].find(isFree) ?? first;
    left.delete(next);
    ordered.push(next);
  }
  return ordered;
}
