import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { builtinSchema } from './builtin.ts';
import { formatFieldError, invalidObject } from './field-error.ts';
import type { JsonObject, Schema } from './schema.ts';
import { validate } from './validate.ts';

const lines = (schema: Schema, value: unknown, old?: unknown) => validate(schema, value, old).map(formatFieldError);
const field = (schema: Schema): Schema => ({
  type: 'object',
  properties: { spec: { type: 'object', properties: { f: schema } } },
});
const check = (schema: Schema, value: unknown) => lines(field(schema), { spec: { f: value } });

describe('patterns', () => {
  test('of thousands of steps are applied to long values', () => {
    const schema: Schema = { type: 'string', pattern: '(a?){1000}(a){1000}$' };
    assert.deepEqual(check(schema, 'a'.repeat(100_000)), []);
    assert.equal(check(schema, 'b'.repeat(100_000)).length, 1);
  });

  test('that take too many steps on a value end in an error, for all fields of an object together', () => {
    const schema: Schema = { type: 'array', items: { type: 'string', pattern: 'a(a|b){900}c' } };
    const noise = (seed: number) =>
      Array.from({ length: 5000 }, (_, at) => (((at + seed) * 2654435761) >>> 9) & 1)
        .join('')
        .replaceAll('1', 'a')
        .replaceAll('0', 'b');
    const values = Array.from({ length: 20 }, (_, index) => noise(index * 7919));
    assert.equal(
      check(schema, values).at(-1),
      '<nil>: Invalid value: "": validation failed due to running out of cost budget for patterns',
    );
    assert.match(check(schema, values.slice(0, 1))[0] ?? '', /should match/);
  });
});

test('more faults than anybody reads are cut off, however many there are', () => {
  const labels = Object.fromEntries(Array.from({ length: 150_000 }, (_, index) => [`!${index}`, 'v']));
  assert.equal(lines(builtinSchema('v1', 'ConfigMap') as Schema, { metadata: { labels } }).length, 100);
});

