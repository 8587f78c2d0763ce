import { keywordErrors } from './crd-keywords.ts';
import { type FieldError, forbidden, required } from './field-error.ts';
import { isObject, sameJson } from './json.ts';
import type { JsonObject } from './schema.ts';

/**
 * The two rules that make a schema structural. Inside `allOf`, `anyOf`, `oneOf` and `not`, nothing shapes the value: there
 * are only conditions. And whatever a condition speaks of is described outside of it.
 */

const FORBIDDEN: readonly [keyword: string, must: string][] = [
  ['type', 'must be empty to be structural'],
  ['additionalProperties', 'must be undefined to be structural'],
  ['default', 'must be undefined to be structural'],
  ['title', 'must be empty to be structural'],
  ['description', 'must be empty to be structural'],
  ['nullable', 'must be false to be structural'],
  ['x-kubernetes-preserve-unknown-fields', 'must be false to be structural'],
  ['x-kubernetes-embedded-resource', 'must be false to be structural'],
  ['x-kubernetes-int-or-string', 'must be false to be structural'],
  ['x-kubernetes-list-map-keys', 'must be empty to be structural'],
  ['x-kubernetes-list-type', 'must be undefined to be structural'],
  ['x-kubernetes-map-type', 'must be undefined to be structural'],
  ['x-kubernetes-validations', 'must be empty to be structural'],
];

/** How an int-or-string usually says its types once more. */
const INT_OR_STRING = [{ type: 'integer' }, { type: 'string' }];

/** Conditions directly in this schema that shape the value. */
export function nestedErrors(schema: JsonObject, path: string): FieldError[] {
  return conditionsOf(schema).flatMap(({ part, step }) => partErrors(part, `${path}.${step}`));
}

function partErrors(part: JsonObject, path: string): FieldError[] {
  const errors = FORBIDDEN.filter(([keyword]) => isSet(part[keyword])).map(([keyword, must]) =>
    forbidden(`${path}.${keyword}`, must),
  );
  errors.push(...keywordErrors(part, path), ...nestedErrors(part, path));
  if (isObject(part['items'])) errors.push(...partErrors(part['items'], `${path}.items`));
  for (const [field, child] of propertiesOf(part)) errors.push(...partErrors(child, `${path}.properties[${field}]`));
  return errors;
}

/** Fields that conditions speak of and that are not described. Called for the root, walks the whole schema. */
export function completenessErrors(schema: JsonObject, path: string): FieldError[] {
  const errors = conditionsOf(schema).flatMap(({ part, step }) => missing(part, schema, path, `${path}.${step}`));
  const { items, additionalProperties } = schema;
  if (isObject(items)) errors.push(...completenessErrors(items, `${path}.items`));
  if (isObject(additionalProperties))
    errors.push(...completenessErrors(additionalProperties, `${path}.additionalProperties`));
  for (const [field, child] of propertiesOf(schema)) {
    errors.push(...completenessErrors(child, `${path}.properties[${field}]`));
  }
  return errors;
}

function missing(condition: JsonObject, described: unknown, path: string, conditionPath: string): FieldError[] {
  if (!isObject(described)) return [required(path, `because it is defined in ${conditionPath}`)];
  const errors = conditionsOf(condition).flatMap(({ part, step }) =>
    missing(part, described, path, `${conditionPath}.${step}`),
  );
  if (isObject(condition['items'])) {
    errors.push(...missing(condition['items'], described['items'], `${path}.items`, `${conditionPath}.items`));
  }
  const properties = isObject(described['properties']) ? described['properties'] : {};
  for (const [field, child] of propertiesOf(condition)) {
    const step = `properties[${field}]`;
    const found = Object.hasOwn(properties, field) ? properties[field] : undefined;
    errors.push(...missing(child, found, `${path}.${step}`, `${conditionPath}.${step}`));
  }
  return errors;
}

/** The parts of `allOf` and its like. */
export function conditionsOf(schema: JsonObject): { part: JsonObject; step: string }[] {
  const conditions: { part: JsonObject; step: string }[] = [];
  for (const keyword of ['allOf', 'anyOf', 'oneOf']) {
    const parts = schema[keyword];
    if (!Array.isArray(parts) || (keyword === 'anyOf' && sameJson(parts, INT_OR_STRING))) continue;
    (parts as unknown[]).forEach((part, index) => {
      if (isObject(part)) conditions.push({ part, step: `${keyword}[${index}]` });
    });
  }
  if (isObject(schema['not'])) conditions.push({ part: schema['not'], step: 'not' });
  return conditions;
}

export function propertiesOf(schema: JsonObject): [string, JsonObject][] {
  const { properties } = schema;
  if (!isObject(properties)) return [];
  return Object.entries(properties).filter((entry): entry is [string, JsonObject] => isObject(entry[1]));
}

function isSet(value: unknown): boolean {
  if (value === undefined || value === null || value === '' || value === false) return false;
  return !Array.isArray(value) || value.length > 0;
}
