import { Budget, BudgetSpent } from './budget.ts';
import { ruleErrors } from './cel/rules.ts';
import { compositionErrors } from './composition.ts';
import {
  type FieldError,
  invalid,
  MAX_FIELD_ERRORS,
  required,
  tooMany,
  typeInvalid,
  unsupported,
} from './field-error.ts';
import { entryOf, fieldOf, isObject, sameJson } from './json.ts';
import { duplicateElements } from './list-rules.ts';
import type { JsonObject, Schema } from './schema.ts';
import { formatErrors, integerFormatErrors, lengthErrors, patternErrors, rangeErrors } from './value-rules.ts';

/**
 * Everything that is wrong with a value, at most `MAX_FIELD_ERRORS` faults. With the old value given, parts that have not
 * changed are not looked at: an object that an older schema let in can still be updated elsewhere.
 */
export function validate(schema: Schema, value: unknown, old?: unknown): FieldError[] {
  const errors: FieldError[] = [];
  const budget = new Budget(MAX_PATTERN_STEPS);
  try {
    check(schema, value, old, { path: '', go: false, budget }, errors);
  } catch (error) {
    if (!(error instanceof BudgetSpent)) throw error;
    errors.push(invalid('', '', 'validation failed due to running out of cost budget for patterns'));
  }
  // Rules may take for granted that the value has the shape of its schema.
  if (errors.length === 0) add(errors, ruleErrors(schema, value, old));
  return errors.slice(0, MAX_FIELD_ERRORS);
}

/** Steps that the patterns for one object may take together: about a second, as for rules. */
const MAX_PATTERN_STEPS = 10_000_000;

/** Where a value is, and whether a Go type describes it: then messages differ and an empty string counts as absent. */
interface Place {
  readonly path: string;
  readonly go: boolean;
  readonly budget: Budget;
}

function check(schema: Schema, value: unknown, old: unknown, outer: Place, errors: FieldError[]): void {
  if (errors.length >= MAX_FIELD_ERRORS || (old !== undefined && sameJson(value, old))) return;
  if (value === null && schema.nullable === true) return;
  const { path, budget } = outer;
  if (!hasType(schema, value)) {
    const actual = typeOf(value);
    errors.push(typeInvalid(path, actual, `${path} in body must be of type ${expectedType(schema)}: "${actual}"`));
    return;
  }
  const place = { path, go: outer.go || schema.builtin !== undefined, budget };
  if (schema.enum !== undefined && !schema.enum.some(allowed => sameJson(allowed, value))) {
    errors.push(unsupported(path, value, schema.enum.map(textOf)));
  }
  if (Array.isArray(value)) checkList(schema, value as unknown[], old, place, errors);
  else if (isObject(value)) checkObject(schema, value, old, place, errors);
  else checkScalar(schema, value, place, errors);
  if (schema.builtin !== undefined) add(errors, schema.builtin.check?.(value, path) ?? []);
  else
    add(
      errors,
      compositionErrors(schema, path, part => validateAt(part, value, place)),
    );
}

/** There may be more than a call can have arguments. */
function add(errors: FieldError[], more: readonly FieldError[]): void {
  for (const error of more) errors.push(error);
}

/** For `allOf` and its like, which look at the same value again. */
function validateAt(schema: Schema, value: unknown, place: Place): FieldError[] {
  const errors: FieldError[] = [];
  check(schema, value, undefined, place, errors);
  return errors;
}

function checkObject(
  schema: Schema,
  object: JsonObject,
  old: unknown,
  { path, go, budget }: Place,
  errors: FieldError[],
): void {
  const { properties, additionalProperties, builtin } = schema;
  const prefix = path === '' ? '' : `${path}.`;
  for (const field of (go ? builtin?.notEmpty : schema.required) ?? []) {
    const value = fieldOf(object, field);
    if (value === undefined || (go && isEmpty(value))) errors.push(required(prefix + field));
  }
  checkSize(schema.minProperties, schema.maxProperties, Object.keys(object).length, 'properties', path, errors);
  const before = isObject(old) ? old : {};
  for (const [field, value] of Object.entries(object)) {
    if (go && value === '') continue;
    const known = entryOf(properties, field);
    const child = known ?? (typeof additionalProperties === 'object' ? additionalProperties : undefined);
    if (child === undefined) continue;
    const place = { path: known === undefined && go ? `${path}[${field}]` : prefix + field, go, budget };
    check(child, value, fieldOf(before, field), place, errors);
  }
}

function checkList(schema: Schema, list: readonly unknown[], old: unknown, place: Place, errors: FieldError[]): void {
  const { path, go, budget } = place;
  checkSize(schema.minItems, schema.maxItems, list.length, 'items', path, errors);
  add(errors, duplicateElements(schema, list, path));
  const { items } = schema;
  if (items === undefined) return;
  const before: readonly unknown[] = Array.isArray(old) ? old : [];
  list.forEach((element, index) =>
    check(items, element, before[index], { path: `${path}[${index}]`, go, budget }, errors),
  );
}

function checkSize(
  min: number | undefined,
  max: number | undefined,
  size: number,
  what: 'items' | 'properties',
  path: string,
  errors: FieldError[],
): void {
  if (max !== undefined && size > max) errors.push(tooMany(path, size, max));
  if (min !== undefined && size < min) {
    errors.push(invalid(path, size, `${path} in body should have at least ${min} ${what}`));
  }
}

function checkScalar(schema: Schema, value: unknown, { path, go, budget }: Place, errors: FieldError[]): void {
  if (typeof value === 'number') {
    errors.push(...rangeErrors(schema, value, path, go));
    if (!go) errors.push(...integerFormatErrors(schema, value, path));
  } else if (typeof value === 'string') {
    errors.push(...lengthErrors(schema, value, path));
    if (!go) errors.push(...patternErrors(schema, value, path, budget), ...formatErrors(schema, value, path));
  }
}

function hasType(schema: Schema, value: unknown): boolean {
  if (schema['x-kubernetes-int-or-string'] === true) return typeof value === 'string' || Number.isInteger(value);
  switch (schema.type) {
    case undefined:
      return value !== null || schema['x-kubernetes-preserve-unknown-fields'] === true;
    case 'object':
      return isObject(value);
    case 'array':
      return Array.isArray(value);
    case 'integer':
      return Number.isInteger(value);
    default:
      return typeof value === schema.type;
  }
}

function expectedType(schema: Schema): string {
  return schema['x-kubernetes-int-or-string'] === true ? 'integer,string' : (schema.type ?? 'object');
}

function typeOf(value: unknown): string {
  if (value === null) return 'null';
  if (Array.isArray(value)) return 'array';
  return Number.isInteger(value) ? 'integer' : typeof value;
}

function isEmpty(value: unknown): boolean {
  return value === '' || value === null || (Array.isArray(value) && value.length === 0);
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
