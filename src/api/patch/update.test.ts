import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { ManagedFieldsEntry } from 'kubernetes-types/meta/v1.d.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { builtinSchema } from '../schema/builtin.ts';
import type { Schema } from '../schema/schema.ts';
import { MAX_UPDATE_MANAGERS } from './managers.ts';
import { trackUpdate, type UpdateRequest } from './update.ts';

type Anything = KubeObject & Record<string, unknown>;

const DEPLOYMENT = builtinSchema('apps/v1', 'Deployment') as Schema;
const MINUTE_MS = 60_000;
const START = new Date('2026-11-15T12:00:00Z').getTime();

function track(manager: string, updated: Anything, live?: KubeObject, options: Partial<UpdateRequest> = {}): Anything {
  const request = { schema: DEPLOYMENT, live, updated, apiVersion: 'apps/v1', manager, now: new Date(START) };
  return trackUpdate({ ...request, ...options }) as Anything;
}

const deployment = (spec: object, status?: object): Anything => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'web', uid: '1', generation: 1, resourceVersion: '7' },
  spec,
  ...(status === undefined ? {} : { status }),
});

/** What a client sends back that read the object and changed the spec. */
function withSpec(object: Anything, spec: object): Anything {
  return { ...object, spec };
}

const entry = (object: KubeObject, index = 0): ManagedFieldsEntry | undefined =>
  object.metadata?.managedFields?.[index];

describe('tracking of updates', () => {
  test('the creator owns everything but what the server writes', () => {
    const created = track(
      'kubectl-create',
      deployment({ replicas: 1, template: { spec: { containers: [{ name: 'c', image: 'i' }] } } }),
    );
    assert.deepEqual(created.metadata?.managedFields, [
      {
        manager: 'kubectl-create',
        operation: 'Update',
        apiVersion: 'apps/v1',
        time: '2026-11-15T12:00:00Z',
        fieldsType: 'FieldsV1',
        fieldsV1: {
          'f:spec': {
            'f:replicas': {},
            'f:template': {
              'f:spec': { 'f:containers': { '.': {}, 'k:{"name":"c"}': { '.': {}, 'f:image': {}, 'f:name': {} } } },
            },
          },
        },
      },
    ]);
  });

  test('whoever changes a field takes it from its owner', () => {
    const created = track('a', deployment({ replicas: 1, paused: true }));
    const updated = track('b', withSpec(created, { replicas: 2, paused: true }), created);
    assert.deepEqual(entry(updated, 0)?.fieldsV1, { 'f:spec': { 'f:paused': {} } });
    assert.deepEqual(entry(updated, 1)?.fieldsV1, { 'f:spec': { 'f:replicas': {} } });
  });

  test("a field that is removed is nobody's, and an entry without fields goes", () => {
    const created = track('a', deployment({ replicas: 1, paused: true }));
    const updated = track('b', withSpec(created, { replicas: 1 }), created);
    assert.deepEqual(entry(updated)?.fieldsV1, { 'f:spec': { 'f:replicas': {} } });
    assert.equal(updated.metadata?.managedFields?.length, 1);
  });

  test('an update that changes nothing keeps the entries and their times', () => {
    const created = track('a', deployment({ replicas: 1 }));
    const again = track('b', created, created, { now: new Date(START + MINUTE_MS) });
    assert.deepEqual(again, created);
    assert.equal(again.metadata?.managedFields, created.metadata?.managedFields);
  });

  test('metadata of the server alone is no change by anybody', () => {
    const created = track('a', deployment({ replicas: 1 }));
    const bumped = { ...created, metadata: { ...created.metadata, resourceVersion: '8', generation: 2 } };
    assert.equal(track('b', bumped, created).metadata?.managedFields?.length, 1);
  });

  test('a status writer gets an entry of its own', () => {
    const created = track('a', deployment({ replicas: 1 }));
    const written = track('controller', { ...created, status: { replicas: 1 } }, created, {
      subresource: 'status',
      resetFields: [['spec']],
    });
    assert.deepEqual(entry(written, 1), {
      manager: 'controller',
      operation: 'Update',
      apiVersion: 'apps/v1',
      time: '2026-11-15T12:00:00Z',
      fieldsType: 'FieldsV1',
      fieldsV1: { 'f:status': { 'f:replicas': {} } },
      subresource: 'status',
    });
  });

  test('clients that do not know managedFields do not lose them', () => {
    const created = track('a', deployment({ replicas: 1 }));
    const updated = track('b', deployment({ replicas: 1 }), created);
    assert.deepEqual(updated.metadata?.managedFields, created.metadata?.managedFields);
    const broken = {
      ...created,
      metadata: { ...created.metadata, managedFields: [{ manager: 'x' }, { manager: 'y' }] },
    };
    assert.deepEqual(track('b', broken, created).metadata?.managedFields, created.metadata?.managedFields);
  });

  test('an empty list, or one empty entry, starts afresh', () => {
    const created = track('a', deployment({ replicas: 1 }));
    for (const managedFields of [[], [{}]]) {
      const reset = track('b', { ...created, metadata: { ...created.metadata, managedFields } }, created);
      assert.equal(reset.metadata?.managedFields, undefined);
      assert.equal(track('c', withSpec(reset, { replicas: 2 }), reset).metadata?.managedFields, undefined);
    }
  });

  test('entries given by a client are taken, but not through a subresource', () => {
    const created = track('a', deployment({ replicas: 1 }));
    const own = [
      {
        manager: 'z',
        operation: 'Update',
        apiVersion: 'apps/v1',
        fieldsType: 'FieldsV1',
        fieldsV1: { 'f:spec': { 'f:replicas': {} } },
      },
    ];
    const given = { ...created, metadata: { ...created.metadata, managedFields: own } };
    assert.equal(entry(track('b', given, created))?.manager, 'z');
    assert.equal(entry(track('b', given, created, { subresource: 'status' }))?.manager, 'a');
  });

  test('past ten updaters the oldest are merged into one', () => {
    let object = track('m-00', deployment({ replicas: 0 }));
    for (let index = 1; index <= 14; index++) {
      const metadata = { ...object.metadata, annotations: { ...object.metadata?.annotations, [`a${index}`]: 'x' } };
      const now = new Date(START + index * MINUTE_MS);
      object = track(`m-${String(index).padStart(2, '0')}`, { ...object, metadata }, object, { now });
    }
    const managers = object.metadata?.managedFields?.map(({ manager }) => manager);
    assert.equal(managers?.length, MAX_UPDATE_MANAGERS);
    assert.equal(managers?.[0], 'ancient-changes');
    assert.equal(managers?.at(-1), 'm-14');
    assert.match(JSON.stringify(entry(object)?.fieldsV1), /"f:replicas"/);
  });

  test('a list with an element twice is tracked as a whole', () => {
    const pods = builtinSchema('v1', 'Pod') as Schema;
    const pod = (env: object[]): Anything => ({ metadata: { name: 'p' }, spec: { containers: [{ name: 'c', env }] } });
    const created = track(
      'a',
      pod([
        { name: 'X', value: '1' },
        { name: 'X', value: '2' },
      ]),
      undefined,
      { schema: pods },
    );
    const updated = track('b', { ...pod([{ name: 'X', value: '3' }]), metadata: { ...created.metadata } }, created, {
      schema: pods,
    });
    assert.match(
      JSON.stringify(entry(updated, 1)?.fieldsV1),
      /"k:\{\\"name\\":\\"X\\"\}":\{".":\{\},"f:name":\{\},"f:value":\{\}\}/,
    );
  });
});
