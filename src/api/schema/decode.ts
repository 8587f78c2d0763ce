import { parseRfc3339 } from '../../kube/time.ts';
import { base64Fault } from './format.ts';
import { entryOf, isObject, setField } from './json.ts';
import { isQuantity, QUANTITY_FAULT } from './quantity.ts';
import type { JsonObject, Schema } from './schema.ts';

/**
 * What Go's decoder would say about a built-in object whose JSON has the wrong types, `undefined` when it fits. The
 * answer to such a request is 400 `<Kind> in version "<v>" cannot be handled as a <Kind>: ` and this.
 */
export function decodeError(schema: Schema, value: unknown): string | undefined {
  return fault(schema, value, '', '');
}

/** A built-in object as Go's decoder reads it: without unknown fields, without nulls. Call `decodeError` before. */
export function decode<T>(schema: Schema, value: T): T {
  return decoded(schema, value) as T;
}

function decoded(schema: Schema, value: unknown): unknown {
  if (isOpaque(schema)) return value;
  if (Array.isArray(value)) {
    const items = schema.items ?? {};
    return (value as unknown[]).map(element => decodedElement(items, element));
  }
  if (!isObject(value)) return value;
  const { properties, additionalProperties } = schema;
  const result: Record<string, unknown> = {};
  for (const [field, child] of Object.entries(value)) {
    const known = entryOf(properties, field);
    if (known !== undefined) {
      if (child !== null) setField(result, field, decoded(known, child));
    } else if (typeof additionalProperties === 'object') {
      setField(result, field, decodedElement(additionalProperties, child));
    }
  }
  return result;
}

/** In lists and maps a null is the zero of the type, except where any JSON is kept. */
function decodedElement(schema: Schema, value: unknown): unknown {
  return value === null && !isOpaque(schema) ? zeroOf(schema) : decoded(schema, value);
}

function zeroOf(schema: Schema): unknown {
  switch (schema.type) {
    case 'object':
      return {};
    case 'array':
      return [];
    case 'boolean':
      return false;
    case 'integer':
    case 'number':
      return 0;
    default:
      return '';
  }
}

function isOpaque(schema: Schema): boolean {
  return schema['x-kubernetes-preserve-unknown-fields'] === true && schema.properties === undefined;
}

/** `path` has no indexes and no map keys, as in Go's messages; `owner` is the struct the value is a field of. */
function fault(schema: Schema, value: unknown, path: string, owner: string): string | undefined {
  if (value === null || value === undefined) return undefined;
  if (isOpaque(schema))
    return schema.type === 'object' && !isObject(value) ? mismatch(schema, value, path, owner) : undefined;
  if (schema.oneOf !== undefined) return scalarFault(schema, value, path, owner);
  if (!fits(schema, value)) return mismatch(schema, value, path, owner);
  if (schema.type === 'string') return stringFault(schema, value as string);
  if (Array.isArray(value)) {
    const { items } = schema;
    return items && first(value as unknown[], element => fault(items, element, path, owner));
  }
  if (!isObject(value)) return undefined;
  return objectFault(schema, value, path, owner);
}

function objectFault(schema: Schema, object: JsonObject, path: string, owner: string): string | undefined {
  const { properties, additionalProperties } = schema;
  const struct = schema.builtin === undefined ? owner : goName(schema.builtin.name);
  return first(Object.entries(object), ([field, child]) => {
    const known = entryOf(properties, field);
    if (known !== undefined) return fault(known, child, path === '' ? field : `${path}.${field}`, struct);
    return typeof additionalProperties === 'object' ? fault(additionalProperties, child, path, struct) : undefined;
  });
}

function fits(schema: Schema, value: unknown): boolean {
  switch (schema.type) {
    case 'object':
      return isObject(value);
    case 'array':
      return Array.isArray(value);
    case 'integer':
      return Number.isInteger(value) && (schema.format !== 'int32' || (value as number) === ((value as number) | 0));
    case 'number':
      return typeof value === 'number';
    case undefined:
      return true;
    default:
      return typeof value === schema.type;
  }
}

/** Quantities and int-or-strings read their JSON themselves. */
function scalarFault(schema: Schema, value: unknown, path: string, owner: string): string | undefined {
  if (schema.format === 'quantity') {
    return isQuantity(value)
      ? undefined
      : typeof value === 'object'
        ? mismatch(schema, value, path, owner)
        : QUANTITY_FAULT;
  }
  const good = typeof value === 'string' || Number.isInteger(value);
  return good ? undefined : `json: cannot unmarshal ${jsonType(value)} into Go value of type int32`;
}

function stringFault(schema: Schema, value: string): string | undefined {
  if (schema.format === 'byte') {
    const at = base64Fault(value);
    return at === undefined ? undefined : `illegal base64 data at input byte ${at}`;
  }
  return schema.format === 'date-time' && value !== '' ? timeFault(schema, value) : undefined;
}

function timeFault(schema: Schema, value: string): string | undefined {
  const isMicro = schema.builtin?.name.endsWith('.MicroTime') === true;
  const layout = isMicro ? '2006-01-02T15:04:05.000000Z07:00' : '2006-01-02T15:04:05Z07:00';
  const fault = (rest: string, expected: string) =>
    `parsing time ${JSON.stringify(value)} as ${JSON.stringify(layout)}: cannot parse ${JSON.stringify(rest)} as "${expected}"`;
  if (parseRfc3339(value) === undefined) return fault(value, '2006');
  // Go reads exactly as many digits of a fraction as the layout has.
  const fraction = value.slice(WHOLE_SECONDS.length);
  if (!isMicro || /^\.\d{6}\D/.test(fraction)) return undefined;
  return /^\.\d{7}/.test(fraction) ? fault(fraction.slice(7), 'Z07:00') : fault(fraction, '.000000');
}

const WHOLE_SECONDS = '2006-01-02T15:04:05';

function mismatch(schema: Schema, value: unknown, path: string, owner: string): string {
  const shown = schema.type === 'integer' && typeof value === 'number' ? `number ${value}` : jsonType(value);
  const place = path === '' ? 'Go value' : `Go struct field ${owner}.${path}`;
  return `json: cannot unmarshal ${shown} into ${place} of type ${goType(schema)}`;
}

function jsonType(value: unknown): string {
  if (Array.isArray(value)) return 'array';
  return typeof value === 'boolean' ? 'bool' : typeof value;
}

function goType(schema: Schema): string {
  if (schema.builtin !== undefined) return qualifiedGoName(schema.builtin.name);
  switch (schema.type) {
    case 'object':
      return `map[string]${typeof schema.additionalProperties === 'object' ? goType(schema.additionalProperties) : 'interface {}'}`;
    case 'array':
      return `[]${schema.items === undefined ? 'interface {}' : goType(schema.items)}`;
    case 'integer':
      return schema.format ?? 'int64';
    case 'number':
      return 'float64';
    case 'boolean':
      return 'bool';
    default:
      return schema.format === 'byte' ? '[]uint8' : 'string';
  }
}

/** `io.k8s.api.core.v1.PodSpec` is `PodSpec`. */
function goName(definition: string): string {
  return definition.slice(definition.lastIndexOf('.') + 1);
}

/** `io.k8s.api.core.v1.PodSpec` is `v1.PodSpec`. */
function qualifiedGoName(definition: string): string {
  return definition.split('.').slice(-2).join('.');
}

function first<T>(list: readonly T[], ask: (element: T) => string | undefined): string | undefined {
  for (const element of list) {
    const answer = ask(element);
    if (answer !== undefined) return answer;
  }
  return undefined;
}
