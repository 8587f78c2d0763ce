import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ManagedFieldsEntry } from 'kubernetes-types/meta/v1.d.ts';
import { KubeError } from '../../kube/error.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { builtinSchema } from '../schema/builtin.ts';
import type { Schema } from '../schema/schema.ts';
import { type ApplyRequest, applyConfiguration } from './apply.ts';
import { trackUpdate } from './update.ts';

type Anything = KubeObject & Record<string, unknown>;

const CONFIG_MAP = builtinSchema('v1', 'ConfigMap') as Schema;
const DEPLOYMENT = builtinSchema('apps/v1', 'Deployment') as Schema;
const POD = builtinSchema('v1', 'Pod') as Schema;

const NOW = new Date('2026-11-15T12:00:00Z');

const configMap = (data: Record<string, string>, labels?: Record<string, string>): Anything => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: 'test', namespace: 'default', ...(labels === undefined ? {} : { labels }) },
  data,
});

const deployment = (spec: object): Anything => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', namespace: 'default' },
  spec,
});

const pod = (spec: object): Anything => ({ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec });

function apply(
  schema: Schema,
  manager: string,
  applied: Anything,
  live?: KubeObject,
  options: Partial<ApplyRequest> = {},
): Anything {
  const apiVersion = applied.apiVersion ?? '';
  return applyConfiguration({
    schema,
    live,
    applied,
    apiVersion,
    manager,
    force: false,
    now: NOW,
    ...options,
  }) as Anything;
}

function update(schema: Schema, manager: string, updated: Anything, live?: KubeObject): Anything {
  const apiVersion = updated.apiVersion ?? '';
  return trackUpdate({ schema, live, updated, apiVersion, manager, now: NOW }) as Anything;
}

function managedBy(object: KubeObject, manager: string): ManagedFieldsEntry | undefined {
  return object.metadata?.managedFields?.find(entry => entry.manager === manager);
}

/** The object after its client changed something, with the bookkeeping the client read. */
function edited(object: Anything, changes: object): Anything {
  return { ...object, ...changes };
}

