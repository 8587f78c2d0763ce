import type { Budget } from './budget.ts';
import { ruleFault } from './cel/rules.ts';
import { keywordErrors } from './crd-keywords.ts';
import { schemaPatternErrors } from './crd-patterns.ts';
import { adopt } from './crd-version.ts';
import { type FieldError, forbidden, invalid, required, unsupported } from './field-error.ts';
import { isObject, sameJson } from './json.ts';
import { prune } from './prune.ts';
import type { JsonObject, Schema } from './schema.ts';
import { completenessErrors, nestedErrors } from './structural.ts';
import { validate } from './validate.ts';

/** What is wrong with the schema of a custom kind: it must be structural, so that unknown fields can be pruned. */
export function schemaErrors(schema: JsonObject, path: string, budget: Budget): FieldError[] {
  const errors = schemaPatternErrors(schema, path, budget);
  if (schema['nullable'] === true) errors.push(forbidden(`${path}.nullable`, 'nullable cannot be true at the root'));
  check(schema, path, 'root', errors);
  errors.push(...completenessErrors(schema, path));
  return errors;
}

/** Where a schema stands. */
type Level = 'root' | 'field' | 'item';

const MAX_ERRORS = 200;

function check(schema: JsonObject, path: string, level: Level, errors: FieldError[]): void {
  if (errors.length > MAX_ERRORS) return;
  errors.push(
    ...keywordErrors(schema, path),
    ...typeErrors(schema, path, level),
    ...extensionErrors(schema, path),
    ...listErrors(schema, path),
    ...mapErrors(schema, path),
    ...ruleErrors(schema, path),
    ...metadataErrors(schema, path, level),
    ...nestedErrors(schema, path),
  );
  if (errors.length === 0 && schema['default'] !== undefined) errors.push(...defaultErrors(schema, path, level));
  const { items, properties, additionalProperties } = schema;
  if (isObject(items)) check(items, `${path}.items`, 'item', errors);
  if (isObject(additionalProperties)) check(additionalProperties, `${path}.additionalProperties`, 'field', errors);
  if (isObject(properties)) {
    for (const [field, child] of Object.entries(properties)) {
      if (isObject(child)) check(child, `${path}.properties[${field}]`, 'field', errors);
    }
  }
}

const MISSING_TYPE: Readonly<Record<Level, string>> = {
  root: 'must not be empty at the root',
  item: 'must not be empty for specified array items',
  field: 'must not be empty for specified object fields',
};

function typeErrors(schema: JsonObject, path: string, level: Level): FieldError[] {
  const { type, items } = schema;
  const errors: FieldError[] = [];
  if (type === 'array' && !isGiven(items)) errors.push(required(`${path}.items`, 'must be specified'));
  if (schema['x-kubernetes-embedded-resource'] === true) {
    const detail = 'must be object if x-kubernetes-embedded-resource is true';
    if (!isGiven(type)) errors.push(required(`${path}.type`, detail));
    else if (type !== 'object') errors.push(invalid(`${path}.type`, type, detail));
  } else if (
    !isGiven(type) &&
    schema['x-kubernetes-int-or-string'] !== true &&
    schema['x-kubernetes-preserve-unknown-fields'] !== true
  ) {
    errors.push(required(`${path}.type`, MISSING_TYPE[level]));
  }
  if (level === 'root' && isGiven(type) && type !== 'object') {
    errors.push(invalid(`${path}.type`, type, 'must be object at the root'));
  }
  return errors;
}

function extensionErrors(schema: JsonObject, path: string): FieldError[] {
  const errors: FieldError[] = [];
  const intOrString = schema['x-kubernetes-int-or-string'] === true;
  for (const extension of ['x-kubernetes-preserve-unknown-fields', 'x-kubernetes-embedded-resource']) {
    if (intOrString && schema[extension] === true) {
      errors.push(invalid(`${path}.${extension}`, true, 'must be false if x-kubernetes-int-or-string is true'));
    }
  }
  if (schema['x-kubernetes-preserve-unknown-fields'] === false) {
    errors.push(invalid(`${path}.x-kubernetes-preserve-unknown-fields`, false, 'must be true or undefined'));
  }
  const empty = !isObject(schema['properties']) || Object.keys(schema['properties']).length === 0;
  if (schema['x-kubernetes-embedded-resource'] === true) {
    if (schema['x-kubernetes-preserve-unknown-fields'] !== true && empty) {
      const detail =
        'must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields';
      errors.push(required(`${path}.properties`, detail));
    }
    if (isGiven(schema['additionalProperties'])) {
      errors.push(
        forbidden(`${path}.additionalProperties`, 'must not be used if x-kubernetes-embedded-resource is set'),
      );
    }
  }
  return errors;
}

