import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { builtinSchema } from '../schema/builtin.ts';
import type { JsonObject, Schema } from '../schema/schema.ts';
import { applyStrategicMergePatch } from './strategic.ts';

const POD = builtinSchema('v1', 'Pod') as Schema;
const SERVICE = builtinSchema('v1', 'Service') as Schema;
const DEPLOYMENT = builtinSchema('apps/v1', 'Deployment') as Schema;

const podWith = (spec: JsonObject): JsonObject => ({ spec });
const containers = (...list: JsonObject[]): JsonObject => podWith({ containers: list });

const CASES: { name: string; schema?: Schema; document: JsonObject; patch: JsonObject; expected: JsonObject }[] = [
  {
    name: 'lists merge by their key; an unknown element is added',
    document: containers({ name: 'a', image: 'x' }),
    patch: containers({ name: 'b', image: 'y' }),
    expected: containers({ name: 'b', image: 'y' }, { name: 'a', image: 'x' }),
  },
  {
    name: 'an element that is known is merged',
    document: containers({ name: 'a', image: 'x', args: ['1'] }, { name: 'b', image: 'y' }),
    patch: containers({ name: 'a', image: 'z' }),
    expected: containers({ name: 'a', image: 'z', args: ['1'] }, { name: 'b', image: 'y' }),
  },
  {
    name: 'lists without a merge key are replaced',
    document: podWith({ tolerations: [{ key: 'a' }, { key: 'b' }] }),
    patch: podWith({ tolerations: [{ key: 'c' }] }),
    expected: podWith({ tolerations: [{ key: 'c' }] }),
  },
  {
    name: 'null deletes a field',
    document: podWith({ nodeName: 'n', hostNetwork: true }),
    patch: podWith({ nodeName: null, priority: null }),
    expected: podWith({ hostNetwork: true }),
  },
  {
    name: '$patch: delete takes an element away',
    document: containers({ name: 'a' }, { name: 'b' }),
    patch: containers({ name: 'a', $patch: 'delete' }),
    expected: containers({ name: 'b' }),
  },
  {
    name: '$patch: replace in a list replaces the list',
    document: containers({ name: 'a', image: 'x' }, { name: 'b' }),
    patch: containers({ name: 'c' }, { $patch: 'replace' }),
    expected: containers({ name: 'c' }),
  },
  {
    name: '$patch: replace in an object replaces the object',
    document: podWith({ securityContext: { runAsUser: 1, fsGroup: 2 } }),
    patch: podWith({ securityContext: { $patch: 'replace', fsGroup: 3 } }),
    expected: podWith({ securityContext: { fsGroup: 3 } }),
  },
  {
    name: '$retainKeys drops the other arm of a union',
    schema: DEPLOYMENT,
    document: { spec: { strategy: { type: 'RollingUpdate', rollingUpdate: { maxSurge: '30%' } } } },
    patch: { spec: { strategy: { $retainKeys: ['type'], type: 'Recreate' } } },
    expected: { spec: { strategy: { type: 'Recreate' } } },
  },
  {
    name: 'elements of primitive lists merge, for finalizers',
    document: { metadata: { finalizers: ['a', 'b'] } },
    patch: { metadata: { finalizers: ['b', 'c'] } },
    expected: { metadata: { finalizers: ['a', 'b', 'c'] } },
  },
  {
    name: '$deleteFromPrimitiveList takes values out',
    document: { metadata: { finalizers: ['a', 'b', 'c'] } },
    patch: { metadata: { '$deleteFromPrimitiveList/finalizers': ['a', 'c'] } },
    expected: { metadata: { finalizers: ['b'] } },
  },
  {
    name: '$setElementOrder orders what the client knows, the rest keeps its place',
    document: containers({ name: 'a' }, { name: 'server' }, { name: 'b' }),
    patch: podWith({
      '$setElementOrder/containers': [{ name: 'c' }, { name: 'b' }, { name: 'a' }],
      containers: [{ name: 'c', image: 'x' }],
    }),
    expected: containers({ name: 'c', image: 'x' }, { name: 'server' }, { name: 'b' }, { name: 'a' }),
  },
  {
    name: 'two new elements with the same key, as kubectl sends for TCP and UDP',
    schema: SERVICE,
    document: { spec: {} },
    patch: {
      spec: {
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 53, protocol: 'TCP' },
        ],
      },
    },
    expected: {
      spec: {
        ports: [
          { port: 53, protocol: 'UDP' },
          { port: 53, protocol: 'TCP' },
        ],
      },
    },
  },
  {
    name: 'directives and nulls in new parts fall away',
    document: {},
    patch: podWith({
      '$setElementOrder/volumes': [{ name: 'v' }],
      volumes: [{ name: 'v', $retainKeys: ['name', 'emptyDir'], emptyDir: {}, hostPath: null }],
    }),
    expected: podWith({ volumes: [{ name: 'v', emptyDir: {} }] }),
  },
  {
    name: 'a strategy of replace wins over merging',
    schema: builtinSchema('policy/v1', 'PodDisruptionBudget') as Schema,
    document: { spec: { selector: { matchLabels: { a: '1', b: '2' } } } },
    patch: { spec: { selector: { matchLabels: { c: '3' } } } },
    expected: { spec: { selector: { matchLabels: { c: '3' } } } },
  },
];

