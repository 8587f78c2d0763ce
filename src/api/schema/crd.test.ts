import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import { builtinSchema } from './builtin.ts';
import { validateCrd } from './crd.ts';
import { exampleCrd } from './crd-example.ts';
import { formatFieldError } from './field-error.ts';
import type { JsonObject, Schema } from './schema.ts';
import { unknownFields } from './unknown.ts';
import { validate } from './validate.ts';

const lines = (definition: CustomResourceDefinition, old?: CustomResourceDefinition) =>
  validateCrd(definition, old).map(formatFieldError);

describe('CustomResourceDefinitions', () => {
  test('a good one has no errors, and gets its other names', () => {
    const good = exampleCrd({
      properties: { cronSpec: { type: 'string', pattern: '^x' }, replicas: { type: 'integer', default: 1 } },
    });
    assert.deepEqual(lines(good), []);
    assert.equal(good.spec.names.singular, 'crontab');
    assert.equal(good.spec.names.listKind, 'CronTabList');
    assert.deepEqual(good.spec.conversion, { strategy: 'None' });
    assert.deepEqual(good.status?.storedVersions, ['v1']);
    assert.deepEqual(
      validate(builtinSchema('apiextensions.k8s.io/v1', 'CustomResourceDefinition') as Schema, good),
      [],
    );
    assert.deepEqual(
      unknownFields(builtinSchema('apiextensions.k8s.io/v1', 'CustomResourceDefinition') as Schema, good),
      [],
    );
  });

  const version = (name: string, more: JsonObject = {}) => ({
    name,
    served: true,
    storage: false,
    schema: { openAPIV3Schema: { type: 'object' } },
    ...more,
  });
  const names = (change: JsonObject) => ({ names: { plural: 'crontabs', kind: 'CronTab', ...change } });
  const shapes: [name: string, definition: CustomResourceDefinition, expected: (string | RegExp)[]][] = [
    [
      'name',
      exampleCrd({}, { group: 'other.example.com' }),
      ['metadata.name: Invalid value: "crontabs.stable.example.com": must be spec.names.plural+"."+spec.group'],
    ],
    [
      'group',
      exampleCrd({}, { group: 'example' }),
      [/must be spec\.names\.plural/, 'spec.group: Invalid value: "example": should be a domain with at least one dot'],
    ],
    [
      'scope',
      exampleCrd({}, { scope: 'Galaxy' }),
      ['spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'],
    ],
    ['no scope', exampleCrd({}, { scope: '' }), ['spec.scope: Required value']],
    [
      'kind',
      exampleCrd({}, names({ kind: 'Cron Tab' })),
      [
        /^spec\.names\.singular/,
        /^spec\.names\.kind: Invalid value: "Cron Tab": may have mixed case, but should otherwise match/,
        /^spec\.names\.listKind/,
      ],
    ],
    [
      'list kind',
      exampleCrd({}, names({ listKind: 'CronTab' })),
      ['spec.names.listKind: Invalid value: "CronTab": kind and listKind may not be the same'],
    ],
    [
      'short names',
      exampleCrd({}, names({ shortNames: ['ct', 'C_T'] })),
      [/^spec\.names\.shortNames\[1\]: Invalid value: "C_T": a DNS-1035 label/],
    ],
    [
      'no storage',
      exampleCrd({}, { versions: [version('v1'), version('v2')] }),
      ['spec.versions: Invalid value: ["v1","v2"]: must have exactly one version marked as storage version'],
    ],
    [
      'the same version twice',
      exampleCrd({}, { versions: [version('v1', { storage: true }), version('v1')] }),
      ['spec.versions: Invalid value: ["v1","v1"]: must contain unique version names'],
    ],
    [
      'version name',
      exampleCrd({}, { versions: [version('1', { storage: true })] }),
      [/^spec\.versions\[0\]\.name: Invalid value: "1": a DNS-1035 label/],
    ],
    [
      'no schema',
      exampleCrd({}, { versions: [{ name: 'v1', served: true, storage: true }] }),
      ['spec.versions[0].schema.openAPIV3Schema: Required value: schemas are required'],
    ],
    [
      'preserveUnknownFields',
      exampleCrd({}, { preserveUnknownFields: true }),
      [/^spec\.preserveUnknownFields: Invalid value: true: cannot set to true/],
    ],
    [
      'columns',
      exampleCrd(
        {},
        {
          versions: [
            version('v1', {
              storage: true,
              additionalPrinterColumns: [{ name: 'a', type: 'text', jsonPath: 'x' }, {}],
            }),
          ],
        },
      ),
      [
        'spec.additionalPrinterColumns[0].type: Invalid value: "text": must be one of boolean,date,integer,number,string',
        'spec.additionalPrinterColumns[0].JSONPath: Invalid value: "x": must be a simple json path starting with .',
        'spec.additionalPrinterColumns[1].name: Required value',
        'spec.additionalPrinterColumns[1].type: Required value: must be one of boolean,date,integer,number,string',
        'spec.additionalPrinterColumns[1].JSONPath: Required value',
      ],
    ],
    [
      'scale',
      exampleCrd(
        {},
        {
          versions: [
            version('v1', {
              storage: true,
              subresources: { scale: { specReplicasPath: '.status.r', labelSelectorPath: '.metadata.x' } },
            }),
          ],
        },
      ),
      [
        'spec.subresources.scale.specReplicasPath: Invalid value: ".status.r": should be a json path under .spec',
        'spec.subresources.scale.statusReplicasPath: Required value',
        'spec.subresources.scale.labelSelectorPath: Invalid value: ".metadata.x": should be a json path under either .spec or .status',
      ],
    ],
    [
      'deprecation',
      exampleCrd({}, { versions: [version('v1', { storage: true, deprecationWarning: 'old' })] }),
      ['spec.versions[0].deprecationWarning: Invalid value: "old": can only be set for deprecated versions'],
    ],
    [
      'selectable fields',
      exampleCrd(
        {},
        {
          versions: [
            version('v1', {
              storage: true,
              schema: {
                openAPIV3Schema: {
                  type: 'object',
                  properties: { spec: { type: 'object', properties: { color: { type: 'string' } } } },
                },
              },
              selectableFields: [{ jsonPath: '.spec.color' }, { jsonPath: '.spec.nope' }, { jsonPath: '.spec' }],
            }),
          ],
        },
      ),
      [
        'spec.selectableFields[1].jsonPath: Invalid value: ".spec.nope": is an invalid path: does not refer to a valid field',
        /^spec\.selectableFields\[2\]\.jsonPath: Invalid value: "\.spec": must point to a field of type string, boolean or integer/,
      ],
    ],
    [
      'nothing at all',
      { metadata: { name: 'x' } } as unknown as CustomResourceDefinition,
      [
        /^metadata\.name/,
        'spec.group: Required value',
        'spec.scope: Required value',
        'spec.names.plural: Required value',
        'spec.names.singular: Required value',
        'spec.names.kind: Required value',
        'spec.names.listKind: Required value',
        /exactly one version/,
      ],
    ],
  ];
  for (const [name, definition, expected] of shapes) {
    test(name, () => {
      const found = lines(definition);
      assert.equal(found.length, expected.length, found.join('\n'));
      expected.forEach((line, index) => {
        if (typeof line === 'string') assert.equal(found[index], line);
        else assert.match(found[index] ?? '', line);
      });
    });
  }

  test('groups of Kubernetes need an approval', () => {
    const definition = exampleCrd({}, { group: 'x.k8s.io' });
    const named = (annotations?: Record<string, string>) => ({
      ...definition,
      metadata: { name: 'crontabs.x.k8s.io', ...(annotations === undefined ? {} : { annotations }) },
    });
    assert.match(lines(named()).join(), /Required value: protected groups must have approval annotation/);
    assert.deepEqual(lines(named({ 'api-approved.kubernetes.io': 'unapproved, experimental' })), []);
    assert.deepEqual(lines(named({ 'api-approved.kubernetes.io': 'https://example.com/pr' })), []);
  });

  test('an update cannot change what objects are stored by', () => {
    const old = exampleCrd();
    const established = {
      ...old,
      status: { ...old.status, storedVersions: ['v1'], conditions: [{ type: 'Established', status: 'True' }] },
    };
    const changed = exampleCrd({}, { scope: 'Cluster' });
    assert.deepEqual(lines(changed, old), []);
    assert.deepEqual(lines(changed, established as CustomResourceDefinition), [
      'spec.scope: Invalid value: "Cluster": field is immutable',
    ]);
    const moved = exampleCrd({}, { versions: [version('v2', { storage: true })] });
    assert.match(
      lines(moved, old).join(),
      /^status\.storedVersions\[0\]: Invalid value: "v1": missing from spec\.versions/,
    );
  });
});
