import type { DeleteOptions } from 'kubernetes-types/meta/v1.d.ts';
import { type FieldError, invalid, invalidObject, unsupported } from '../schema/field-error.ts';
import type { DeleteParameters, Propagation } from './delete.ts';

/** The options of a deletion, with one that is younger than the types. */
export interface AllDeleteOptions extends DeleteOptions {
  readonly ignoreStoreReadErrorWithClusterBreakingPotential?: boolean;
}

const EVEN_DAMAGED = 'ignoreStoreReadErrorWithClusterBreakingPotential';
const NOT_WITH_EVEN_DAMAGED = [
  'dryRun',
  'propagationPolicy',
  'orphanDependents',
  'gracePeriodSeconds',
  'preconditions',
] as const;

/** Checks the options of a deletion, sent as a body or as parameters of the URL. Throws 422. */
export function deleteParameters(options: AllDeleteOptions): DeleteParameters {
  const { dryRun = [], preconditions, gracePeriodSeconds, propagationPolicy, orphanDependents } = options;
  const errors: FieldError[] = dryRunErrors(dryRun);
  if (propagationPolicy !== undefined && !isPropagation(propagationPolicy)) {
    errors.push(unsupported('propagationPolicy', propagationPolicy, [...PROPAGATIONS, 'nil']));
  }
  if (propagationPolicy !== undefined && orphanDependents !== undefined) {
    errors.push(
      invalid('propagationPolicy', propagationPolicy, 'orphanDependents and deletionPropagation cannot be both set'),
    );
  }
  const evenDamaged = options[EVEN_DAMAGED] === true;
  for (const other of evenDamaged ? NOT_WITH_EVEN_DAMAGED : []) {
    if (options[other] !== undefined) errors.push(invalid(EVEN_DAMAGED, true, `cannot be set together with .${other}`));
  }
  if (errors.length > 0) throw invalidObject('meta.k8s.io', 'DeleteOptions', '', errors);
  const legacy = orphanDependents === undefined ? undefined : orphanDependents ? 'Orphan' : 'Background';
  return {
    dryRun: dryRun.length > 0,
    uid: preconditions?.uid,
    resourceVersion: preconditions?.resourceVersion,
    gracePeriodSeconds,
    propagation: (propagationPolicy as Propagation | undefined) ?? legacy,
    evenDamaged,
  };
}

const PROPAGATIONS: readonly Propagation[] = ['Foreground', 'Background', 'Orphan'];

function isPropagation(text: string): text is Propagation {
  return (PROPAGATIONS as readonly string[]).includes(text);
}

/** `dryRun` knows one value. */
export function dryRunErrors(dryRun: readonly string[]): FieldError[] {
  return dryRun.every(stage => stage === 'All') ? [] : [unsupported('dryRun', dryRun, ['All'])];
}
