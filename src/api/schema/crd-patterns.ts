import { type Budget, BudgetSpent } from './budget.ts';
import { type FieldError, invalid } from './field-error.ts';
import { isObject } from './json.ts';
import { compile } from './regexp/program.ts';
import type { JsonObject } from './schema.ts';
import { conditionsOf, propertiesOf } from './structural.ts';

/** Steps that all patterns of a definition may have together once they are compiled. */
export const MAX_COMPILED_STEPS = 1_000_000;

/** Patterns in a schema that cannot be read, inside `allOf` and its like too. */
export function schemaPatternErrors(schema: JsonObject, path: string, budget: Budget): FieldError[] {
  const { pattern, items, additionalProperties } = schema;
  const errors = typeof pattern === 'string' && pattern !== '' ? patternErrors(pattern, `${path}.pattern`, budget) : [];
  const below: [part: JsonObject, step: string][] = [
    ...conditionsOf(schema).map(({ part, step }): [JsonObject, string] => [part, step]),
    ...propertiesOf(schema).map(([field, part]): [JsonObject, string] => [part, `properties[${field}]`]),
  ];
  if (isObject(items)) below.push([items, 'items']);
  if (isObject(additionalProperties)) below.push([additionalProperties, 'additionalProperties']);
  for (const [part, step] of below) {
    for (const error of schemaPatternErrors(part, `${path}.${step}`, budget)) errors.push(error);
  }
  return errors;
}

function patternErrors(pattern: string, path: string, budget: Budget): FieldError[] {
  try {
    compile(pattern, budget);
    return [];
  } catch (error) {
    if (error instanceof BudgetSpent)
      return [invalid(path, pattern, 'the patterns of a definition are too large together')];
    if (!(error instanceof SyntaxError)) throw error;
    const why = `error parsing regexp: ${error.message}`;
    return [invalid(path, pattern, `must be a valid regular expression, but isn't: ${why}`)];
  }
}
