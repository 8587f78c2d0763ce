import type { MachineConfig } from '../../machine-config-api/machine-config.ts';
import { cannotReconcile, type Reconciliation, reconciliation } from '../../machine-config-api/reconciliation.ts';

/** A desired config that cannot be applied in place: the node becomes Unreconcilable, not Degraded (spec 60, section 7). */
export class UnreconcilableError extends Error {
  override readonly name = 'UnreconcilableError';
}

/** Where the kernel says whether it is in FIPS mode. */
export const FIPS_ENABLED = '/proc/sys/crypto/fips_enabled';

/**
 * Whether this node can be brought from one config to the other (spec 60, section 7, all rules). `fipsEnabled` is the text of
 * `/proc/sys/crypto/fips_enabled`, undefined where there is no such file.
 */
export function reconcile(
  before: MachineConfig | undefined,
  after: MachineConfig,
  fipsEnabled: string | undefined,
): Reconciliation {
  // A machine without a config is in the mode it was installed in.
  const first = { spec: { fips: booleanOf(fipsEnabled?.trim() ?? '') ?? after.spec?.fips === true } };
  const result = reconciliation(before ?? first, after);
  if (!result.isPossible) return result;
  const problem = fipsProblem(fipsEnabled, result.after.spec.fips === true);
  if (problem === undefined) return result;
  return { isPossible: false, reason: cannotReconcile(result.before.name, result.after.name, problem) };
}

/** Why a node in that FIPS mode cannot have the config, undefined if it can (spec 60, section 7, rule 12). */
export function fipsProblem(fipsEnabled: string | undefined, isWanted: boolean): string | undefined {
  if (fipsEnabled === undefined) return undefined;
  const isEnabled = booleanOf(fipsEnabled.trim());
  if (isEnabled === undefined) {
    const found = JSON.stringify(fipsEnabled.slice(0, LONGEST_QUOTED));
    return `error parsing FIPS file at ${FIPS_ENABLED}: expected a boolean, found ${found}`;
  }
  return isEnabled === isWanted
    ? undefined
    : 'detected change to FIPS flag; refusing to modify FIPS on a running cluster';
}

const LONGEST_QUOTED = 20;
const TRUE = new Set(['1', 't', 'T', 'true', 'TRUE', 'True']);
const FALSE = new Set(['0', 'f', 'F', 'false', 'FALSE', 'False']);

function booleanOf(text: string): boolean | undefined {
  if (TRUE.has(text)) return true;
  return FALSE.has(text) ? false : undefined;
}

/** Errors may be wrapped this deep; a chain that bites its tail ends here. */
const DEEPEST_CAUSE = 32;

/** The state an error puts the node in (spec 60, 5.1.3): also where it wraps, or is one of several with, an unreconcilable one. */
export function stateOfError(error: unknown, depth = 0): 'Degraded' | 'Unreconcilable' {
  if (error instanceof UnreconcilableError) return 'Unreconcilable';
  if (!(error instanceof Error) || depth === DEEPEST_CAUSE) return 'Degraded';
  const inner = [error.cause, ...(error instanceof AggregateError ? (error.errors as unknown[]) : [])];
  return inner.some(cause => stateOfError(cause, depth + 1) === 'Unreconcilable') ? 'Unreconcilable' : 'Degraded';
}