const LIST_TYPES = ['atomic', 'set', 'map'];

function listErrors(schema: JsonObject, path: string): FieldError[] {
  const listType = schema['x-kubernetes-list-type'];
  const keys = schema['x-kubernetes-list-map-keys'];
  const errors: FieldError[] = [];
  if (isGiven(listType)) {
    const detail = 'must be array if x-kubernetes-list-type is specified';
    if (!isGiven(schema['type'])) errors.push(required(`${path}.type`, detail));
    else if (schema['type'] !== 'array') errors.push(invalid(`${path}.type`, schema['type'], detail));
    if (!LIST_TYPES.includes(String(listType))) {
      errors.push(unsupported(`${path}.x-kubernetes-list-type`, listType, LIST_TYPES));
    }
  }
  const items = isObject(schema['items']) ? schema['items'] : {};
  if (Array.isArray(keys) && keys.length > 0 && listType !== 'map') {
    const detail = 'must be map if x-kubernetes-list-map-keys is non-empty';
    const place = `${path}.x-kubernetes-list-type`;
    errors.push(isGiven(listType) ? invalid(place, listType, detail) : required(place, detail));
  }
  if (listType === 'map') errors.push(...keyedListErrors(items, Array.isArray(keys) ? keys.map(String) : [], path));
  if (listType === 'set') errors.push(...setErrors(items, path));
  if ((listType === 'set' || listType === 'map') && items['nullable'] === true) {
    errors.push(forbidden(`${path}.items.nullable`, `cannot be nullable when x-kubernetes-list-type is ${listType}`));
  }
  return errors;
}

function keyedListErrors(items: JsonObject, keys: readonly string[], path: string): FieldError[] {
  const place = `${path}.x-kubernetes-list-map-keys`;
  const errors: FieldError[] = [];
  if (keys.length === 0) errors.push(required(place, 'must not be empty if x-kubernetes-list-type is map'));
  if (items['type'] !== 'object') {
    errors.push(
      invalid(`${path}.items.type`, items['type'], "must be object if parent array's x-kubernetes-list-type is map"),
    );
  }
  if (new Set(keys).size < keys.length) errors.push(invalid(place, keys, 'must not contain duplicate entries'));
  const properties = isObject(items['properties']) ? items['properties'] : {};
  const given = Array.isArray(items['required']) ? (items['required'] as unknown[]) : [];
  for (const key of keys) {
    const property = Object.hasOwn(properties, key) ? properties[key] : undefined;
    if (!isObject(property)) {
      errors.push(invalid(place, keys, 'entries must all be names of item properties'));
      continue;
    }
    const child = `${path}.items.properties[${key}]`;
    if (property['type'] === 'array' || property['type'] === 'object') {
      errors.push(
        invalid(
          `${child}.type`,
          property['type'],
          "must be a scalar type if parent array's x-kubernetes-list-type is map",
        ),
      );
    }
    if (!given.includes(key) && property['default'] === undefined) {
      const detail =
        'this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property';
      errors.push(required(`${child}.default`, detail));
    }
    if (property['nullable'] === true) {
      errors.push(
        forbidden(`${child}.nullable`, 'this property is in x-kubernetes-list-map-keys, so it cannot be nullable'),
      );
    }
  }
  return errors;
}

function setErrors(items: JsonObject, path: string): FieldError[] {
  const detail = 'must be atomic as item of a list with x-kubernetes-list-type=set';
  const listType = items['x-kubernetes-list-type'];
  const mapType = items['x-kubernetes-map-type'];
  if (items['type'] === 'array' && isGiven(listType) && listType !== 'atomic') {
    return [invalid(`${path}.items.x-kubernetes-list-type`, listType, detail)];
  }
  if (items['type'] === 'object' && mapType !== 'atomic') {
    return [invalid(`${path}.items.x-kubernetes-map-type`, mapType, detail)];
  }
  return [];
}

