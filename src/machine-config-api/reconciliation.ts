import type { ReadConfig } from './config-difference.ts';
import { type ReadOptions, readIgnition } from './ignition/read.ts';
import { irreconcilable } from './ignition/reconcilable.ts';
import { emptyIgnition, IgnitionError } from './ignition/types.ts';
import type { MachineConfig } from './machine-config.ts';

/** Two configs of which the second can be applied in place over the first, or why not. */
export type Reconciliation =
  | { readonly isPossible: true; readonly before: ReadConfig; readonly after: ReadConfig }
  | { readonly isPossible: false; readonly reason: string };

/**
 * Whether a machine can go from one config to the other without being made anew (spec 60, section 7, rules 1 to 11). Both documents
 * are read first, the old one without our own rules, which also makes an empty list and an absent one the same (D-16). No config before is an empty one.
 */
export function reconciliation(before: MachineConfig | undefined, after: MachineConfig): Reconciliation {
  try {
    const [old, current] = [readConfig(before ?? {}, { isStored: true }), readConfig(after)];
    const reason = irreconcilable(
      { ignition: old.ignition, fips: old.spec.fips === true },
      { ignition: current.ignition, fips: current.spec.fips === true },
    );
    if (reason === undefined) return { isPossible: true, before: old, after: current };
    return { isPossible: false, reason: cannotReconcile(old.name, current.name, reason) };
  } catch (error) {
    if (!(error instanceof IgnitionError)) throw error;
    const [from, to] = [before?.metadata?.name ?? '', after.metadata?.name ?? ''];
    return { isPossible: false, reason: cannotReconcile(from, to, error.message) };
  }
}

/** A MachineConfig with its Ignition document read and checked. Throws `IgnitionError`. */
export function readConfig(config: MachineConfig, options: ReadOptions = {}): ReadConfig {
  return {
    name: config.metadata?.name ?? '',
    spec: config.spec ?? {},
    ignition: readIgnition(config.spec?.config, options) ?? emptyIgnition(),
  };
}

/** The reason as it stands on the node (spec 60, section 7). */
export function cannotReconcile(before: string, after: string, reason: string): string {
  return `can't reconcile config ${before} with ${after}: ${reason}`;
}