describe('strategic merge patch', () => {
  for (const { name, schema = POD, document, patch, expected } of CASES) {
    test(name, () => {
      const before = JSON.stringify(document);
      assert.deepEqual(applyStrategicMergePatch(schema, document, patch), expected);
      assert.equal(JSON.stringify(document), before);
    });
  }

  test('a patch that contradicts itself is a bad request', () => {
    const bad: JsonObject[] = [
      containers({ image: 'x' }),
      containers({ name: 'a', $patch: 'explode' }),
      containers({ name: 'a', $patch: 'merge' }),
      podWith({ $patch: 'explode' }),
      podWith({ containers: ['a'] }),
      podWith({
        '$setElementOrder/containers': [{ name: 'b' }, { name: 'a' }],
        containers: [{ name: 'a' }, { name: 'b' }],
      }),
      podWith({ '$setElementOrder/containers': 'a', containers: [] }),
      podWith({ '$setElementOrder/containers': [{ name: 'a' }, { image: 'x' }], containers: [{ name: 'a' }] }),
      podWith({ '$setElementOrder/containers': [{ image: 'x' }] }),
      podWith({ securityContext: { $retainKeys: ['runAsUser'], fsGroup: 1 } }),
    ];
    const document = containers({ name: 'a' }, { name: 'b' });
    for (const patch of bad) {
      const target = { ...document, spec: { ...(document['spec'] as JsonObject), securityContext: { runAsUser: 1 } } };
      assert.throws(() => applyStrategicMergePatch(POD, target, patch), { code: 400 }, JSON.stringify(patch));
    }
  });

  test('without keys and directives it is a merge patch with the same result when applied again', () => {
    const labels = fc.dictionary(fc.constantFrom('a', 'b', 'c'), fc.constantFrom('1', '2'));
    const container = fc.record({ name: fc.constantFrom('x', 'y', 'z'), image: fc.constantFrom('i', 'j') });
    const pod = fc.record(
      {
        metadata: fc.record({ labels }, { requiredKeys: [] }),
        spec: fc.record(
          { containers: fc.uniqueArray(container, { selector: ({ name }) => name }), nodeSelector: labels },
          { requiredKeys: [] },
        ),
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(pod, pod, (document, patch) => {
        const once = applyStrategicMergePatch(POD, document, patch);
        assert.deepEqual(applyStrategicMergePatch(POD, once, patch), once);
      }),
      { numRuns: 300 },
    );
  });
});
