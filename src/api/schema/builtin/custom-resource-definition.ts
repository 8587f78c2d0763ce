import {
  bool,
  bytes,
  double,
  int32,
  int64,
  list,
  listBy,
  map,
  mapList,
  oneOf,
  ref,
  str,
  strings,
  vocabulary,
} from '../dsl.ts';
import type { Schema } from '../schema.ts';
import { ObjectMeta, time } from './meta.ts';

/** CustomResourceDefinitions, and the schema of their schemas. */

const { object, kind, scalar } = vocabulary(
  'io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1',
  'apiextensions.k8s.io',
  'v1',
);

const anything = (name: string, description: string): Schema =>
  scalar(name, { description, 'x-kubernetes-preserve-unknown-fields': true });

const Json = anything('JSON', 'Any JSON value.');
const SchemaOrArray = anything('JSONSchemaPropsOrArray', 'A schema, or a list of schemas.');
const SchemaOrBool = anything('JSONSchemaPropsOrBool', 'A schema, or true or false.');
const SchemaOrStringArray = anything('JSONSchemaPropsOrStringArray', 'A schema, or a list of names.');

const ValidationRule = object(
  'ValidationRule',
  'A rule in the Common Expression Language.',
  {
    fieldPath: str('Field to blame, such as `.spec.replicas`.'),
    message: str('What to say when the rule does not hold.'),
    messageExpression: str('Expression that makes that message.'),
    optionalOldSelf: bool('`oldSelf` is an optional, so that the rule is evaluated on creation too.'),
    reason: oneOf(
      ['FieldValueDuplicate', 'FieldValueForbidden', 'FieldValueInvalid', 'FieldValueRequired'],
      'Reason of the error.',
    ),
    rule: str('Expression that must be true; `self` is the value.'),
  },
  { required: ['rule'] },
);

const ExternalDocumentation = object('ExternalDocumentation', 'Documentation elsewhere.', {
  description: str('What it is.'),
  url: str('Where it is.'),
});

/** Refers to itself, hence the two steps. */
const schemaFields: Record<string, Schema> = {};
const JSONSchemaProps = object(
  'JSONSchemaProps',
  'A JSON schema (draft 4, with the extensions of Kubernetes).',
  schemaFields,
);

const schemas = (description: string) => list(JSONSchemaProps, description);
const schemasByName = (description: string) => map(JSONSchemaProps, description);

Object.assign(schemaFields, {
  $ref: str('Not supported.'),
  $schema: str('Not supported.'),
  additionalItems: ref(SchemaOrBool, 'Not supported.'),
  additionalProperties: ref(SchemaOrBool, 'Schema of fields that are not in `properties`.'),
  allOf: schemas('All of these must hold.'),
  anyOf: schemas('At least one of these must hold.'),
  default: ref(Json, 'Value when the field is absent.'),
  definitions: schemasByName('Not supported.'),
  dependencies: map(SchemaOrStringArray, 'Not supported.'),
  description: str('What the value is for.'),
  enum: list(Json, 'The values that are allowed.'),
  example: ref(Json, 'A value to show.'),
  exclusiveMaximum: bool('`maximum` itself is not allowed.'),
  exclusiveMinimum: bool('`minimum` itself is not allowed.'),
  externalDocs: ref(ExternalDocumentation, 'Documentation elsewhere.'),
  format: str('Format of a string or number, such as `date-time` or `int64`.'),
  id: str('Not supported.'),
  items: ref(SchemaOrArray, 'Schema of the elements of a list.'),
  maxItems: int64('Most elements of a list.'),
  maxLength: int64('Most characters of a string.'),
  maxProperties: int64('Most fields of an object.'),
  maximum: double('Largest number.'),
  minItems: int64('Fewest elements of a list.'),
  minLength: int64('Fewest characters of a string.'),
  minProperties: int64('Fewest fields of an object.'),
  minimum: double('Smallest number.'),
  multipleOf: double('The number is a multiple of this.'),
  not: JSONSchemaProps,
  nullable: bool('`null` is allowed.'),
  oneOf: schemas('Exactly one of these must hold.'),
  pattern: str('Regular expression that a string matches.'),
  patternProperties: schemasByName('Not supported.'),
  properties: schemasByName('Schemas of the fields of an object.'),
  required: strings('Fields that must be there.'),
  title: str('Short name of the value.'),
  type: str('Type of the value.'),
  uniqueItems: bool('Not supported as true; use `x-kubernetes-list-type: set`.'),
  'x-kubernetes-embedded-resource': bool('The value is an object with apiVersion, kind and metadata.'),
  'x-kubernetes-int-or-string': bool('The value is an integer or a string.'),
  'x-kubernetes-list-map-keys': strings('Fields that identify an element of a list of type `map`.'),
  'x-kubernetes-list-type': str('How a list is merged: `atomic`, `set` or `map`.'),
  'x-kubernetes-map-type': str('How an object is merged: `granular` or `atomic`.'),
  'x-kubernetes-preserve-unknown-fields': bool('Fields that are not specified are kept.'),
  'x-kubernetes-validations': listBy(['rule'], ValidationRule, 'Rules that must hold.'),
});

const ServiceReference = object(
  'ServiceReference',
  'A service with a webhook.',
  {
    name: str('Name of the service.'),
    namespace: str('Namespace of the service.'),
    path: str('Path of the webhook.'),
    port: int32('Port of the service; default 443.'),
  },
  { required: ['name', 'namespace'] },
);

const WebhookClientConfig = object('WebhookClientConfig', 'How a webhook is reached.', {
  caBundle: bytes('CA certificates in PEM, in base64.'),
  service: ref(ServiceReference, 'A service; not with `url`.'),
  url: str('A URL; not with `service`.'),
});

