import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { builtinSchema } from './builtin.ts';
import { decode, decodeError } from './decode.ts';
import { duplicateFields } from './duplicates.ts';
import { MAX_DEPTH, tooDeep } from './json.ts';
import { prune } from './prune.ts';
import type { Schema } from './schema.ts';
import { strictErrors, unknownFields } from './unknown.ts';

const POD = builtinSchema('v1', 'Pod') as Schema;
const SECRET = builtinSchema('v1', 'Secret') as Schema;
const DEPLOYMENT = builtinSchema('apps/v1', 'Deployment') as Schema;

describe('values of the wrong type', () => {
  const cases: [schema: Schema, value: unknown, message: string | undefined][] = [
    [
      DEPLOYMENT,
      { spec: { replicas: '3' } },
      'json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32',
    ],
    [
      DEPLOYMENT,
      { spec: { replicas: 1.5 } },
      'json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32',
    ],
    [
      DEPLOYMENT,
      { spec: { replicas: 2 ** 31 } },
      'json: cannot unmarshal number 2147483648 into Go struct field DeploymentSpec.spec.replicas of type int32',
    ],
    [
      DEPLOYMENT,
      { spec: [] },
      'json: cannot unmarshal array into Go struct field Deployment.spec of type v1.DeploymentSpec',
    ],
    [
      POD,
      { metadata: { labels: { a: 1 } } },
      'json: cannot unmarshal number into Go struct field ObjectMeta.metadata.labels of type string',
    ],
    [
      POD,
      { spec: { containers: { name: 'x' } } },
      'json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container',
    ],
    [
      POD,
      { spec: { containers: [{ env: [{ value: true }] }] } },
      'json: cannot unmarshal bool into Go struct field EnvVar.spec.containers.env.value of type string',
    ],
    [
      POD,
      { spec: { containers: [{ resources: { limits: { cpu: 'much' } } }] } },
      "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    ],
    [
      POD,
      { metadata: { creationTimestamp: 'yesterday' } },
      'parsing time "yesterday" as "2006-01-02T15:04:05Z07:00": cannot parse "yesterday" as "2006"',
    ],
    [SECRET, { data: { a: 'not base64!' } }, 'illegal base64 data at input byte 3'],
    [SECRET, 'text', 'json: cannot unmarshal string into Go value of type v1.Secret'],
    [POD, { spec: { containers: [{ resources: { limits: { cpu: 1, memory: '1.5Gi' } } }] } }, undefined],
    [
      POD,
      {
        spec: {
          containers: [{ livenessProbe: { httpGet: { port: 'web' } } }],
          replicas: 'unknown fields do not matter',
        },
      },
      undefined,
    ],
    [POD, { spec: null, metadata: { labels: null, creationTimestamp: null } }, undefined],
  ];
  for (const [schema, value, message] of cases) {
    test(JSON.stringify(value), () => assert.equal(decodeError(schema, value), message));
  }

  test('decoding drops unknown fields and nulls', () => {
    const decoded = decode(POD, {
      bogus: 1,
      metadata: { name: 'p', labels: { a: null, b: 'x' }, creationTimestamp: null },
      spec: { containers: [null, { name: 'c', image: null, __proto__x: 1 }] },
    });
    assert.deepEqual(decoded, {
      metadata: { name: 'p', labels: { a: '', b: 'x' } },
      spec: { containers: [{}, { name: 'c' }] },
    });
  });

  test('a null stays where any JSON is kept', () => {
    const definitions = builtinSchema('apiextensions.k8s.io/v1', 'CustomResourceDefinition') as Schema;
    const versions = [{ schema: { openAPIV3Schema: { properties: { a: { enum: ['x', null] } } } } }];
    assert.deepEqual(decode(definitions, { spec: { versions } }), { spec: { versions } });
  });

  test('decoding never throws, whatever it is given', () => {
    fc.assert(
      fc.property(fc.jsonValue(), value => {
        for (const schema of [POD, SECRET, DEPLOYMENT]) {
          decodeError(schema, value);
          decode(schema, value);
          prune(schema, value);
          unknownFields(schema, value);
        }
      }),
      { numRuns: 300 },
    );
  });
});

describe('unknown fields', () => {
  const custom: Schema = {
    type: 'object',
    properties: {
      spec: {
        type: 'object',
        properties: {
          known: { type: 'string' },
          map: { type: 'object', additionalProperties: { type: 'object', properties: { a: { type: 'string' } } } },
          any: {
            type: 'object',
            'x-kubernetes-preserve-unknown-fields': true,
            properties: { typed: { type: 'object' } },
          },
          list: { type: 'array', items: { type: 'object', properties: { a: { type: 'string' } } } },
        },
      },
    },
  };
  const value = {
    spec: {
      known: 'x',
      foo: 1,
      constructor: 2,
      map: { k: { a: 'x', b: 1 } },
      any: { whatever: { x: 1 }, typed: { y: 1 } },
      list: [{ a: 'x' }, { b: 1 }],
    },
  };

  test('are named by their path', () => {
    assert.deepEqual(unknownFields(custom, value), [
      'spec.foo',
      'spec.constructor',
      'spec.map.k.b',
      'spec.any.typed.y',
      'spec.list[1].b',
    ]);
    assert.deepEqual(unknownFields(DEPLOYMENT, { spec: { template: { spec: { containers: [{ foo: 1 }] } } } }), [
      'spec.template.spec.containers[0].foo',
    ]);
  });

  test('are pruned, except where they are preserved', () => {
    assert.deepEqual(prune(custom, value), {
      spec: { known: 'x', map: { k: { a: 'x' } }, any: { whatever: { x: 1 }, typed: {} }, list: [{ a: 'x' }, {}] },
    });
  });

  test('after pruning nothing is unknown, and pruning changes nothing any more', () => {
    fc.assert(
      fc.property(fc.jsonValue(), free => {
        const pruned = prune(custom, { spec: free });
        assert.deepEqual(unknownFields(custom, pruned), []);
        assert.equal(prune(custom, pruned), pruned);
      }),
      { numRuns: 300 },
    );
  });

  test('a real static pod has none', () => {
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: 'etcd',
        namespace: 'openshift-etcd',
        annotations: { 'target.workload.openshift.io/management': '{}' },
      },
      spec: {
        initContainers: [{ name: 'setup', image: 'i', command: ['/bin/sh'], securityContext: { privileged: true } }],
        containers: [
          {
            name: 'etcd',
            image: 'i',
            imagePullPolicy: 'IfNotPresent',
            env: [{ name: 'NODE_IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } }],
            resources: { requests: { memory: '600Mi', cpu: '300m' } },
            readinessProbe: {
              httpGet: { port: 9980, path: 'readyz', scheme: 'HTTPS' },
              timeoutSeconds: 30,
              failureThreshold: 5,
            },
            startupProbe: { exec: { command: ['true'] }, initialDelaySeconds: 10 },
            securityContext: { privileged: true, capabilities: { drop: ['ALL'] } },
            volumeMounts: [{ mountPath: '/var/lib/etcd/', name: 'data-dir', mountPropagation: 'HostToContainer' }],
            terminationMessagePolicy: 'FallbackToLogsOnError',
            lifecycle: { preStop: { exec: { command: ['true'] } } },
          },
        ],
        hostNetwork: true,
        priorityClassName: 'system-node-critical',
        tolerations: [{ operator: 'Exists' }],
        affinity: {
          nodeAffinity: {
            requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchFields: [] }] },
          },
        },
        topologySpreadConstraints: [{ maxSkew: 1, topologyKey: 'z', whenUnsatisfiable: 'DoNotSchedule' }],
        volumes: [
          { hostPath: { path: '/var/lib/etcd', type: '' }, name: 'data-dir' },
          {
            name: 'token',
            projected: {
              sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 3607 } }, { configMap: { name: 'ca' } }],
            },
          },
        ],
        schedulingGates: [{ name: 'g' }],
      },
    };
    assert.deepEqual(unknownFields(POD, pod), []);
    assert.equal(decodeError(POD, pod), undefined);
  });
});

