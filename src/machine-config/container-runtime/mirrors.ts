import type { ImageMirrors } from '../../machine-config-api/cluster-config.ts';

/** The mirrors of one source, in the order they are to be tried. */
export interface MirrorSet {
  readonly source: string;
  readonly mirrors: readonly string[];
  readonly neverContactSource: boolean;
}

/**
 * Lists of mirrors from several objects as one a source, by source, in upstream's order: that of every list is kept, (b, c) and (a, b)
 * become (a, b, c), and names decide where the lists say nothing or contradict each other. A list that names no mirror but the
 * source is none. The source comes last by itself; it is listed where a list has it before another one.
 */
export function mergedMirrors(lists: readonly ImageMirrors[]): MirrorSet[] {
  const real = lists.filter(({ source, mirrors }) => mirrors?.some(mirror => mirror !== source));
  return [...Map.groupBy(real, ({ source }) => source)]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([source, sets]) => {
      const orders = sets.map(({ mirrors = [] }) => (mirrors.includes(source) ? mirrors : [...mirrors, source]));
      const order = inOneOrder(orders);
      return {
        source,
        mirrors: order.at(-1) === source ? order.slice(0, -1) : order,
        neverContactSource: sets.some(({ mirrorSourcePolicy }) => mirrorSourcePolicy === 'NeverContactSource'),
      };
    });
}

/** Whoever nobody else has to come before, in the order they become so, by name; the first of those left where all wait for each other. */
function inOneOrder(orders: readonly (readonly string[])[]): string[] {
  const names = [...new Set(orders.flat())].sort();
  const before = new Map(names.map(name => [name, new Set<string>()]));
  for (const order of orders) {
    for (const [index, name] of order.entries()) if (index > 0) before.get(name)?.add(order[index - 1] as string);
  }
  const ordered = new Set<string>();
  const free = names.filter(name => before.get(name)?.size === 0);
  const waiting = [...names];
  while (free.length + waiting.length > 0) {
    const next = (free.shift() ?? waiting.shift()) as string;
    if (ordered.has(next)) continue;
    ordered.add(next);
    for (const name of names) {
      const others = before.get(name);
      if (others?.delete(next) && others.size === 0 && !ordered.has(name)) free.push(name);
    }
  }
  return [...ordered];
}