const WebhookConversion = object(
  'WebhookConversion',
  'Conversion by a webhook.',
  {
    clientConfig: ref(WebhookClientConfig, 'How it is reached.'),
    conversionReviewVersions: strings('Versions of ConversionReview it understands, best first.'),
  },
  { required: ['conversionReviewVersions'] },
);

const CustomResourceConversion = object(
  'CustomResourceConversion',
  'How objects are converted between versions.',
  {
    strategy: oneOf(['None', 'Webhook'], '`None` changes only apiVersion.'),
    webhook: ref(WebhookConversion, 'The webhook, for `Webhook`.'),
  },
  { required: ['strategy'] },
);

const CustomResourceDefinitionNames = object(
  'CustomResourceDefinitionNames',
  'Names of a kind.',
  {
    categories: strings('Groups of resources it belongs to, such as `all`.'),
    kind: str('Kind, in CamelCase and singular.'),
    listKind: str('Kind of lists; default is the kind with `List`.'),
    plural: str('Plural in lower case, as in paths.'),
    shortNames: strings('Short names for command lines.'),
    singular: str('Singular in lower case; default is the kind in lower case.'),
  },
  { zero: ['kind', 'plural'] },
);

const CustomResourceColumnDefinition = object(
  'CustomResourceColumnDefinition',
  'A column of the table that `kubectl get` shows.',
  {
    description: str('What the column shows.'),
    format: str('Format of the value; `name` marks the name of the object.'),
    jsonPath: str('JSON path of the value, such as `.spec.replicas`.'),
    name: str('Head of the column.'),
    priority: int32('0 is always shown; more only with `-o wide`.'),
    type: str('Type of the value: `integer`, `number`, `string`, `boolean` or `date`.'),
  },
  { zero: ['jsonPath', 'name', 'type'] },
);

const CustomResourceSubresourceScale = object(
  'CustomResourceSubresourceScale',
  'Where the size of an object is.',
  {
    labelSelectorPath: str('JSON path of the selector, below `.status` or `.spec`.'),
    specReplicasPath: str('JSON path of the wanted size, below `.spec`.'),
    statusReplicasPath: str('JSON path of the actual size, below `.status`.'),
  },
  { zero: ['specReplicasPath', 'statusReplicasPath'] },
);

const CustomResourceSubresources = object('CustomResourceSubresources', 'Subresources that are served.', {
  scale: ref(CustomResourceSubresourceScale, 'Serves `/scale`.'),
  status: ref(
    scalar('CustomResourceSubresourceStatus', {
      type: 'object',
      description: 'Serves `/status`; has no settings.',
    }),
    'Serves `/status`; writes to the object itself then leave the status alone.',
  ),
});

const CustomResourceDefinitionVersion = object(
  'CustomResourceDefinitionVersion',
  'One version of a kind.',
  {
    additionalPrinterColumns: list(CustomResourceColumnDefinition, 'Columns besides the name; default is the age.'),
    deprecated: bool('Requests are answered with a warning.'),
    deprecationWarning: str('Text of the warning.'),
    name: str('Name of the version, such as `v1`.'),
    schema: ref(
      object('CustomResourceValidation', 'What objects look like.', {
        openAPIV3Schema: ref(JSONSchemaProps, 'The schema.'),
      }),
      'What objects look like.',
    ),
    selectableFields: list(
      object(
        'SelectableField',
        'A field that field selectors can use.',
        { jsonPath: str('Simple JSON path of the field.') },
        { zero: ['jsonPath'] },
      ),
      'Fields that field selectors can use, at most 8.',
    ),
    served: bool('Requests for this version are answered.'),
    storage: bool('Objects are stored in this version; true for exactly one.'),
    subresources: ref(CustomResourceSubresources, 'Subresources that are served.'),
  },
  { zero: ['name', 'served', 'storage'] },
);

const CustomResourceDefinitionSpec = object(
  'CustomResourceDefinitionSpec',
  'A kind and its versions.',
  {
    conversion: ref(CustomResourceConversion, 'How objects are converted between versions.'),
    group: str('API group of the kind.'),
    names: ref(CustomResourceDefinitionNames, 'Names of the kind.'),
    preserveUnknownFields: bool('Deprecated; must be false.'),
    scope: str('`Namespaced` or `Cluster`.'),
    versions: list(CustomResourceDefinitionVersion, 'The versions.'),
  },
  { zero: ['group', 'names', 'scope', 'versions'] },
);

const CustomResourceDefinitionCondition = object(
  'CustomResourceDefinitionCondition',
  'One aspect of the state of a definition.',
  {
    lastTransitionTime: time('When `status` last changed.'),
    message: str('Details for people.'),
    reason: str('Why, in one word for programs.'),
    status: str('`True`, `False` or `Unknown`.'),
    type: str('`Established`, `NamesAccepted` or another.'),
  },
  { zero: ['status', 'type'] },
);

const CustomResourceDefinitionStatus = object('CustomResourceDefinitionStatus', 'State of a definition.', {
  acceptedNames: ref(CustomResourceDefinitionNames, 'Names that are served.'),
  conditions: mapList(['type'], CustomResourceDefinitionCondition, 'State by aspects.'),
  storedVersions: strings('Versions that objects were ever stored in.'),
});

/** The rules over its fields are in `validateCrd`, because most need the schemas inside. */
export const CustomResourceDefinition = kind(
  'CustomResourceDefinition',
  'Adds a kind to the API.',
  {
    metadata: ref(ObjectMeta, 'Standard metadata of the object.'),
    spec: ref(CustomResourceDefinitionSpec, 'The kind.'),
    status: ref(CustomResourceDefinitionStatus, 'State of the definition. Read-only.'),
  },
  { zero: ['spec'] },
);
