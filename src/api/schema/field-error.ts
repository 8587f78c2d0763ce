import { KubeError } from '../../kube/error.ts';

/** What is wrong with one field, in the words of the Kubernetes API server. */
export interface FieldError {
  /** `spec.containers[0].name`; empty for the object as a whole. */
  readonly path: string;
  /** The reason of the cause in `Status.details`. */
  readonly reason: FieldErrorReason;
  /** What the reason leaves open: `must be greater than or equal to 0`. May be empty. */
  readonly detail: string;
  /** Present (maybe `undefined`) when the message shows the value. */
  readonly badValue?: unknown;
}

export type FieldErrorReason =
  | 'FieldValueRequired'
  | 'FieldValueInvalid'
  | 'FieldValueTypeInvalid'
  | 'FieldValueNotSupported'
  | 'FieldValueDuplicate'
  | 'FieldValueForbidden'
  | 'FieldValueNotFound'
  | 'FieldValueTooLong'
  | 'FieldValueTooMany';

/** More errors than anybody reads; the rest is left off, as the real server does for lists of causes it cannot show. */
export const MAX_FIELD_ERRORS = 100;

export function required(path: string, detail = ''): FieldError {
  return { path, reason: 'FieldValueRequired', detail };
}

export function invalid(path: string, badValue: unknown, detail: string): FieldError {
  return { path, reason: 'FieldValueInvalid', badValue, detail };
}

/** A value of the wrong JSON type; the message is that of `invalid`, the cause's reason is its own. */
export function typeInvalid(path: string, badValue: unknown, detail: string): FieldError {
  return { path, reason: 'FieldValueTypeInvalid', badValue, detail };
}

export function unsupported(path: string, badValue: unknown, supported: readonly unknown[]): FieldError {
  const values = supported.map(value => JSON.stringify(value)).join(', ');
  return {
    path,
    reason: 'FieldValueNotSupported',
    badValue,
    detail: supported.length === 0 ? '' : `supported values: ${values}`,
  };
}

export function duplicate(path: string, badValue: unknown): FieldError {
  return { path, reason: 'FieldValueDuplicate', badValue, detail: '' };
}

export function forbidden(path: string, detail: string): FieldError {
  return { path, reason: 'FieldValueForbidden', detail };
}

export function notFound(path: string, badValue: unknown): FieldError {
  return { path, reason: 'FieldValueNotFound', badValue, detail: '' };
}

export function tooLong(path: string, maxLength: number): FieldError {
  return { path, reason: 'FieldValueTooLong', detail: `may not be more than ${maxLength} bytes` };
}

export function tooMany(path: string, actual: number, max: number): FieldError {
  return { path, reason: 'FieldValueTooMany', badValue: actual, detail: `must have at most ${max} items` };
}

const TITLES: Readonly<Record<FieldErrorReason, string>> = {
  FieldValueRequired: 'Required value',
  FieldValueInvalid: 'Invalid value',
  FieldValueTypeInvalid: 'Invalid value',
  FieldValueNotSupported: 'Unsupported value',
  FieldValueDuplicate: 'Duplicate value',
  FieldValueForbidden: 'Forbidden',
  FieldValueNotFound: 'Not found',
  FieldValueTooLong: 'Too long',
  FieldValueTooMany: 'Too many',
};

/** The message without the path: `Invalid value: "x": must be ...`. This is the text of a cause. */
export function messageOf(error: FieldError): string {
  const parts = [TITLES[error.reason]];
  if ('badValue' in error) parts.push(textOf(error.badValue));
  if (error.detail !== '') parts.push(error.detail);
  return parts.join(': ');
}

/** The whole line: `spec.replicas: Invalid value: -1: must be greater than or equal to 0`. */
export function formatFieldError(error: FieldError): string {
  return `${error.path === '' ? '<nil>' : error.path}: ${messageOf(error)}`;
}

/** The 422 answer for an object with invalid fields: `Pod "x" is invalid: ...`, one cause for each error. */
export function invalidObject(group: string, kind: string, name: string, errors: readonly FieldError[]): KubeError {
  const shown = errors.slice(0, MAX_FIELD_ERRORS);
  const lines = [...new Set(shown.map(formatFieldError))];
  const list = lines.length === 1 ? lines[0] : `[${lines.join(', ')}]`;
  const qualified = group === '' ? kind : `${kind}.${group}`;
  return new KubeError(422, 'Invalid', `${qualified} ${JSON.stringify(name)} is invalid: ${list}`, {
    ...(name === '' ? {} : { name }),
    ...(group === '' ? {} : { group }),
    ...(kind === '' ? {} : { kind }),
    causes: shown.map(error => ({ reason: error.reason, message: messageOf(error), field: error.path || '<nil>' })),
  });
}

const LONGEST_VALUE = 1000;

function textOf(value: unknown): string {
  const text = value === undefined || value === null ? '"null"' : JSON.stringify(value);
  return text.length > LONGEST_VALUE ? `${text.slice(0, LONGEST_VALUE)}...` : text;
}
