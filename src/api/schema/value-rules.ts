import type { Budget } from './budget.ts';
import { type FieldError, invalid, tooLong } from './field-error.ts';
import { fitsFormat, fitsIntegerFormat } from './format.ts';
import { Pattern } from './regexp/regexp.ts';
import type { Schema } from './schema.ts';

/** Rules for one number or string. */

export function rangeErrors(schema: Schema, value: number, path: string, go: boolean): FieldError[] {
  const { minimum, maximum, exclusiveMinimum = false, exclusiveMaximum = false, multipleOf } = schema;
  const tooSmall = minimum !== undefined && (value < minimum || (exclusiveMinimum && value === minimum));
  const tooLarge = maximum !== undefined && (value > maximum || (exclusiveMaximum && value === maximum));
  if (go) return tooSmall || tooLarge ? [invalid(path, value, goRange(minimum, maximum))] : [];
  const errors: FieldError[] = [];
  if (tooLarge) {
    errors.push(
      invalid(path, value, `${path} in body should be less than ${exclusiveMaximum ? '' : 'or equal to '}${maximum}`),
    );
  }
  if (tooSmall) {
    errors.push(
      invalid(
        path,
        value,
        `${path} in body should be greater than ${exclusiveMinimum ? '' : 'or equal to '}${minimum}`,
      ),
    );
  }
  if (multipleOf !== undefined && multipleOf > 0 && !isMultiple(value, multipleOf)) {
    errors.push(invalid(path, value, `${path} in body should be a multiple of ${multipleOf}`));
  }
  return errors;
}

function goRange(minimum: number | undefined, maximum: number | undefined): string {
  if (minimum !== undefined && maximum !== undefined) return `must be between ${minimum} and ${maximum}, inclusive`;
  return minimum === undefined
    ? `must be less than or equal to ${maximum}`
    : `must be greater than or equal to ${minimum}`;
}

function isMultiple(value: number, factor: number): boolean {
  const quotient = value / factor;
  return Number.isInteger(quotient) || Math.abs(quotient - Math.round(quotient)) < 1e-9;
}

/** Lengths count characters, not UTF-16 units. */
export function lengthErrors({ minLength, maxLength }: Schema, value: string, path: string): FieldError[] {
  const errors: FieldError[] = [];
  if (maxLength !== undefined && value.length > maxLength && characters(value) > maxLength) {
    errors.push(tooLong(path, maxLength));
  }
  if (minLength !== undefined && characters(value) < minLength) {
    errors.push(invalid(path, value, `${path} in body should be at least ${minLength} chars long`));
  }
  return errors;
}

function characters(text: string): number {
  let count = 0;
  for (const _ of text) count++;
  return count;
}

export function formatErrors({ format }: Schema, value: string, path: string): FieldError[] {
  if (format === undefined || fitsFormat(format, value)) return [];
  return [invalid(path, value, `${path} in body must be of type ${format}: ${JSON.stringify(value)}`)];
}

/** Unlike all other faults, this one is reported of the object as a whole. */
export function integerFormatErrors({ type, format }: Schema, value: number, path: string): FieldError[] {
  if (type !== 'integer' || format === undefined || fitsIntegerFormat(format, value)) return [];
  return [invalid('', '', `Checked value must be of type integer with format ${format} in ${path}`)];
}

/** A pattern is compiled once for each schema it stands in. */
const COMPILED = new WeakMap<Schema, Pattern>();

export function patternErrors(schema: Schema, value: string, path: string, budget: Budget): FieldError[] {
  if (schema.pattern === undefined) return [];
  let pattern = COMPILED.get(schema);
  if (pattern === undefined) {
    pattern = new Pattern(schema.pattern);
    COMPILED.set(schema, pattern);
  }
  return pattern.test(value, budget) ? [] : [invalid(path, value, `${path} in body should match '${schema.pattern}'`)];
}