function mapErrors(schema: JsonObject, path: string): FieldError[] {
  const { type, properties, additionalProperties } = schema;
  const mapType = schema['x-kubernetes-map-type'];
  const errors: FieldError[] = [];
  if (isGiven(mapType)) {
    const detail = 'must be object if x-kubernetes-map-type is specified';
    if (!isGiven(type)) errors.push(required(`${path}.type`, detail));
    else if (type !== 'object') errors.push(invalid(`${path}.type`, type, detail));
    if (mapType !== 'atomic' && mapType !== 'granular') {
      errors.push(unsupported(`${path}.x-kubernetes-map-type`, mapType, ['atomic', 'granular']));
    }
  }
  const both = isObject(properties) && Object.keys(properties).length > 0 && isGiven(additionalProperties);
  if (both && additionalProperties !== true) {
    errors.push(forbidden(`${path}.additionalProperties`, 'additionalProperties and properties are mutual exclusive'));
  }
  return errors;
}

function ruleErrors(schema: JsonObject, path: string): FieldError[] {
  const rules = schema['x-kubernetes-validations'];
  if (!Array.isArray(rules)) return [];
  return (rules as unknown[]).flatMap((entry, index) => {
    const { rule = '', message } = (isObject(entry) ? entry : {}) as Record<string, string | undefined>;
    const place = `${path}.x-kubernetes-validations[${index}]`;
    if (rule.trim() === '') return [required(`${place}.rule`, 'rule is not specified')];
    if (message !== undefined && message.trim() === '') {
      return [invalid(`${place}.message`, message, 'message must be non-empty if specified')];
    }
    if (message !== undefined && /[\n\r]/.test(message.trim())) {
      return [invalid(`${place}.message`, message, 'message must not contain line breaks')];
    }
    if (message === undefined && /[\n\r]/.test(rule.trim())) {
      return [required(`${place}.message`, 'message must be specified if rule contains line breaks')];
    }
    const fault = ruleFault(rule);
    return fault === undefined ? [] : [invalid(`${place}.rule`, entry, fault)];
  });
}

/** Of the metadata of the object itself, only the name can be restricted. */
function metadataErrors(schema: JsonObject, path: string, level: Level): FieldError[] {
  const errors: FieldError[] = [];
  if (level === 'root' && isGiven(schema['additionalProperties'])) {
    errors.push(forbidden(`${path}.additionalProperties`, 'must not be used at the root'));
  }
  const embedded = schema['x-kubernetes-embedded-resource'] === true;
  const { properties } = schema;
  if (!isObject(properties) || (level !== 'root' && !embedded)) return errors;
  for (const field of ['kind', 'apiVersion']) {
    const property = properties[field];
    if (isObject(property) && property['type'] !== 'string') {
      errors.push(invalid(`${path}.properties[${field}].type`, property['type'], 'must be string'));
    }
  }
  const { metadata } = properties;
  if (!isObject(metadata)) return errors;
  const place = `${path}.properties[metadata]`;
  if (metadata['type'] !== 'object') errors.push(invalid(`${place}.type`, metadata['type'], 'must be object'));
  const restricted = isObject(metadata['properties']) ? Object.keys(metadata['properties']) : [];
  if (level === 'root' && restricted.some(field => field !== 'name' && field !== 'generateName')) {
    const detail = 'must not specify anything other than name and generateName, but metadata is implicitly specified';
    errors.push(forbidden(place, detail));
  }
  return errors;
}

/** A default must itself be a good value, without unknown fields. */
function defaultErrors(schema: JsonObject, path: string, level: Level): FieldError[] {
  const { default: value, ...rest } = schema;
  if (level === 'root') return [forbidden(`${path}.default`, 'must not be set')];
  const adopted: Schema = adopt(rest);
  if (!sameJson(prune(adopted, value), value))
    return [invalid(`${path}.default`, value, 'must not have unknown fields')];
  return validate(adopted, value).map(error => ({
    ...error,
    path: error.path === '' ? `${path}.default` : `${path}.default.${error.path}`,
  }));
}

function isGiven(value: unknown): boolean {
  return value !== undefined && value !== null && value !== '';
}
