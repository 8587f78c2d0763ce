import { parseRfc3339 } from '../../kube/time.ts';
import type { MachineConfigPool, SubConfig } from '../../machine-config-api/machine-config.ts';
import { NAME_SUFFIX } from '../../machine-config-api/names.ts';
import { selectorProblem, selects } from '../selector.ts';

/** A pool that cannot take one more of them. */
export class ManagedNameError extends Error {
  override readonly name = 'ManagedNameError';
}

export type SubConfigKind = 'kubelet' | 'containerruntime';

/** Suffixes end here: with the one without, ten configs of a kind for a pool (spec 50, section 7). */
const HIGHEST_SUFFIX = 9;

/** The name of a generated MachineConfig and the suffix that is remembered on its source. */
export interface ManagedName {
  readonly name: string;
  /** Empty for the first one. */
  readonly suffix: string;
}

/**
 * The name of the MachineConfig that is made from a KubeletConfig or ContainerRuntimeConfig for a pool (spec 50, section 7): the
 * first of a pool has no suffix, further ones the highest plus one, so that the younger wins; what was given once stays.
 * `all` are all objects of the kind, the one itself included. Throws `ManagedNameError`.
 */
export function managedName(
  kind: SubConfigKind,
  pool: string,
  self: SubConfig,
  ofPool: readonly SubConfig[],
): ManagedName {
  const remembered = self.metadata?.annotations?.[NAME_SUFFIX];
  if (remembered !== undefined) return named(kind, pool, remembered);
  if (ofPool.every(other => other.metadata?.name === self.metadata?.name)) return named(kind, pool, '');
  const made = madeBefore(kind, pool, self, ofPool);
  if (made !== undefined) return made;
  const suffixes = ofPool.map(({ metadata }) => Number(metadata?.annotations?.[NAME_SUFFIX] || 0));
  if (suffixes.some(suffix => !Number.isSafeInteger(suffix))) {
    throw new ManagedNameError(`the annotation ${NAME_SUFFIX} of a ${WORDS[kind]} of pool ${pool} is not a number`);
  }
  const next = Math.max(...suffixes) + 1;
  if (next > HIGHEST_SUFFIX) {
    throw new ManagedNameError(
      `max number of supported ${WORDS[kind]} (10) has been reached. Please delete old ones before retrying`,
    );
  }
  return named(kind, pool, String(next));
}

/** While a cluster is installed a pool may have one of a kind only. */
export function bootstrapName(kind: SubConfigKind, pool: string, existing: number): ManagedName {
  if (existing > 0)
    throw new ManagedNameError(`pool ${pool} has a ${WORDS[kind]} already; at install time there is one for a pool`);
  return named(kind, pool, '');
}

/** The objects of a kind that select a pool. */
export function subConfigsOfPool<T extends SubConfig>(pool: MachineConfigPool, all: readonly T[]): T[] {
  return all.filter(
    ({ spec }) =>
      selectorProblem(spec?.machineConfigPoolSelector) === undefined &&
      selects(spec?.machineConfigPoolSelector, pool.metadata?.labels),
  );
}

const WORDS: Readonly<Record<SubConfigKind, string>> = { kubelet: 'kubelet config', containerruntime: 'ctrcfgs' };

function named(kind: SubConfigKind, pool: string, suffix: string): ManagedName {
  const base = `99-${pool}-generated-${kind}`;
  return { name: suffix === '' ? base : `${base}-${suffix}`, suffix };
}

/** An older object may have lost its annotation; its finalizers still say what was made from it. */
function madeBefore(
  kind: SubConfigKind,
  pool: string,
  self: SubConfig,
  ofPool: readonly SubConfig[],
): ManagedName | undefined {
  if (!ofPool.some(other => createdMs(other) > createdMs(self))) return undefined;
  const base = `99-${pool}-generated-${kind}`;
  const suffixes = (self.metadata?.finalizers ?? []).flatMap(finalizer => {
    if (finalizer === base) return [0];
    const [, digits] = /^(.*)-(\d)$/.exec(finalizer)?.slice(1) ?? [];
    return digits !== undefined && finalizer === `${base}-${digits}` ? [Number(digits)] : [];
  });
  if (suffixes.length === 0) return undefined;
  const highest = Math.max(...suffixes);
  return named(kind, pool, highest === 0 ? '' : String(highest));
}

function createdMs({ metadata }: SubConfig): number {
  const created = parseRfc3339(metadata?.creationTimestamp ?? '');
  return created === undefined ? 0 : Number(created.nanos / 1_000_000n);
}
