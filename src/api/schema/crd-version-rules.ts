import { duplicate, type FieldError, invalid, required, tooMany } from './field-error.ts';
import { isObject } from './json.ts';
import type { JsonObject } from './schema.ts';

/** A version as a client sent it: decoded, so types are right, but anything may be missing. */
export interface CrdVersionInput {
  readonly name?: string;
  readonly served?: boolean;
  readonly storage?: boolean;
  readonly deprecated?: boolean;
  readonly deprecationWarning?: string;
  readonly schema?: { readonly openAPIV3Schema?: JsonObject };
  readonly subresources?: { readonly status?: JsonObject; readonly scale?: JsonObject };
  readonly additionalPrinterColumns?: readonly JsonObject[];
  readonly selectableFields?: readonly JsonObject[];
}

const COLUMN_TYPES = ['boolean', 'date', 'integer', 'number', 'string'];
const COLUMN_FORMATS = ['byte', 'date', 'date-time', 'double', 'float', 'int32', 'int64', 'password'];

export function columnErrors(column: JsonObject, path: string): FieldError[] {
  const { name = '', type = '', format = '', jsonPath = '' } = column as Record<string, string | undefined>;
  const errors: FieldError[] = [];
  const types = `must be one of ${COLUMN_TYPES.join(',')}`;
  if (name === '') errors.push(required(`${path}.name`));
  if (type === '') errors.push(required(`${path}.type`, types));
  else if (!COLUMN_TYPES.includes(type)) errors.push(invalid(`${path}.type`, type, types));
  if (format !== '' && !COLUMN_FORMATS.includes(format)) {
    errors.push(invalid(`${path}.format`, format, `must be one of ${COLUMN_FORMATS.join(',')}`));
  }
  if (jsonPath === '') errors.push(required(`${path}.JSONPath`));
  else errors.push(...simplePathErrors(jsonPath, `${path}.JSONPath`, []));
  return errors;
}

export function scaleErrors(scale: JsonObject | undefined, path: string): FieldError[] {
  if (scale === undefined) return [];
  const { specReplicasPath, statusReplicasPath, labelSelectorPath } = scale as Record<string, string | undefined>;
  const errors: FieldError[] = [];
  for (const [field, value, below] of [
    ['specReplicasPath', specReplicasPath, ['.spec.']],
    ['statusReplicasPath', statusReplicasPath, ['.status.']],
  ] as const) {
    if (!value) errors.push(required(`${path}.scale.${field}`));
    else errors.push(...simplePathErrors(value, `${path}.scale.${field}`, below));
  }
  if (labelSelectorPath) {
    errors.push(...simplePathErrors(labelSelectorPath, `${path}.scale.labelSelectorPath`, ['.spec.', '.status.']));
  }
  return errors;
}

function simplePathErrors(value: string, path: string, below: readonly string[]): FieldError[] {
  if (!value.startsWith('.')) return [invalid(path, value, 'must be a simple json path starting with .')];
  if (below.length === 0 || below.some(prefix => value.startsWith(prefix))) return [];
  const places = below.map(prefix => prefix.slice(0, -1));
  return [
    invalid(path, value, `should be a json path under ${places.length > 1 ? 'either ' : ''}${places.join(' or ')}`),
  ];
}

const MAX_SELECTABLE_FIELDS = 8;
const SELECTABLE_TYPES: ReadonlySet<string> = new Set(['boolean', 'integer', 'string']);

export function selectableFieldErrors(
  fields: readonly JsonObject[],
  schema: JsonObject | undefined,
  path: string,
): FieldError[] {
  const seen = new Set<string>();
  const errors = fields.flatMap((field, index) => {
    const place = `${path}[${index}].jsonPath`;
    const jsonPath = typeof field['jsonPath'] === 'string' ? field['jsonPath'] : '';
    if (jsonPath === '') return [required(place)];
    const type = typeAt(schema, jsonPath.split('.').slice(1));
    if (!jsonPath.startsWith('.') || type === undefined) {
      return [invalid(place, jsonPath, 'is an invalid path: does not refer to a valid field')];
    }
    if (jsonPath.startsWith('.metadata.')) return [invalid(place, jsonPath, 'must not point to fields in metadata')];
    if (!SELECTABLE_TYPES.has(type)) {
      const detail =
        'must point to a field of type string, boolean or integer. Enum string fields and strings with formats are allowed.';
      return [invalid(place, jsonPath, detail)];
    }
    if (seen.has(jsonPath)) return [duplicate(place, jsonPath)];
    seen.add(jsonPath);
    return [];
  });
  if (seen.size > MAX_SELECTABLE_FIELDS) errors.push(tooMany(path, seen.size, MAX_SELECTABLE_FIELDS));
  return errors;
}

function typeAt(schema: unknown, fields: readonly string[]): string | undefined {
  let current = schema;
  for (const field of fields) {
    const properties = isObject(current) ? current['properties'] : undefined;
    if (!isObject(properties) || !Object.hasOwn(properties, field)) return undefined;
    current = properties[field];
  }
  if (!isObject(current)) return undefined;
  return typeof current['type'] === 'string' ? current['type'] : '';
}
