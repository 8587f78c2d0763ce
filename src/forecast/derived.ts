import { isDeepStrictEqual } from 'node:util';
import type { ConfigMap, Secret } from 'kubernetes-types/core/v1.d.ts';
import { copyRules } from '../etcd/resource-sync.ts';
import { CONFIG_MAPS, SECRETS } from '../kube/resource.ts';
import { COMBINED_BUNDLES, combineBundles, combinedConfigMap } from '../kube-apiserver/combined-bundles.ts';
import { FIXED_COPIES } from '../kube-apiserver/copies.ts';
import type { ObjectRef } from '../trust/object.ts';
import { PlanWorld } from './world.ts';

/** An object that follows others, and changed because one of them did. */
export interface DerivedChange {
  readonly object: ObjectRef;
  readonly reason: string;
}

interface Copy {
  readonly kind: ObjectRef['kind'];
  readonly source: { readonly namespace: string; readonly name: string };
  readonly destination: { readonly namespace: string; readonly name: string };
}

const COPIES: readonly Copy[] = [
  ...copyRules({ release: 'later' }),
  ...FIXED_COPIES.flatMap(({ kind, source, destination }): Copy[] =>
    source === undefined ? [] : [{ kind: kind === 'secret' ? 'Secret' : 'ConfigMap', source, destination }],
  ),
];

/** Copies of copies: as many rounds as there can be steps. */
const LONGEST_WAY = 4;

/** Brings combined bundles and copies in line with what they come from. Objects the cluster does not have are left out. */
export async function deriveAll(world: PlanWorld): Promise<{ changes: DerivedChange[]; until: Date | undefined }> {
  const changes: DerivedChange[] = [];
  let until: Date | undefined;
  for (let round = 0; round < LONGEST_WAY; round++) {
    const before = changes.length;
    for (const combined of COMBINED_BUNDLES) {
      const stored = await world.configMap(combined.destination);
      if (stored === undefined) continue;
      const sources = new Map<string, ConfigMap | undefined>();
      for (const source of combined.sources) sources.set(source.name, await world.configMap(source));
      const decision = combineBundles(combined, ({ name }) => sources.get(name), world.now);
      if (decision.action === 'fail') continue;
      until = until === undefined || decision.until < until ? decision.until : until;
      const wanted = combinedConfigMap(combined, decision.text);
      if (isDeepStrictEqual(stored.data, wanted.data)) continue;
      await world.put(CONFIG_MAPS, wanted);
      changes.push({
        object: { kind: 'ConfigMap', ...combined.destination },
        reason: `combined from ${combined.sources.length} bundles, one of which changed`,
      });
    }
    for (const copy of COPIES) changes.push(...(await follow(world, copy)));
    if (changes.length === before) break;
  }
  return { changes, until };
}

/** Derived objects that are out of date as the cluster has them. */
export async function outOfDate(
  configMaps: readonly ConfigMap[],
  secrets: readonly Secret[],
  now: Date,
): Promise<readonly ObjectRef[]> {
  const world = new PlanWorld(now);
  await world.seed(SECRETS, secrets);
  await world.seed(CONFIG_MAPS, configMaps);
  const { changes } = await deriveAll(world);
  return changes.map(({ object }) => object);
}

async function follow(world: PlanWorld, { kind, source, destination }: Copy): Promise<DerivedChange[]> {
  const read = (place: Copy['source']) => (kind === 'Secret' ? world.secret(place) : world.configMap(place));
  const [from, to] = [await read(source), await read(destination)];
  if (from === undefined || to === undefined || isDeepStrictEqual(from.data, to.data)) return [];
  const copy = { ...to, data: from.data ?? {} };
  if (kind === 'Secret') await world.put(SECRETS, copy as Secret);
  else await world.put(CONFIG_MAPS, copy as ConfigMap);
  return [
    { object: { kind, ...destination }, reason: `copy of ${kind.toLowerCase()}/${source.name} in ${source.namespace}` },
  ];
}
