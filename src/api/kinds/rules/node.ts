import type { NodeSpec } from 'kubernetes-types/core/v1.d.ts';
import { type FieldError, forbidden } from '../../schema/field-error.ts';
import { sameJson } from '../../schema/json.ts';
import type { Fields, Rules } from '../kind.ts';

/** A kubelet registers its node together with its first status. */
export const nodeRules: Rules = {
  keepsStatusOnCreate: true,
  statusWritesMetadata: true,
  checkUpdate: nodeErrors,
};

function nodeErrors(object: Fields, old: Fields): FieldError[] {
  const [spec, before] = [(object.spec ?? {}) as NodeSpec, (old.spec ?? {}) as NodeSpec];
  const errors: FieldError[] = [];
  if ((before.podCIDRs?.length ?? 0) > 0 && !sameJson(spec.podCIDRs, before.podCIDRs)) {
    errors.push(forbidden('spec.podCIDRs', 'node updates may not change podCIDR except from "" to valid'));
  }
  if (before.providerID && spec.providerID !== before.providerID) {
    errors.push(forbidden('spec.providerID', 'node updates may not change providerID except from "" to valid'));
  }
  return errors;
}
