import type { CustomResourceDefinition, CustomResourceDefinitionVersion } from 'kubernetes-types/apiextensions/v1.d.ts';
import { ObjectMeta } from './builtin/meta.ts';
import { TYPE_META } from './dsl.ts';
import { isObject } from './json.ts';
import { KEYWORDS, type Keyword } from './keywords.ts';
import type { Schema } from './schema.ts';

/** One version of a custom kind, ready to serve. */
export interface CrdVersion {
  readonly name: string;
  readonly served: boolean;
  readonly storage: boolean;
  readonly deprecated: boolean;
  readonly deprecationWarning: string | undefined;
  readonly schema: Schema;
  /** Serves `/status`. */
  readonly status: boolean;
  /** Serves `/scale`. */
  readonly scale: CrdScale | undefined;
  readonly printerColumns: readonly PrinterColumn[];
  /** JSON paths of the fields that selectors can use, `.spec.color`. */
  readonly selectableFields: readonly string[];
}

export interface CrdScale {
  readonly specReplicasPath: string;
  readonly statusReplicasPath: string;
  readonly labelSelectorPath?: string | undefined;
}

export interface PrinterColumn {
  readonly name: string;
  readonly type: string;
  readonly jsonPath: string;
  readonly format?: string | undefined;
  readonly description?: string | undefined;
  readonly priority?: number | undefined;
}

/** The versions of a definition that `validateCrd` has found good, in their order. */
export function crdVersions(crd: CustomResourceDefinition): CrdVersion[] {
  return crd.spec.versions.map(version => ({
    name: version.name,
    served: version.served,
    storage: version.storage,
    deprecated: version.deprecated ?? false,
    deprecationWarning: version.deprecationWarning,
    schema: schemaOf(crd, version),
    status: version.subresources?.status !== undefined,
    scale: version.subresources?.scale,
    printerColumns: version.additionalPrinterColumns ?? [AGE],
    selectableFields: selectableFieldsOf(version),
  }));
}

/** The schema of one version: what the definition says, with apiVersion, kind and metadata. */
export function crdVersionSchema(crd: CustomResourceDefinition, version: string): Schema | undefined {
  const found = crd.spec.versions.find(({ name }) => name === version);
  return found && schemaOf(crd, found);
}

/** What `kubectl get` shows besides the name when a version has no columns. */
const AGE: PrinterColumn = {
  name: 'Age',
  type: 'date',
  jsonPath: '.metadata.creationTimestamp',
  description: 'When the object was created.',
};

/** The types at hand are older than the field. */
function selectableFieldsOf(version: CustomResourceDefinitionVersion): string[] {
  const { selectableFields = [] } = version as { selectableFields?: readonly { jsonPath: string }[] };
  return selectableFields.map(({ jsonPath }) => jsonPath);
}

function schemaOf(crd: CustomResourceDefinition, version: CustomResourceDefinitionVersion): Schema {
  const given = adopt(
    version.schema?.openAPIV3Schema ?? { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
  );
  const { group, names } = crd.spec;
  return {
    ...resource(given),
    'x-kubernetes-group-version-kind': [{ group, version: version.name, kind: names.kind }],
  };
}

/** Copies a schema keyword by keyword, so that nothing a client sent passes for something of ours. */
export function adopt(given: unknown): Schema {
  if (!isObject(given)) return {};
  const schema: Record<string, unknown> = {};
  for (const [keyword, sort] of Object.entries(KEYWORDS)) {
    const value = given[keyword];
    if (value !== undefined && value !== null) schema[keyword] = adopted(sort, value);
  }
  const adoptedSchema = schema as Schema;
  return adoptedSchema['x-kubernetes-embedded-resource'] === true ? embedded(adoptedSchema) : adoptedSchema;
}

function adopted(sort: Keyword, value: unknown): unknown {
  switch (sort) {
    case 'plain':
      return value;
    case 'schema':
      return adopt(value);
    case 'schema or boolean':
      return typeof value === 'boolean' ? value : adopt(value);
    case 'schemas':
      return Array.isArray(value) ? value.map(adopt) : [];
    case 'schemas by name':
      return isObject(value)
        ? Object.fromEntries(Object.entries(value).map(([name, part]) => [name, adopt(part)]))
        : {};
  }
}

/** An object of its own inside another one: it must say what it is. */
function embedded(schema: Schema): Schema {
  return { ...resource(schema), required: [...new Set(['apiVersion', 'kind', ...(schema.required ?? [])])] };
}

function resource(schema: Schema): Schema {
  return {
    ...schema,
    properties: { ...schema.properties, ...TYPE_META, metadata: metadataOf(schema.properties?.['metadata']) },
  };
}

/** A definition may restrict the name; the rest of the metadata is not its business. */
function metadataOf(given: Schema | undefined): Schema {
  const restricted = (field: 'name' | 'generateName'): Record<string, Schema> => {
    const rule = given?.properties?.[field];
    return rule === undefined ? {} : { [field]: { ...ObjectMeta.properties?.[field], ...rule } };
  };
  const rules = { ...restricted('name'), ...restricted('generateName') };
  const described = given?.description === undefined ? ObjectMeta : { ...ObjectMeta, description: given.description };
  if (Object.keys(rules).length === 0) return described;
  return { ...described, properties: { ...ObjectMeta.properties, ...rules } };
}