describe('duplicate fields', () => {
  const cases: [text: string, paths: string[]][] = [
    ['{"a":1,"b":2}', []],
    ['{"a":1,"a":2}', ['a']],
    ['{"spec":{"x":{"a":1},"x":{"a":2}}}', ['spec.x']],
    ['{"l":[{"a":1},{"a":1,"a":2}],"l2":[[{"b":1,"b":1}]]}', ['l[1].a', 'l2[0][0].b']],
    ['{"a":"{\\"b\\":1,\\"b\\":2}","c":":,{}[]"}', []],
    ['{"\\u0061":1,"a":2}', ['a']],
    ['{"a":{"k":1},"b":{"k":1}}', []],
    ['{"a":1,"a":2,"a":3}', ['a']],
    ['[]', []],
  ];
  for (const [text, paths] of cases) test(text, () => assert.deepEqual(duplicateFields(text), paths));

  test('what JSON.stringify writes has none', () => {
    fc.assert(fc.property(fc.jsonValue(), value => assert.deepEqual(duplicateFields(JSON.stringify(value)), [])));
  });

  test('make the lines of a strict decoder', () => {
    assert.deepEqual(strictErrors(['spec.foo'], ['a']), ['duplicate field "a"', 'unknown field "spec.foo"']);
  });
});

describe('depth', () => {
  test('is measured without recursion', () => {
    const nested = (depth: number) => JSON.parse('['.repeat(depth) + ']'.repeat(depth)) as unknown;
    assert.equal(tooDeep(nested(MAX_DEPTH)), false);
    assert.equal(tooDeep(nested(MAX_DEPTH + 2)), true);
    assert.equal(tooDeep(nested(50_000)), true);
    assert.deepEqual(duplicateFields(JSON.stringify(nested(2000))), []);
  });
});
