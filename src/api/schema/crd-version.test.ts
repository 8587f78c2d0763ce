import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { exampleCrd } from './crd-example.ts';
import { crdVersionSchema, crdVersions } from './crd-version.ts';
import { applyDefaults } from './defaults.ts';
import { formatFieldError } from './field-error.ts';
import { prune } from './prune.ts';
import type { Schema } from './schema.ts';
import { unknownFields } from './unknown.ts';
import { validate } from './validate.ts';

describe('versions of a definition', () => {
  const definition = exampleCrd({
    required: ['size'],
    properties: {
      size: { type: 'integer', default: 1, minimum: 1 },
      child: { type: 'object', 'x-kubernetes-embedded-resource': true, properties: { spec: { type: 'object' } } },
    },
  });

  test('bring apiVersion, kind and metadata', () => {
    const schema = crdVersionSchema(definition, 'v1') as Schema;
    const object = {
      apiVersion: 'stable.example.com/v1',
      kind: 'CronTab',
      metadata: { name: 'x', labels: { a: 'b' }, bogus: 1 },
      spec: {},
      bogus: 2,
    };
    assert.deepEqual(unknownFields(schema, object), ['metadata.bogus', 'bogus']);
    const complete = applyDefaults(schema, prune(schema, object));
    assert.deepEqual(complete.spec, { size: 1 });
    assert.deepEqual(validate(schema, complete), []);
    assert.match(
      validate(schema, { ...complete, metadata: { labels: { '': 'x' } } })
        .map(formatFieldError)
        .join(),
      /metadata\.labels/,
    );
    assert.equal(crdVersionSchema(definition, 'v2'), undefined);
  });

  test('embedded objects must say what they are', () => {
    const schema = crdVersionSchema(definition, 'v1') as Schema;
    const object = { spec: { size: 1, child: { metadata: { name: 'c', nope: 1 }, spec: {} } } };
    assert.deepEqual(unknownFields(schema, object), ['spec.child.metadata.nope']);
    assert.deepEqual(validate(schema, object).map(formatFieldError), [
      'spec.child.apiVersion: Required value',
      'spec.child.kind: Required value',
    ]);
  });

  test('restrict the name when the definition says so', () => {
    const named = exampleCrd(
      {},
      {
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: {
                  metadata: { type: 'object', properties: { name: { type: 'string', enum: ['cluster'] } } },
                },
              },
            },
          },
        ],
      },
    );
    const schema = crdVersionSchema(named, 'v1') as Schema;
    assert.deepEqual(validate(schema, { metadata: { name: 'cluster' } }), []);
    assert.deepEqual(validate(schema, { metadata: { name: 'x' } }).map(formatFieldError), [
      'metadata.name: Unsupported value: "x": supported values: "cluster"',
    ]);
  });

  test('a schema from outside cannot pose as one of ours', () => {
    const sly = exampleCrd({
      properties: {
        l: { type: 'array', items: { type: 'string', builtin: { name: 'x', notEmpty: [], check: 'boom' } } },
      },
    });
    const schema = crdVersionSchema(sly, 'v1') as Schema;
    assert.deepEqual(validate(schema, { spec: { l: [1] } }).length, 1);
    assert.equal(schema.properties?.['spec']?.properties?.['l']?.items?.builtin, undefined);
  });

  test('tell what is served', () => {
    const [first] = crdVersions(
      exampleCrd(
        {},
        {
          versions: [
            {
              name: 'v1',
              served: true,
              storage: true,
              schema: { openAPIV3Schema: { type: 'object' } },
              subresources: { status: {}, scale: { specReplicasPath: '.spec.r', statusReplicasPath: '.status.r' } },
              additionalPrinterColumns: [{ name: 'R', type: 'integer', jsonPath: '.spec.r' }],
              selectableFields: [{ jsonPath: '.spec.r' }],
            },
          ],
        },
      ),
    );
    assert.equal(first?.status, true);
    assert.deepEqual(first?.scale, { specReplicasPath: '.spec.r', statusReplicasPath: '.status.r' });
    assert.deepEqual(first?.printerColumns, [{ name: 'R', type: 'integer', jsonPath: '.spec.r' }]);
    assert.deepEqual(first?.selectableFields, ['.spec.r']);
    assert.equal(crdVersions(exampleCrd())[0]?.printerColumns[0]?.name, 'Age');
  });
});