describe('custom resources', () => {
  const cases: [name: string, schema: Schema, value: unknown, expected: string[]][] = [
    [
      'type',
      { type: 'integer' },
      'three',
      ['spec.f: Invalid value: "string": spec.f in body must be of type integer: "string"'],
    ],
    [
      'no fraction in integers',
      { type: 'integer' },
      1.5,
      ['spec.f: Invalid value: "number": spec.f in body must be of type integer: "number"'],
    ],
    [
      'null',
      { type: 'string' },
      null,
      ['spec.f: Invalid value: "null": spec.f in body must be of type string: "null"'],
    ],
    [
      'format int32',
      { type: 'integer', format: 'int32' },
      3_000_000_000,
      ['<nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.f'],
    ],
    ['format int32, good', { type: 'integer', format: 'int32' }, -(2 ** 31), []],
    ['format int64', { type: 'integer', format: 'int64' }, 3_000_000_000, []],
    ['nullable', { type: 'string', nullable: true }, null, []],
    [
      'int or string',
      { 'x-kubernetes-int-or-string': true },
      true,
      ['spec.f: Invalid value: "boolean": spec.f in body must be of type integer,string: "boolean"'],
    ],
    [
      'int or string, good',
      { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
      '25%',
      [],
    ],
    [
      'maximum',
      { type: 'integer', maximum: 10 },
      15,
      ['spec.f: Invalid value: 15: spec.f in body should be less than or equal to 10'],
    ],
    [
      'exclusive minimum',
      { type: 'number', minimum: 0, exclusiveMinimum: true },
      0,
      ['spec.f: Invalid value: 0: spec.f in body should be greater than 0'],
    ],
    [
      'multiple',
      { type: 'number', multipleOf: 0.1 },
      0.35,
      ['spec.f: Invalid value: 0.35: spec.f in body should be a multiple of 0.1'],
    ],
    ['multiple, good', { type: 'number', multipleOf: 0.1 }, 0.3, []],
    [
      'pattern',
      { type: 'string', pattern: '^(\\d+|\\*)(/\\d+)?(\\s+(\\d+|\\*)(/\\d+)?){4}$' },
      '* * * *',
      [
        'spec.f: Invalid value: "* * * *": spec.f in body should match \'^(\\d+|\\*)(/\\d+)?(\\s+(\\d+|\\*)(/\\d+)?){4}$\'',
      ],
    ],
    [
      'pattern, good',
      { type: 'string', pattern: '^(\\d+|\\*)(/\\d+)?(\\s+(\\d+|\\*)(/\\d+)?){4}$' },
      '* * * * */5',
      [],
    ],
    ['enum', { type: 'string', enum: ['a', 'b'] }, 'c', ['spec.f: Unsupported value: "c": supported values: "a", "b"']],
    ['length', { type: 'string', maxLength: 2 }, 'abc', ['spec.f: Too long: may not be more than 2 bytes']],
    ['characters, not units', { type: 'string', maxLength: 2 }, '😀😀', []],
    [
      'short',
      { type: 'string', minLength: 3 },
      'ab',
      ['spec.f: Invalid value: "ab": spec.f in body should be at least 3 chars long'],
    ],
    [
      'format',
      { type: 'string', format: 'date-time' },
      'now',
      ['spec.f: Invalid value: "now": spec.f in body must be of type date-time: "now"'],
    ],
    ['format that nobody checks', { type: 'string', format: 'moon-phase' }, 'full', []],
    [
      'items',
      { type: 'array', items: { type: 'string' }, maxItems: 1 },
      ['a', 'b'],
      ['spec.f: Too many: 2: must have at most 1 items'],
    ],
    [
      'an element',
      { type: 'array', items: { type: 'string' } },
      ['a', 1],
      ['spec.f[1]: Invalid value: "integer": spec.f[1] in body must be of type string: "integer"'],
    ],
    [
      'required',
      { type: 'object', required: ['a'], properties: { a: { type: 'string' } } },
      {},
      ['spec.f.a: Required value'],
    ],
    ['present though empty', { type: 'object', required: ['a'], properties: { a: { type: 'string' } } }, { a: '' }, []],
    [
      'properties',
      { type: 'object', minProperties: 1, additionalProperties: { type: 'integer' } },
      {},
      ['spec.f: Invalid value: 0: spec.f in body should have at least 1 properties'],
    ],
    [
      'map values',
      { type: 'object', additionalProperties: { type: 'integer' } },
      { k: 'x' },
      ['spec.f.k: Invalid value: "string": spec.f.k in body must be of type integer: "string"'],
    ],
    [
      'set',
      { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
      ['a', 'b', 'a'],
      ['spec.f[2]: Duplicate value: "a"'],
    ],
    [
      'keyed list',
      {
        type: 'array',
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['k'],
        items: { type: 'object', properties: { k: { type: 'string' } } },
      },
      [{ k: 'a' }, { k: 'a' }, {}],
      ['spec.f[2].k: Required value', 'spec.f[1]: Duplicate value: {"k":"a"}'],
    ],
    [
      'anyOf',
      { type: 'object', anyOf: [{ required: ['a'] }, { required: ['b'] }] },
      {},
      ['<nil>: Invalid value: "": "spec.f" must validate at least one schema (anyOf)', 'spec.f.a: Required value'],
    ],
    [
      'oneOf',
      { type: 'object', oneOf: [{ required: ['a'] }, { required: ['b'] }] },
      { a: 1, b: 1 },
      ['<nil>: Invalid value: "": "spec.f" must validate one and only one schema (oneOf). Found 2 valid alternatives'],
    ],
    [
      'allOf',
      { type: 'string', allOf: [{ minLength: 2 }] },
      'a',
      [
        'spec.f: Invalid value: "a": spec.f in body should be at least 2 chars long',
        '<nil>: Invalid value: "": "spec.f" must validate all the schemas (allOf)',
      ],
    ],
    [
      'not',
      { type: 'string', not: { enum: ['a'] } },
      'a',
      ['<nil>: Invalid value: "": "spec.f" must not validate the schema (not)'],
    ],
  ];
  for (const [name, schema, value, expected] of cases)
    test(name, () => assert.deepEqual(check(schema, value), expected));

  test('what has not changed is not looked at again', () => {
    const schema = field({ type: 'string', maxLength: 1 });
    assert.equal(lines(schema, { spec: { f: 'long' } }).length, 1);
    assert.deepEqual(lines(schema, { spec: { f: 'long' }, other: 1 }, { spec: { f: 'long' } }), []);
    assert.equal(lines(schema, { spec: { f: 'longer' } }, { spec: { f: 'long' } }).length, 1);
  });

  test('any value is answered with errors, never with an exception', () => {
    const schema = field({
      type: 'object',
      properties: { a: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string', pattern: '^a+$' } } },
      additionalProperties: {
        anyOf: [{ required: ['x'] }, { minLength: 2 }],
        'x-kubernetes-preserve-unknown-fields': true,
      },
    });
    fc.assert(
      fc.property(fc.jsonValue(), value => void lines(schema, value)),
      { numRuns: 300 },
    );
  });

  test('a list of faults ends somewhere', () => {
    const list = Array.from({ length: 1000 }, () => 1);
    assert.equal(check({ type: 'array', items: { type: 'string' } }, list).length, 100);
  });
});

describe('built-in kinds', () => {
  const pod = (spec: JsonObject): JsonObject => ({ metadata: { name: 'p' }, spec });
  const cases: [name: string, apiVersion: string, kind: string, object: JsonObject, expected: string[]][] = [
    ['a good pod', 'v1', 'Pod', pod({ containers: [{ name: 'c', image: 'i' }], restartPolicy: 'Always' }), []],
    ['no containers', 'v1', 'Pod', pod({ containers: [] }), ['spec.containers: Required value']],
    ['no name', 'v1', 'Pod', pod({ containers: [{ image: 'i' }] }), ['spec.containers[0].name: Required value']],
    [
      'a bad name',
      'v1',
      'Pod',
      pod({ containers: [{ name: 'Not Good', image: 'i' }] }),
      [
        "spec.containers[0].name: Invalid value: \"Not Good\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
      ],
    ],
    [
      'the same name twice',
      'v1',
      'Pod',
      pod({
        containers: [
          { name: 'a', image: 'i' },
          { name: 'a', image: 'i' },
        ],
      }),
      ['spec.containers[1].name: Duplicate value: "a"'],
    ],
    [
      'a policy',
      'v1',
      'Pod',
      pod({ containers: [{ name: 'a', image: 'i' }], restartPolicy: 'Sometimes' }),
      ['spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"'],
    ],
    [
      'a mount without volume',
      'v1',
      'Pod',
      pod({ containers: [{ name: 'a', image: 'i', volumeMounts: [{ name: 'v', mountPath: '/v' }] }] }),
      ['spec.containers[0].volumeMounts[0].name: Not found: "v"'],
    ],
    [
      'two sources',
      'v1',
      'Pod',
      pod({ containers: [{ name: 'a', image: 'i' }], volumes: [{ name: 'v', emptyDir: {}, hostPath: { path: '/' } }] }),
      ['spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type'],
    ],
    [
      'a port',
      'v1',
      'Pod',
      pod({ containers: [{ name: 'a', image: 'i', ports: [{ containerPort: 70000 }] }] }),
      ['spec.containers[0].ports[0].containerPort: Invalid value: 70000: must be between 1 and 65535, inclusive'],
    ],
    [
      'an empty string counts as absent',
      'v1',
      'Pod',
      pod({ containers: [{ name: 'a', image: 'i', imagePullPolicy: '' }], dnsPolicy: '' }),
      [],
    ],
    [
      'replicas',
      'apps/v1',
      'ReplicaSet',
      { metadata: {}, spec: { replicas: -1, selector: { matchLabels: { a: 'b' } } } },
      ['spec.replicas: Invalid value: -1: must be greater than or equal to 0'],
    ],
    [
      'selector and template',
      'apps/v1',
      'Deployment',
      {
        metadata: {},
        spec: {
          selector: { matchLabels: { a: 'b' } },
          template: { metadata: { labels: { a: 'c' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
        },
      },
      ['spec.template.metadata.labels: Invalid value: {"a":"c"}: `selector` does not match template `labels`'],
    ],
    [
      'an empty selector',
      'apps/v1',
      'DaemonSet',
      { metadata: {}, spec: { selector: {}, template: { spec: { containers: [{ name: 'c', image: 'i' }] } } } },
      ['spec.selector: Invalid value: {}: empty selector is invalid for daemonset'],
    ],
    [
      'a label',
      'v1',
      'ConfigMap',
      { metadata: { labels: { a: 'no spaces' } } },
      [
        "metadata.labels: Invalid value: \"no spaces\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')",
      ],
    ],
    [
      'a data key',
      'v1',
      'Secret',
      { metadata: {}, data: { '../x': '' } },
      [
        "data[../x]: Invalid value: \"../x\": a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')",
        'data[../x]: Invalid value: "../x": must not start with \'..\'',
      ],
    ],
    [
      'a budget',
      'policy/v1',
      'PodDisruptionBudget',
      { metadata: {}, spec: { minAvailable: 1, maxUnavailable: 1 } },
      [
        'spec: Invalid value: {"minAvailable":1,"maxUnavailable":1}: minAvailable and maxUnavailable cannot be both set',
      ],
    ],
    [
      'a status without what Go fills in',
      'v1',
      'Pod',
      { metadata: {}, status: { containerStatuses: [{ name: 'c' }], conditions: [{ type: 'Ready' }] } },
      [],
    ],
    [
      'two controllers',
      'v1',
      'ConfigMap',
      {
        metadata: {
          ownerReferences: [
            { apiVersion: 'v1', kind: 'A', name: 'a', uid: '1', controller: true },
            { apiVersion: 'v1', kind: 'B', name: 'b', uid: '2', controller: true },
          ],
        },
      },
      [
        'metadata.ownerReferences: Invalid value: [{"apiVersion":"v1","kind":"A","name":"a","uid":"1","controller":true},{"apiVersion":"v1","kind":"B","name":"b","uid":"2","controller":true}]: Only one reference can have Controller set to true. Found "true" in references for A/a and B/b',
      ],
    ],
  ];
  for (const [name, apiVersion, kind, object, expected] of cases) {
    test(name, () => assert.deepEqual(lines(builtinSchema(apiVersion, kind) as Schema, object), expected));
  }

  test('make a 422 with a cause for each field', () => {
    const errors = validate(
      builtinSchema('v1', 'Pod') as Schema,
      pod({ containers: [{ image: 'i' }], dnsPolicy: 'x' }),
    );
    const error = invalidObject('', 'Pod', 'p', errors);
    assert.equal(error.code, 422);
    assert.equal(error.reason, 'Invalid');
    assert.match(
      error.message,
      /^Pod "p" is invalid: \[spec\.containers\[0\]\.name: Required value, spec\.dnsPolicy: Unsupported/,
    );
    assert.deepEqual(error.details?.causes?.[0], {
      reason: 'FieldValueRequired',
      message: 'Required value',
      field: 'spec.containers[0].name',
    });
    assert.match(invalidObject('apps', 'Deployment', 'd', errors).message, /^Deployment\.apps "d" is invalid/);
  });
});
