import type { FieldError } from './field-error.ts';

/**
 * What a value may look like: the structural subset of OpenAPI v3 that CustomResourceDefinitions use. Built-in kinds
 * are described in the same words, so that one validator, one defaulter and one field-set builder serve both.
 */
export interface Schema {
  readonly type?: SchemaType;
  readonly format?: string;
  readonly title?: string;
  readonly description?: string;
  readonly default?: unknown;
  readonly example?: unknown;
  readonly externalDocs?: unknown;
  readonly nullable?: boolean;
  readonly enum?: readonly unknown[];

  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: Schema | boolean;
  readonly minProperties?: number;
  readonly maxProperties?: number;

  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;

  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;

  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: boolean;
  readonly exclusiveMaximum?: boolean;
  readonly multipleOf?: number;

  readonly allOf?: readonly Schema[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly not?: Schema;

  readonly 'x-kubernetes-int-or-string'?: boolean;
  readonly 'x-kubernetes-preserve-unknown-fields'?: boolean;
  readonly 'x-kubernetes-embedded-resource'?: boolean;
  readonly 'x-kubernetes-list-type'?: ListType;
  readonly 'x-kubernetes-list-map-keys'?: readonly string[];
  readonly 'x-kubernetes-map-type'?: MapType;
  /** `merge`, `replace`, `retainKeys`, or two of them with a comma between. */
  readonly 'x-kubernetes-patch-strategy'?: string;
  readonly 'x-kubernetes-patch-merge-key'?: string;
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[];
  readonly 'x-kubernetes-validations'?: readonly ValidationRule[];

  /** Set on the schemas of built-in types, and on every use of one in a field. Never published. */
  readonly builtin?: Definition;
}

export type SchemaType = 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
export type ListType = 'atomic' | 'set' | 'map';
export type MapType = 'atomic' | 'granular';

export interface GroupVersionKind {
  readonly group: string;
  readonly version: string;
  readonly kind: string;
}

/** One `x-kubernetes-validations` entry: a rule in the Common Expression Language. */
export interface ValidationRule {
  readonly rule: string;
  readonly message?: string;
  readonly messageExpression?: string;
  readonly reason?: string;
  readonly fieldPath?: string;
  readonly optionalOldSelf?: boolean;
}

/** A named built-in type and the rules its Go counterpart has in code rather than in its schema. */
export interface Definition {
  /** As published, such as `io.k8s.api.core.v1.PodSpec`. */
  readonly name: string;
  /** The type itself, without what one use of it adds (a description, a default). */
  readonly schema: Schema;
  /** Fields whose absence or zero value is refused with `Required value`. A built-in's `required` is only published. */
  readonly notEmpty: readonly string[];
  /** Defaults that depend on other fields. Returns its argument when there is nothing to add. */
  readonly complete?: ((value: JsonObject) => JsonObject) | undefined;
  /** Rules over several fields, or with a syntax of their own. */
  readonly check?: ((value: unknown, path: string) => FieldError[]) | undefined;
}

export type JsonObject = { readonly [field: string]: unknown };
