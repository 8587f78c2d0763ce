import {
  managedName,
  type SubConfigKind,
  subConfigsOfPool,
} from '../../../src/machine-config/sub-config/managed-name.ts';
import type { MachineConfigPool, SubConfig } from '../../../src/machine-config-api/machine-config.ts';
import { attempt, unlike, verdicts } from '../difference.ts';
import { type Judged, judged } from '../judged.ts';
import type { Random } from '../random.ts';

const SUFFIX = 'machineconfiguration.openshift.io/mc-name-suffix';

interface Input {
  Kind: SubConfigKind;
  Pool: { metadata: { name: string; labels: object } };
  Configs: { metadata: { name: string } }[];
  Self: number;
  MachineConfigs: string[];
}

/** The name of the MachineConfig that is made from a KubeletConfig or ContainerRuntimeConfig. */
function managed(Kind: SubConfigKind): Judged {
  return judged<Input>({
    name: `managed names, ${Kind}`,
    program: 'mcodiff',
    op: 'managed',
    generate: r => {
      const base = `99-worker-generated-${Kind}`;
      const Configs = configs(r, base);
      const made = Configs.flatMap(({ metadata }) => metadata.finalizers ?? []);
      return {
        Kind,
        Pool: { metadata: { name: 'worker', uid: 'u', labels: { role: 'worker', ...(r.chance(0.5) && { a: 'b' }) } } },
        Configs,
        Self: r.int(Configs.length),
        MachineConfigs: [...new Set([...made, ...(r.chance(0.1) ? [`99-worker-u-${Kind}`] : [])])],
      };
    },
    compare: ({ Pool, Configs, Self }, { out, err }) => {
      const pool = Pool as unknown as MachineConfigPool;
      const all = Configs as unknown as SubConfig[];
      const self = all[Self] as SubConfig;
      const ofPool = subConfigsOfPool(pool, all);
      const isMarked = ofPool.every(
        ({ metadata }) => metadata?.finalizers === undefined || metadata.annotations?.[SUFFIX] !== undefined,
      );
      // A config is named for the pools it selects.
      if (!ofPool.includes(self)) return [];
      const mine = attempt(() => managedName(Kind, 'worker', self, ofPool).name);
      const differences = verdicts(mine, err, out);
      return differences.length > 0 || mine.kind !== 'value'
        ? differences
        : unlike(isMarked ? 'name' : 'a config is not marked', mine.value, out);
    },
  });
}

/** Configs as they were made one after the other; what one has been made into is among its finalizers. The youngest may be new. */
function configs(r: Random, base: string) {
  const count = 1 + r.int(r.chance(0.05) ? 12 : 4);
  let next = 0;
  return r.times(count, index => {
    const isNew = index === count - 1 && r.chance(0.5);
    const isSelecting = r.chance(0.9);
    // Some before it were deleted.
    if (index > 0 && r.chance(0.2)) next++;
    const suffix = next === 0 ? '' : String(next);
    if (isSelecting && !isNew) next++;
    const isMade = isSelecting && !isNew;
    const selector = r.pick([
      { matchLabels: { role: 'worker' } },
      { matchExpressions: [{ key: 'role', operator: 'Exists' }] },
    ]);
    return {
      metadata: {
        name: `c${index}`,
        creationTimestamp: `2024-01-01T00:00:${String(index).padStart(2, '0')}Z`,
        ...(isMade && { finalizers: [suffix === '' ? base : `${base}-${suffix}`] }),
        ...(isMade && r.chance(0.9) && { annotations: { [SUFFIX]: suffix } }),
      },
      spec: { machineConfigPoolSelector: isSelecting ? selector : { matchLabels: { role: 'other' } } },
    };
  });
}

export const MANAGED_NAMES: readonly Judged[] = [managed('kubelet'), managed('containerruntime')];
