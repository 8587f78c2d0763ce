import { type FieldError, invalid } from './field-error.ts';
import type { Schema } from './schema.ts';

/**
 * `allOf`, `anyOf`, `oneOf` and `not`. The message names the value; the error itself carries no path, because the real
 * server loses it on the way.
 */
export function compositionErrors(
  schema: Schema,
  path: string,
  errorsOf: (part: Schema) => FieldError[],
): FieldError[] {
  // An int-or-string says the same in its `anyOf` again.
  if (schema['x-kubernetes-int-or-string'] === true) return [];
  return [
    ...allOfErrors(schema.allOf, path, errorsOf),
    ...anyOfErrors(schema.anyOf, path, errorsOf),
    ...oneOfErrors(schema.oneOf, path, errorsOf),
    ...notErrors(schema.not, path, errorsOf),
  ];
}

type Parts = readonly Schema[] | undefined;
type ErrorsOf = (part: Schema) => FieldError[];

function allOfErrors(parts: Parts, path: string, errorsOf: ErrorsOf): FieldError[] {
  if (parts === undefined) return [];
  const errors = parts.flatMap(errorsOf);
  return errors.length === 0 ? [] : [...errors, failed(`${quoted(path)} must validate all the schemas (allOf)`)];
}

function anyOfErrors(parts: Parts, path: string, errorsOf: ErrorsOf): FieldError[] {
  if (parts === undefined || parts.length === 0) return [];
  const outcomes = parts.map(errorsOf);
  if (outcomes.some(errors => errors.length === 0)) return [];
  return [failed(`${quoted(path)} must validate at least one schema (anyOf)`), ...fewest(outcomes)];
}

function oneOfErrors(parts: Parts, path: string, errorsOf: ErrorsOf): FieldError[] {
  if (parts === undefined || parts.length === 0) return [];
  const outcomes = parts.map(errorsOf);
  const valid = outcomes.filter(errors => errors.length === 0).length;
  if (valid === 1) return [];
  const found = valid === 0 ? 'Found none valid' : `Found ${valid} valid alternatives`;
  const failure = failed(`${quoted(path)} must validate one and only one schema (oneOf). ${found}`);
  return valid === 0 ? [failure, ...fewest(outcomes)] : [failure];
}

function notErrors(part: Schema | undefined, path: string, errorsOf: ErrorsOf): FieldError[] {
  if (part === undefined || errorsOf(part).length > 0) return [];
  return [failed(`${quoted(path)} must not validate the schema (not)`)];
}

/** The errors of the alternative that came closest. */
function fewest(outcomes: readonly FieldError[][]): FieldError[] {
  return outcomes.reduce((best, errors) => (errors.length < best.length ? errors : best));
}

function failed(detail: string): FieldError {
  return invalid('', '', detail);
}

function quoted(path: string): string {
  return JSON.stringify(path);
}
