import type { FieldError } from './field-error.ts';
import type { Definition, GroupVersionKind, JsonObject, Schema } from './schema.ts';

/**
 * The words the built-in kinds are written in. One field is one line: `replicas: int32('Wanted number of pods.')`;
 * one type is one `object` or `kind`.
 */

/** What a use of a type adds to it. */
export type Extra = Pick<
  Schema,
  | 'default'
  | 'enum'
  | 'format'
  | 'minimum'
  | 'maximum'
  | 'maxLength'
  | 'x-kubernetes-patch-strategy'
  | 'x-kubernetes-patch-merge-key'
  | 'x-kubernetes-list-type'
  | 'x-kubernetes-list-map-keys'
  | 'x-kubernetes-map-type'
>;

export type Fields = Readonly<Record<string, Schema>>;

export interface TypeRules {
  /** Published as required, and refused with `Required value` when absent or empty. */
  readonly required?: readonly string[];
  /** Published as required, but absent is as good as zero, because Go cannot tell the two apart. */
  readonly zero?: readonly string[];
  /** Server-side apply takes the value as a whole. */
  readonly atomic?: boolean;
  readonly complete?: Definition['complete'];
  readonly check?: (value: JsonObject, path: string) => FieldError[];
}

export const str = (description: string, extra: Extra = {}): Schema => ({ type: 'string', description, ...extra });
export const bool = (description: string, extra: Extra = {}): Schema => ({ type: 'boolean', description, ...extra });
export const double = (description: string): Schema => ({ type: 'number', format: 'double', description });

export const int32 = (description: string, extra: Extra = {}): Schema => ({
  type: 'integer',
  format: 'int32',
  description,
  ...extra,
});

export const int64 = (description: string, extra: Extra = {}): Schema => ({
  type: 'integer',
  format: 'int64',
  description,
  ...extra,
});

/** Bytes in base64. */
export const bytes = (description: string): Schema => ({ type: 'string', format: 'byte', description });

/** A string out of a closed list. Go counts the empty string as absent, and so does the validator. */
export const oneOf = (values: readonly string[], description: string, extra: Extra = {}): Schema =>
  str(description, { enum: values, ...extra });

/** A field of a type that is described elsewhere. */
export const ref = (type: Schema, description: string, extra: Extra = {}): Schema => ({
  ...type,
  description,
  ...extra,
});

/** A list that is always replaced as a whole. */
export const list = (items: Schema, description: string, extra: Extra = {}): Schema => ({
  type: 'array',
  items,
  description,
  'x-kubernetes-list-type': 'atomic',
  ...extra,
});

export const strings = (description: string, extra: Extra = {}): Schema => list({ type: 'string' }, description, extra);

/** A list of values that occur once each and are merged. */
export const set = (items: Schema, description: string, extra: Extra = {}): Schema =>
  list(items, description, { 'x-kubernetes-list-type': 'set', ...extra });

/** A list whose elements are known by some of their fields; server-side apply merges them one by one. */
export const mapList = (keys: readonly string[], items: Schema, description: string, extra: Extra = {}): Schema =>
  list(items, description, { 'x-kubernetes-list-type': 'map', 'x-kubernetes-list-map-keys': keys, ...extra });

/** Such a list that a strategic merge patch merges too, by the first of the fields. */
export const listBy = (
  keys: readonly [string, ...string[]],
  items: Schema,
  description: string,
  strategy = 'merge',
): Schema =>
  mapList(keys, items, description, {
    'x-kubernetes-patch-strategy': strategy,
    'x-kubernetes-patch-merge-key': keys[0],
  });

export const map = (values: Schema, description: string, extra: Extra = {}): Schema => ({
  type: 'object',
  additionalProperties: values,
  description,
  ...extra,
});

export const stringMap = (description: string, extra: Extra = {}): Schema =>
  map({ type: 'string' }, description, extra);

/** Any JSON object, kept as it is. */
export const anyObject = (description: string): Schema => ({
  type: 'object',
  description,
  'x-kubernetes-preserve-unknown-fields': true,
});

/** The vocabulary for the types of one Go package. */
export interface Vocabulary {
  /** A named type. */
  object(name: string, description: string, fields: Fields, rules?: TypeRules): Schema;
  /** A type that is an object of the API: has `apiVersion` and `kind`; `metadata` is among the fields given. */
  kind(name: string, description: string, fields: Fields, rules?: TypeRules): Schema;
  /** A named type that is no object of fields, such as a quantity. */
  scalar(name: string, schema: Schema, check?: Definition['check']): Schema;
}

/** The vocabulary of a package: `vocabulary('io.k8s.api.apps.v1', 'apps', 'v1')`. */
export function vocabulary(goPackage: string, group: string, version: string): Vocabulary {
  const object: Vocabulary['object'] = (name, description, fields, rules = {}) =>
    define(`${goPackage}.${name}`, { type: 'object', description, properties: fields }, rules);
  return {
    object,
    kind(name, description, fields, rules = {}) {
      const gvk: GroupVersionKind = { group, version, kind: name };
      const schema: Schema = {
        type: 'object',
        description,
        properties: { ...TYPE_META, ...fields },
        'x-kubernetes-group-version-kind': [gvk],
      };
      return define(`${goPackage}.${name}`, schema, rules);
    },
    scalar: (name, schema, check) => define(`${goPackage}.${name}`, schema, check === undefined ? {} : { check }),
  };
}

/** The two fields that say what an object is. */
export const TYPE_META: Fields = {
  apiVersion: str('Group and version of the schema this object is written in, such as `apps/v1`.'),
  kind: str('Name of the type of this object, such as `Deployment`. Cannot be changed.'),
};

type AnyRules = Omit<TypeRules, 'check'> & { readonly check?: Definition['check'] | TypeRules['check'] };

function define(name: string, shape: Schema, rules: AnyRules): Schema {
  const { required = [], zero = [], atomic = false, complete, check } = rules;
  const published = [...required, ...zero].sort();
  const definition: { -readonly [key in keyof Definition]: Definition[key] } = {
    name,
    schema: shape,
    notEmpty: required,
    complete,
    check: check as Definition['check'],
  };
  const schema: Schema = {
    ...shape,
    ...(published.length > 0 ? { required: published } : {}),
    ...(atomic ? { 'x-kubernetes-map-type': 'atomic' as const } : {}),
    builtin: definition,
  };
  definition.schema = schema;
  return schema;
}
