import type { Schema } from './schema.ts';

/** How the value of a schema keyword is built. */
export type Keyword = 'plain' | 'schema' | 'schema or boolean' | 'schemas' | 'schemas by name';

/** Every keyword a CustomResourceDefinition can use. */
export const KEYWORDS: Readonly<Record<Exclude<keyof Schema, Unwritable>, Keyword>> = {
  type: 'plain',
  format: 'plain',
  title: 'plain',
  description: 'plain',
  default: 'plain',
  example: 'plain',
  externalDocs: 'plain',
  nullable: 'plain',
  enum: 'plain',
  properties: 'schemas by name',
  required: 'plain',
  additionalProperties: 'schema or boolean',
  minProperties: 'plain',
  maxProperties: 'plain',
  items: 'schema',
  minItems: 'plain',
  maxItems: 'plain',
  uniqueItems: 'plain',
  pattern: 'plain',
  minLength: 'plain',
  maxLength: 'plain',
  minimum: 'plain',
  maximum: 'plain',
  exclusiveMinimum: 'plain',
  exclusiveMaximum: 'plain',
  multipleOf: 'plain',
  allOf: 'schemas',
  anyOf: 'schemas',
  oneOf: 'schemas',
  not: 'schema',
  'x-kubernetes-int-or-string': 'plain',
  'x-kubernetes-preserve-unknown-fields': 'plain',
  'x-kubernetes-embedded-resource': 'plain',
  'x-kubernetes-list-type': 'plain',
  'x-kubernetes-list-map-keys': 'plain',
  'x-kubernetes-map-type': 'plain',
  'x-kubernetes-validations': 'plain',
};

/** What only the schemas of built-in kinds have. */
type Unwritable =
  | 'builtin'
  | 'x-kubernetes-group-version-kind'
  | 'x-kubernetes-patch-strategy'
  | 'x-kubernetes-patch-merge-key';
