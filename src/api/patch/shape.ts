import { entryOf, fieldOf, isObject } from '../schema/json.ts';
import { canonicalJson } from '../schema/list-rules.ts';
import type { JsonObject, Schema } from '../schema/schema.ts';

/**
 * How server-side apply sees a value: as one thing (`leaf`), as fields that different managers can own (`fields`), or as
 * elements with an identity that different managers can own (`elements`).
 */
export type Shape =
  | { readonly is: 'leaf' }
  | { readonly is: 'fields'; readonly object: JsonObject }
  | {
      readonly is: 'elements';
      readonly list: readonly unknown[];
      readonly step: (element: unknown) => string | undefined;
    };

const LEAF: Shape = { is: 'leaf' };

export function shapeOf(schema: Schema, value: unknown): Shape {
  if (isObject(value)) return isAtomicObject(schema) ? LEAF : { is: 'fields', object: value };
  if (!Array.isArray(value)) return LEAF;
  switch (schema['x-kubernetes-list-type']) {
    case 'map':
      return { is: 'elements', list: value, step: element => keyStep(schema, element) };
    case 'set':
      return { is: 'elements', list: value, step: element => `v:${canonicalJson(element)}` };
    default:
      return LEAF;
  }
}

/** Of a built-in type that keeps any object, nobody owns a part. In custom resources such a part is granular. */
function isAtomicObject(schema: Schema): boolean {
  if (schema['x-kubernetes-map-type'] === 'atomic') return true;
  return schema.builtin !== undefined && schema.properties === undefined && schema.additionalProperties === undefined;
}

/** The schema of what a step leads to. */
export function schemaBelow(schema: Schema, step: string): Schema {
  if (!step.startsWith('f:')) return schema.items ?? {};
  const { additionalProperties } = schema;
  const named = entryOf(schema.properties, step.slice(2));
  return named ?? (typeof additionalProperties === 'object' ? additionalProperties : {});
}

/** Whether a field is named by the schema. Such a field comes and goes with what is in it. */
export function isNamed(schema: Schema, step: string): boolean {
  return step.startsWith('f:') && entryOf(schema.properties, step.slice(2)) !== undefined;
}

/** An absent key has its default, in built-in types the zero value; without one the element has no identity. */
function keyStep(schema: Schema, element: unknown): string | undefined {
  if (!isObject(element)) return undefined;
  const keys: Record<string, unknown> = {};
  for (const key of schema['x-kubernetes-list-map-keys'] ?? []) {
    const value = fieldOf(element, key) ?? absentKey(schema.items, key);
    if (value === undefined) return undefined;
    keys[key] = value;
  }
  return `k:${canonicalJson(keys)}`;
}

function absentKey(items: Schema | undefined, key: string): unknown {
  const known = entryOf(items?.properties, key);
  if (known?.default !== undefined || items?.builtin === undefined) return known?.default;
  return known?.type === 'string' ? '' : known?.type === 'integer' ? 0 : undefined;
}

/** A path as people read it: `.spec.containers[name="etcd"].image`. */
export function showPath(path: readonly string[]): string {
  return path.map(showStep).join('');
}

function showStep(step: string): string {
  const value = step.slice(2);
  switch (step.slice(0, 2)) {
    case 'f:':
      return `.${value}`;
    case 'k:': {
      const keys = Object.entries(JSON.parse(value) as Record<string, unknown>);
      return `[${keys.map(([key, part]) => `${key}=${JSON.stringify(part)}`).join(',')}]`;
    }
    case 'v:':
      return `[=${value}]`;
    default:
      return `[${value}]`;
  }
}
