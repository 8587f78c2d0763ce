import type { MachineConfigPool } from '../../machine-config-api/machine-config.ts';

/** Ours, on a pool: the nodes that a controller has undertaken to target. */
export const TARGETING = 'rotunda.dev/targeting';

/**
 * What a controller says it will do before it does it. Written with the version of the pool that its choice is made from: of two
 * controllers that choose at the same time only one gets its promise through, and the other counts that one's nodes.
 */
export interface TargetingPromise {
  readonly config: string;
  readonly nodes: readonly string[];
}

/** The promise of a pool; one that cannot be read promises nothing. */
export function promiseOf({ metadata }: MachineConfigPool): TargetingPromise {
  try {
    const { config, nodes } = JSON.parse(metadata?.annotations?.[TARGETING] ?? '{}') as Partial<TargetingPromise>;
    if (typeof config === 'string' && Array.isArray(nodes) && nodes.every(node => typeof node === 'string'))
      return { config, nodes };
  } catch {
    // Somebody else wrote it.
  }
  return { config: '', nodes: [] };
}

export function encodePromise(promise: TargetingPromise): string {
  return JSON.stringify(promise);
}
