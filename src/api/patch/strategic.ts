import { entryOf, fieldOf, isObject, setField } from '../schema/json.ts';
import type { JsonObject, Schema } from '../schema/schema.ts';
import { malformed } from './refused.ts';
import {
  checkKeyed,
  type ListMerge,
  mergedKeyedList,
  mergedScalarList,
  ordered,
  withoutElements,
} from './strategic-list.ts';

/** How a patch says things that plain JSON cannot. */
const PATCH = '$patch';
const RETAIN_KEYS = '$retainKeys';
const SET_ELEMENT_ORDER = '$setElementOrder/';
const DELETE_FROM_PRIMITIVE_LIST = '$deleteFromPrimitiveList/';

/** The document after a strategic merge patch: like a merge patch, but lists with merge keys merge element by element. */
export function applyStrategicMergePatch(schema: Schema, document: JsonObject, patch: JsonObject): JsonObject {
  return mergedObject(schema, document, patch);
}

function mergedObject(schema: Schema, original: JsonObject, patch: JsonObject): JsonObject {
  const directive = fieldOf(patch, PATCH);
  if (directive !== undefined) return directed(directive, patch);
  const result: Record<string, unknown> = { ...retained(original, patch) };
  for (const [key, value] of Object.entries(patch)) {
    if (key === RETAIN_KEYS || key.startsWith(SET_ELEMENT_ORDER)) continue;
    if (key.startsWith(DELETE_FROM_PRIMITIVE_LIST)) {
      const field = key.slice(DELETE_FROM_PRIMITIVE_LIST.length);
      const list = fieldOf(result, field);
      if (Array.isArray(list)) setField(result, field, withoutElements(list, elementsOf(value, key)));
      continue;
    }
    if (value === null) delete result[key];
    else if (isDeletion(value) && !Object.hasOwn(result, key)) continue;
    else setField(result, key, mergedField(fieldSchema(schema, key), fieldOf(result, key), value));
  }
  for (const [key, order] of Object.entries(patch)) {
    if (key.startsWith(SET_ELEMENT_ORDER)) orderField(schema, original, patch, result, key, order);
  }
  return result;
}

/** An object that says itself how it is to be merged. */
function directed(directive: unknown, patch: JsonObject): JsonObject {
  switch (directive) {
    case 'replace':
      return withoutDirectives(withoutField(patch, PATCH)) as JsonObject;
    case 'delete':
      return {};
    case 'merge':
      throw malformed('the $patch directive "merge" is only allowed in elements of a list');
    default:
      throw malformed(`unknown patch type found: ${JSON.stringify(directive)}`);
  }
}

function mergedField(schema: Schema, original: unknown, value: unknown): unknown {
  const strategies = (schema['x-kubernetes-patch-strategy'] ?? '').split(',');
  if (isObject(value) && isObject(original) && !strategies.includes('replace'))
    return mergedObject(schema, original, value);
  if (Array.isArray(value) && Array.isArray(original) && strategies.includes('merge')) {
    return mergedList(schema, original, value);
  }
  return withoutDirectives(value);
}

function mergedList(schema: Schema, original: readonly unknown[], patch: readonly unknown[]): unknown[] {
  const key = schema['x-kubernetes-patch-merge-key'];
  if (!patch.some(isObject) && !original.some(isObject)) return mergedScalarList(original, patch);
  if (key === undefined) throw malformed('cannot merge lists without merge key');
  return mergedKeyedList(original, patch, { key, mergeElement: elementMerge(schema) });
}

function elementMerge(schema: Schema): ListMerge['mergeElement'] {
  const items = schema.items ?? {};
  return (original, patch) =>
    original === undefined ? (withoutDirectives(patch) as JsonObject) : mergedObject(items, original, patch);
}

/** Keeps of the original only what the patch says the object has; unions such as volumes need this. */
function retained(original: JsonObject, patch: JsonObject): JsonObject {
  const keys = fieldOf(patch, RETAIN_KEYS);
  if (keys === undefined) return original;
  const kept = new Set(elementsOf(keys, RETAIN_KEYS));
  for (const [field, value] of Object.entries(patch)) {
    if (field.startsWith('$') || value === null) continue;
    if (!kept.has(field)) {
      throw malformed(`invalid patch: field ${JSON.stringify(field)} is not in the list of ${RETAIN_KEYS}`);
    }
  }
  return Object.fromEntries(Object.entries(original).filter(([field]) => kept.has(field)));
}

/** Puts the elements of a merged list into the order the client knows; elements it does not know keep their place. */
function orderField(
  schema: Schema,
  original: JsonObject,
  patch: JsonObject,
  result: Record<string, unknown>,
  directive: string,
  order: unknown,
): void {
  const field = directive.slice(SET_ELEMENT_ORDER.length);
  const merged = fieldOf(result, field);
  if (!Array.isArray(merged)) return;
  const key = fieldSchema(schema, field)['x-kubernetes-patch-merge-key'];
  const wanted = elementsOf(order, directive);
  if (key !== undefined) for (const element of wanted) checkKeyed(element, key);
  const given = fieldOf(patch, field);
  checkOrder(Array.isArray(given) ? given : [], wanted, key, directive);
  const before = fieldOf(original, field);
  setField(result, field, ordered(merged, wanted, Array.isArray(before) ? before : [], key));
}

/** The elements of the patch must stand in the same order as in the directive. */
function checkOrder(
  given: readonly unknown[],
  wanted: readonly unknown[],
  key: string | undefined,
  directive: string,
): void {
  const identity = (element: unknown) =>
    JSON.stringify(key !== undefined && isObject(element) ? element[key] : element);
  const places = new Map(wanted.map((element, index) => [identity(element), index]));
  let last = -1;
  for (const element of given) {
    if (isObject(element) && element[PATCH] !== undefined) continue;
    const place = places.get(identity(element));
    if (place === undefined || place < last) {
      throw malformed(`the order in the patch list does not match that of ${directive}`);
    }
    last = place;
  }
}

/** A new value has nothing to be merged with: directives fall away, and so do nulls. */
function withoutDirectives(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.filter(element => !(isObject(element) && PATCH in element)).map(withoutDirectives);
  }
  if (!isObject(value)) return value;
  const result: Record<string, unknown> = {};
  for (const [field, child] of Object.entries(value)) {
    if (child === null || isDirective(field) || isDeletion(child)) continue;
    setField(result, field, withoutDirectives(child));
  }
  return result;
}

function isDeletion(value: unknown): boolean {
  return isObject(value) && value[PATCH] === 'delete';
}

function isDirective(field: string): boolean {
  return (
    field === PATCH ||
    field === RETAIN_KEYS ||
    field.startsWith(SET_ELEMENT_ORDER) ||
    field.startsWith(DELETE_FROM_PRIMITIVE_LIST)
  );
}

function fieldSchema(schema: Schema, field: string): Schema {
  const { additionalProperties } = schema;
  return entryOf(schema.properties, field) ?? (typeof additionalProperties === 'object' ? additionalProperties : {});
}

function elementsOf(value: unknown, directive: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw malformed(`invalid patch: ${directive} must be a list`);
}

function withoutField(object: JsonObject, field: string): JsonObject {
  const { [field]: _, ...rest } = object;
  return rest;
}