describe('server-side apply', () => {
  test('the applier owns what it names, and not what everybody has', () => {
    const applied = apply(CONFIG_MAP, 'kubectl', configMap({ key: 'some value' }, { 'test-label': 'test' }));
    assert.deepEqual(applied.metadata?.managedFields, [
      {
        manager: 'kubectl',
        operation: 'Apply',
        apiVersion: 'v1',
        time: '2026-11-15T12:00:00Z',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:data': { 'f:key': {} }, 'f:metadata': { 'f:labels': { 'f:test-label': {} } } },
      },
    ]);
  });

  test('a conflict names the field and its manager, the way kubectl prints it', () => {
    const live = apply(CONFIG_MAP, 'kubectl', configMap({ key: 'some value' }));
    const patched = update(CONFIG_MAP, 'kube-controller-manager', edited(live, { data: { key: 'new value' } }), live);
    assert.equal(managedBy(patched, 'kubectl'), undefined, 'the updater took the only field');
    assert.throws(
      () => apply(CONFIG_MAP, 'kubectl', configMap({ key: 'some value' }), patched),
      (error: unknown) => {
        assert.ok(error instanceof KubeError);
        assert.equal(error.code, 409);
        assert.equal(error.reason, 'Conflict');
        assert.equal(
          error.message,
          'Apply failed with 1 conflict: conflict with "kube-controller-manager" using v1: .data.key',
        );
        assert.deepEqual(error.details?.causes, [
          {
            reason: 'FieldManagerConflict',
            message: 'conflict with "kube-controller-manager" using v1',
            field: '.data.key',
          },
        ]);
        return true;
      },
    );
  });

  test('several conflicts are listed by manager', () => {
    const live = apply(
      POD,
      'one',
      pod({ containers: [{ name: 'c', image: 'a', ports: [{ containerPort: 80, name: 'http' }] }], hostNetwork: true }),
    );
    const other = pod({
      containers: [{ name: 'c', image: 'b', ports: [{ containerPort: 80, protocol: 'TCP', name: 'web' }] }],
      hostNetwork: false,
    });
    assert.throws(() => apply(POD, 'two', other, live), {
      message: [
        'Apply failed with 3 conflicts: conflicts with "one":',
        '- .spec.containers[name="c"].image',
        '- .spec.containers[name="c"].ports[containerPort=80,protocol="TCP"].name',
        '- .spec.hostNetwork',
      ].join('\n'),
    });
  });

  test('force takes the field over, and the other manager no longer has it', () => {
    const live = apply(DEPLOYMENT, 'a', deployment({ replicas: 1, paused: true }));
    const taken = apply(DEPLOYMENT, 'b', deployment({ replicas: 2 }), live, { force: true });
    assert.deepEqual(taken['spec'], { replicas: 2, paused: true });
    assert.deepEqual(managedBy(taken, 'a')?.fieldsV1, { 'f:spec': { 'f:paused': {} } });
    assert.deepEqual(managedBy(taken, 'b')?.fieldsV1, { 'f:spec': { 'f:replicas': {} } });
  });

  test('the same value is shared, and stays until the last owner gives it up', () => {
    const one = apply(DEPLOYMENT, 'a', deployment({ replicas: 3, paused: true }));
    const both = apply(DEPLOYMENT, 'b', deployment({ replicas: 3 }), one);
    const withoutA = apply(DEPLOYMENT, 'a', deployment({ paused: true }), both);
    assert.deepEqual(withoutA['spec'], { replicas: 3, paused: true });
    const withoutBoth = apply(DEPLOYMENT, 'b', deployment({}), withoutA);
    assert.deepEqual(withoutBoth['spec'], { paused: true });
  });

  test('what is no longer applied goes; what somebody else set stays', () => {
    const live = apply(
      POD,
      'a',
      pod({
        containers: [
          { name: 'x', image: 'i' },
          { name: 'y', image: 'i' },
        ],
      }),
    );
    const spec = live['spec'] as { containers: object[] };
    const updated = update(
      POD,
      'sidecar',
      edited(live, { spec: { containers: [...spec.containers, { name: 'z', image: 'i' }] } }),
      live,
    );
    const after = apply(POD, 'a', pod({ containers: [{ name: 'x', image: 'i' }] }), updated);
    assert.deepEqual(after['spec'], {
      containers: [
        { name: 'x', image: 'i' },
        { name: 'z', image: 'i' },
      ],
    });
  });

  test('a union of a type goes as a whole when its last part goes', () => {
    const live = apply(DEPLOYMENT, 'a', deployment({ replicas: 1, strategy: { rollingUpdate: { maxSurge: 1 } } }));
    const after = apply(DEPLOYMENT, 'a', deployment({ replicas: 1 }), live);
    assert.deepEqual(after['spec'], { replicas: 1 });
  });

  test('atomic values have one owner', () => {
    const live = apply(POD, 'a', pod({ nodeSelector: { a: '1' }, tolerations: [{ key: 'x' }] }));
    assert.deepEqual(managedBy(live, 'a')?.fieldsV1, { 'f:spec': { 'f:nodeSelector': {}, 'f:tolerations': {} } });
    assert.throws(() => apply(POD, 'b', pod({ nodeSelector: { b: '2' } }), live), /\.spec\.nodeSelector$/);
  });

  test('elements of sets are owned one by one', () => {
    const withFinalizers = (...finalizers: string[]): Anything => ({
      ...configMap({}),
      metadata: { name: 'test', finalizers },
    });
    const live = apply(CONFIG_MAP, 'a', withFinalizers('a/1', 'a/2'));
    const both = apply(CONFIG_MAP, 'b', withFinalizers('b/1'), live);
    assert.deepEqual(both.metadata?.finalizers, ['a/1', 'a/2', 'b/1']);
    const after = apply(CONFIG_MAP, 'a', withFinalizers('a/2'), both);
    assert.deepEqual(after.metadata?.finalizers, ['a/2', 'b/1']);
    assert.deepEqual(managedBy(after, 'a')?.fieldsV1, {
      'f:data': {},
      'f:metadata': { 'f:finalizers': { 'v:"a/2"': {} } },
    });
  });

  test('a key that is left out has its default', () => {
    const live = apply(POD, 'a', pod({ containers: [{ name: 'c', ports: [{ containerPort: 80 }] }] }));
    const same = apply(
      POD,
      'b',
      pod({ containers: [{ name: 'c', ports: [{ containerPort: 80, protocol: 'TCP' }] }] }),
      live,
    );
    assert.deepEqual((same['spec'] as { containers: { ports: object[] }[] }).containers[0]?.ports, [
      { containerPort: 80, protocol: 'TCP' },
    ]);
  });

  test('an element twice, or one without its key, cannot be applied', () => {
    const twice = pod({ containers: [{ name: 'a' }, { name: 'a' }] });
    assert.throws(() => apply(POD, 'm', twice), /duplicate entries for key \[name="a"\]/);
    const items: Schema = { type: 'object', properties: { name: { type: 'string' } } };
    const list: Schema = {
      type: 'array',
      items,
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
    };
    const custom: Schema = {
      type: 'object',
      properties: { spec: { type: 'object', properties: { containers: list } } },
    };
    assert.throws(() => apply(custom, 'm', pod({ containers: [{ image: 'i' }] })), /omits key field/);
  });

  test('in built-in types an absent key is the zero value, and validation has its say', () => {
    const live = apply(POD, 'm', pod({ containers: [{ name: 'a' }] }));
    const applied = apply(POD, 'n', pod({ containers: [{ image: 'i' }] }), live);
    assert.deepEqual(applied['spec'], { containers: [{ name: 'a' }, { image: 'i' }] });
    const fields = managedBy(applied, 'n')?.fieldsV1;
    assert.deepEqual(fields, { 'f:spec': { 'f:containers': { 'k:{"name":""}': { '.': {}, 'f:image': {} } } } });
  });

  test('null for a map or a list leaves what others have in it', () => {
    const mine = { ...configMap({ k: '1' }), metadata: { name: 'test', labels: { a: '1' }, finalizers: ['x.io/a'] } };
    const live = apply(CONFIG_MAP, 'a', mine);
    const nothing = { ...configMap({}), metadata: { name: 'test', labels: null, finalizers: null }, data: null };
    const applied = apply(CONFIG_MAP, 'b', nothing as unknown as Anything, live);
    assert.deepEqual(applied['data'], { k: '1' });
    assert.deepEqual([applied.metadata?.labels, applied.metadata?.finalizers], [{ a: '1' }, ['x.io/a']]);
    assert.deepEqual(managedBy(applied, 'a')?.fieldsV1, managedBy(live, 'a')?.fieldsV1);
    const fields = { 'f:data': {}, 'f:metadata': { 'f:finalizers': {}, 'f:labels': {} } };
    assert.deepEqual(managedBy(applied, 'b')?.fieldsV1, fields);
  });

  test('null gives up what was the own, and conflicts over what is one thing', () => {
    const live = apply(CONFIG_MAP, 'a', configMap({ k: '1' }));
    const after = apply(CONFIG_MAP, 'a', { ...configMap({}), data: null }, live);
    assert.equal((after['data'] as Record<string, string> | null)?.['k'], undefined);
    const held = apply(CONFIG_MAP, 'a', { ...configMap({}), immutable: true });
    assert.throws(
      () => apply(CONFIG_MAP, 'b', { ...configMap({}), immutable: null }, held),
      /conflict with "a": .immutable/,
    );
  });

  test('an object that was never tracked belongs to before-first-apply', () => {
    const live = configMap({ a: '1', b: '2' });
    assert.throws(
      () => apply(CONFIG_MAP, 'm', configMap({ a: 'x' }), live),
      /conflict with "before-first-apply" using v1: \.data\.a/,
    );
    const shared = apply(CONFIG_MAP, 'm', configMap({ a: '1' }), live);
    assert.deepEqual(managedBy(shared, 'before-first-apply')?.fieldsV1, {
      'f:data': { '.': {}, 'f:a': {}, 'f:b': {} },
    });
  });

  test('fields that the endpoint ignores are not owned', () => {
    const applied: Anything = { ...deployment({ replicas: 1 }), status: { replicas: 1 } };
    const result = apply(DEPLOYMENT, 'm', applied, undefined, { resetFields: [['status']] });
    assert.deepEqual(managedBy(result, 'm')?.fieldsV1, { 'f:spec': { 'f:replicas': {} } });
  });

  test('the same manager through a subresource is another manager', () => {
    const live = apply(DEPLOYMENT, 'm', deployment({ replicas: 1 }));
    const status: Anything = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'web', namespace: 'default' },
      status: { replicas: 1 },
    };
    const after = apply(DEPLOYMENT, 'm', status, live, { subresource: 'status', resetFields: [['spec']] });
    assert.deepEqual(
      after.metadata?.managedFields?.map(({ manager, subresource }) => [manager, subresource]),
      [
        ['m', undefined],
        ['m', 'status'],
      ],
    );
    assert.deepEqual(
      after['spec'],
      { replicas: 1 },
      'the entry of the subresource does not give up what the other owns',
    );
  });

  test('custom resources: granular where nothing is said, by keys where the schema says so', () => {
    const schema: Schema = {
      type: 'object',
      properties: {
        spec: {
          type: 'object',
          properties: {
            free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
            list: { type: 'array', items: { type: 'string' } },
            byKey: {
              type: 'array',
              'x-kubernetes-list-type': 'map',
              'x-kubernetes-list-map-keys': ['id'],
              items: { type: 'object', properties: { id: { type: 'integer' }, v: { type: 'string' } } },
            },
          },
        },
      },
    };
    const custom = (spec: object): Anything => ({
      apiVersion: 'example.com/v1',
      kind: 'C',
      metadata: { name: 'c' },
      spec,
    });
    const live = apply(schema, 'a', custom({ free: { x: { y: 1 } }, list: ['1'], byKey: [{ id: 1, v: 'a' }] }));
    assert.deepEqual(managedBy(live, 'a')?.fieldsV1, {
      'f:spec': {
        'f:byKey': { 'k:{"id":1}': { '.': {}, 'f:id': {}, 'f:v': {} } },
        'f:free': { 'f:x': { '.': {}, 'f:y': {} } },
        'f:list': {},
      },
    });
    const both = apply(schema, 'b', custom({ free: { x: { z: 2 } }, byKey: [{ id: 2 }] }), live);
    assert.deepEqual(both['spec'], {
      free: { x: { y: 1, z: 2 } },
      list: ['1'],
      byKey: [{ id: 1, v: 'a' }, { id: 2 }],
    });
  });

  test('a manager has a name', () => {
    assert.throws(() => apply(CONFIG_MAP, '', configMap({})), { code: 400 });
  });
});
