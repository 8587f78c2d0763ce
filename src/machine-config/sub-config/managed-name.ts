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
 * `ofPool` are all objects of the kind that select the pool, the one itself included. The suffix in the annotation is that of
 * one pool; in another one it may be somebody else's, so what counts is the name among the finalizers. Throws
 * `ManagedNameError`.
 */
export function managedName(
  kind: SubConfigKind,
  pool: string,
  self: SubConfig,
  ofPool: readonly SubConfig[],
): ManagedName {
  const held = heldSuffix(kind, pool, self);
  if (held !== undefined) return named(kind, pool, held);
  const others = ofPool.filter(({ metadata }) => metadata?.name !== self.metadata?.name);
  const taken = others.map(other => heldSuffix(kind, pool, other) ?? rememberedSuffix(other));
  const remembered = rememberedSuffix(self);
  if (remembered !== undefined && !taken.includes(remembered)) return named(kind, pool, remembered);
  if (others.length === 0) return named(kind, pool, '');
  const next = Math.max(...taken.map(suffix => suffixNumber(kind, pool, suffix))) + 1;
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

/** The names among an object's finalizers that are those of MachineConfigs made from it. */
export function namesMadeFrom({ metadata }: SubConfig): string[] {
  return (metadata?.finalizers ?? []).filter(finalizer =>
    /^99-.*-generated-(?:kubelet|containerruntime)(?:-\d)?$/.test(finalizer),
  );
}

/** The suffix under which an object has been made into a MachineConfig of a pool; the highest, should there be several. */
function heldSuffix(kind: SubConfigKind, pool: string, object: SubConfig): string | undefined {
  const base = named(kind, pool, '').name;
  return namesMadeFrom(object)
    .flatMap(name => (name === base ? [''] : name.slice(0, -1) === `${base}-` ? [name.slice(-1)] : []))
    .sort()
    .at(-1);
}

function rememberedSuffix({ metadata }: SubConfig): string | undefined {
  return metadata?.annotations?.[NAME_SUFFIX];
}

function suffixNumber(kind: SubConfigKind, pool: string, suffix: string | undefined): number {
  if (!suffix) return 0;
  if (!/^[+-]?\d+$/.test(suffix)) {
    throw new ManagedNameError(`the annotation ${NAME_SUFFIX} of a ${WORDS[kind]} of pool ${pool} is not a number`);
  }
  return Number(suffix);
}
