import { type FieldError, invalid } from './field-error.ts';

const SYNTAX = /^[+-]?(\d+(?:\.\d*)?|\.\d+)([numkMGTPE]|[KMGTPE]i|[eE][+-]?\d+)?$/;

/** The regular expression the API server shows when a quantity does not parse. */
export const QUANTITY_FAULT =
  "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/** Whether this is an amount such as `500m`, `1.5`, `128Mi` or `1e3`. */
export function isQuantity(value: unknown): boolean {
  if (typeof value === 'number') return Number.isFinite(value);
  return typeof value === 'string' && SYNTAX.test(value);
}

export function quantityErrors(value: unknown, path: string): FieldError[] {
  return isQuantity(value) ? [] : [invalid(path, value, QUANTITY_FAULT)];
}
