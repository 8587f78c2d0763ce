import type { Reconcile } from './reconcile.ts';

/** `spec.managementState` of an operator resource; there may be values nobody knows. */
export type ManagementState = 'Managed' | 'Unmanaged' | 'Removed' | (string & {});

export interface ManagementOptions {
  /** The operator does not let itself be switched off. */
  readonly alwaysManaged?: boolean | undefined;
  /** The operand cannot be removed. */
  readonly notRemovable?: boolean | undefined;
}

/** Whether the operator is to act; unknown and empty values count as managed (spec 30, 2.6). */
export function isManaged(state: ManagementState | undefined, options: ManagementOptions = {}): boolean {
  if (options.alwaysManaged || options.notRemovable) return true;
  return state !== 'Unmanaged' && state !== 'Removed';
}

/** Does nothing, successfully, while the operator is not to act. */
export function whileManaged(
  reconcile: Reconcile,
  state: () => ManagementState | undefined | Promise<ManagementState | undefined>,
  options?: ManagementOptions,
): Reconcile {
  return async (key, context) => (isManaged(await state(), options) ? reconcile(key, context) : undefined);
}
