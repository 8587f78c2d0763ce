import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { validateCrd } from './crd.ts';
import { exampleCrd } from './crd-example.ts';
import { formatFieldError } from './field-error.ts';
import type { JsonObject } from './schema.ts';

const lines = (definition: Parameters<typeof validateCrd>[0]) => validateCrd(definition).map(formatFieldError);
const field = (schema: JsonObject) => lines(exampleCrd({ properties: { f: schema } }));
const AT = 'spec.validation.openAPIV3Schema.properties[spec].properties[f]';

describe('structural schemas', () => {
  const cases: [name: string, schema: JsonObject, expected: string[]][] = [
    ['no type', { description: 'x' }, [`${AT}.type: Required value: must not be empty for specified object fields`]],
    ['no type, but anything goes', { 'x-kubernetes-preserve-unknown-fields': true }, []],
    [
      'int or string',
      { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }], pattern: '^1' },
      [],
    ],
    [
      'an unknown type',
      { type: 'text' },
      [
        `${AT}.type: Unsupported value: "text": supported values: "array", "boolean", "integer", "number", "object", "string"`,
      ],
    ],
    ['a list without items', { type: 'array' }, [`${AT}.items: Required value: must be specified`]],
    [
      'items as a list',
      { type: 'array', items: [{ type: 'string' }] },
      [`${AT}.items: Forbidden: items must be a schema object and not an array`],
    ],
    [
      'an item without type',
      { type: 'array', items: {} },
      [`${AT}.items.type: Required value: must not be empty for specified array items`],
    ],
    ['a reference', { type: 'object', $ref: '#/x' }, [`${AT}.$ref: Forbidden: $ref is not supported`]],
    [
      'unique items',
      { type: 'array', items: { type: 'string' }, uniqueItems: true },
      [
        `${AT}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime complexity becomes quadratic`,
      ],
    ],
    [
      'both kinds of properties',
      { type: 'object', properties: { a: { type: 'string' } }, additionalProperties: { type: 'string' } },
      [`${AT}.additionalProperties: Forbidden: additionalProperties and properties are mutual exclusive`],
    ],
    [
      'a type inside anyOf',
      { type: 'object', anyOf: [{ type: 'object' }] },
      [`${AT}.anyOf[0].type: Forbidden: must be empty to be structural`],
    ],
    [
      'a default inside oneOf',
      { type: 'object', properties: { a: { type: 'string' } }, oneOf: [{ properties: { a: { default: 'x' } } }] },
      [`${AT}.oneOf[0].properties[a].default: Forbidden: must be undefined to be structural`],
    ],
    [
      'a field only inside not',
      { type: 'object', not: { properties: { a: { enum: ['x'] } } } },
      [`${AT}.properties[a]: Required value: because it is defined in ${AT}.not.properties[a]`],
    ],
    [
      'conditions on described fields',
      {
        type: 'object',
        properties: { a: { type: 'string' } },
        oneOf: [{ required: ['a'] }, { properties: { a: { pattern: 'x' } } }],
      },
      [],
    ],
    [
      'a pattern',
      { type: 'string', pattern: '(?=a)' },
      [
        `${AT}.pattern: Invalid value: "(?=a)": must be a valid regular expression, but isn't: error parsing regexp: invalid or unsupported Perl syntax: (?=`,
      ],
    ],
    [
      'a pattern inside allOf',
      { type: 'string', allOf: [{ pattern: '[' }] },
      [
        `${AT}.allOf[0].pattern: Invalid value: "[": must be a valid regular expression, but isn't: error parsing regexp: missing closing ]`,
      ],
    ],
    [
      'list type on a string',
      { type: 'string', 'x-kubernetes-list-type': 'set' },
      [`${AT}.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified`],
    ],
    [
      'list type',
      { type: 'array', items: { type: 'string' }, 'x-kubernetes-list-type': 'bag' },
      [`${AT}.x-kubernetes-list-type: Unsupported value: "bag": supported values: "atomic", "set", "map"`],
    ],
    [
      'keys without map',
      { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-map-keys': ['a'] },
      [`${AT}.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty`],
    ],
    [
      'map without keys',
      { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'map' },
      [`${AT}.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`],
    ],
    [
      'a key that is no property',
      {
        type: 'array',
        items: { type: 'object' },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['a'],
      },
      [`${AT}.x-kubernetes-list-map-keys: Invalid value: ["a"]: entries must all be names of item properties`],
    ],
    [
      'a key that may be missing',
      {
        type: 'array',
        items: { type: 'object', properties: { a: { type: 'string' } } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['a'],
      },
      [
        `${AT}.items.properties[a].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`,
      ],
    ],
    [
      'a good keyed list',
      {
        type: 'array',
        items: { type: 'object', required: ['a'], properties: { a: { type: 'string' } } },
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['a'],
      },
      [],
    ],
    [
      'a set of objects',
      { type: 'array', items: { type: 'object' }, 'x-kubernetes-list-type': 'set' },
      [
        `${AT}.items.x-kubernetes-map-type: Invalid value: "null": must be atomic as item of a list with x-kubernetes-list-type=set`,
      ],
    ],
    [
      'map type',
      { type: 'array', items: { type: 'string' }, 'x-kubernetes-map-type': 'atomic' },
      [`${AT}.type: Invalid value: "array": must be object if x-kubernetes-map-type is specified`],
    ],
    [
      'embedded',
      { type: 'object', 'x-kubernetes-embedded-resource': true },
      [
        `${AT}.properties: Required value: must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields`,
      ],
    ],
    [
      'embedded, good',
      { type: 'object', 'x-kubernetes-embedded-resource': true, 'x-kubernetes-preserve-unknown-fields': true },
      [],
    ],
    [
      'a default of the wrong type',
      { type: 'integer', default: 'x' },
      [`${AT}.default: Invalid value: "string":  in body must be of type integer: "string"`],
    ],
    [
      'a default with an unknown field',
      { type: 'object', properties: { a: { type: 'string' } }, default: { b: 1 } },
      [`${AT}.default: Invalid value: {"b":1}: must not have unknown fields`],
    ],
    [
      'a rule without text',
      { type: 'string', 'x-kubernetes-validations': [{ message: 'm' }] },
      [`${AT}.x-kubernetes-validations[0].rule: Required value: rule is not specified`],
    ],
    [
      'a rule of many lines without a message',
      { type: 'string', 'x-kubernetes-validations': [{ rule: 'true &&\ntrue' }] },
      [
        `${AT}.x-kubernetes-validations[0].message: Required value: message must be specified if rule contains line breaks`,
      ],
    ],
  ];
  for (const [name, schema, expected] of cases) test(name, () => assert.deepEqual(field(schema), expected));

  test('the root is an object, and leaves metadata alone', () => {
    const root = (openAPIV3Schema: JsonObject) =>
      lines(exampleCrd({}, { versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema } }] }));
    const at = 'spec.validation.openAPIV3Schema';
    assert.deepEqual(root({ type: 'string' }), [`${at}.type: Invalid value: "string": must be object at the root`]);
    assert.deepEqual(root({}), [`${at}.type: Required value: must not be empty at the root`]);
    assert.deepEqual(
      root({
        type: 'object',
        properties: { metadata: { type: 'object', properties: { name: { type: 'string', maxLength: 3 } } } },
      }),
      [],
    );
    assert.deepEqual(
      root({
        type: 'object',
        properties: { metadata: { type: 'object', properties: { labels: { type: 'object' } } } },
      }),
      [
        `${at}.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata is implicitly specified`,
      ],
    );
    assert.deepEqual(root({ type: 'object', properties: { kind: { type: 'integer' } } }), [
      `${at}.properties[kind].type: Invalid value: "integer": must be string`,
    ]);
  });
});
