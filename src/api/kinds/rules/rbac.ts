import { type FieldError, invalid } from '../../schema/field-error.ts';
import { sameJson } from '../../schema/json.ts';
import type { Fields, Rules } from '../kind.ts';

export const roleRules: Rules = { createsOnUpdate: true };

export const bindingRules: Rules = { createsOnUpdate: true, checkUpdate: roleRefErrors };

/** What a binding grants cannot change under those it grants it to. */
function roleRefErrors(object: Fields, old: Fields): FieldError[] {
  const [role, before] = [object['roleRef'], old['roleRef']];
  return sameJson(role, before) ? [] : [invalid('roleRef', role, 'cannot change roleRef')];
}
