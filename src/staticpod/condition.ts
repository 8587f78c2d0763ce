import type { Condition } from '../controller/condition.ts';

/** A condition as it is stored: what is empty is left out. */
export function condition(type: string, status: Condition['status'], reason = '', message = ''): Condition {
  return { type, status, ...(reason === '' ? {} : { reason }), ...(message === '' ? {} : { message }) };
}
