/**
 * What our controllers rely on, asked of a real API over HTTPS. The same tests run against the embedded API and, with
 * ROTUNDA_TEST_KUBECONFIG, against any cluster.
 */
import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import type { SelfSubjectAccessReview } from 'kubernetes-types/authorization/v1.d.ts';
import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { liveObjects } from '../../src/certrotation/ensure.ts';
import { ObjectLocks } from '../../src/certrotation/locks.ts';
import { RECREATED, SET_ASIDE_TYPE } from '../../src/certrotation/recreate.ts';
import { ensureSigner } from '../../src/certrotation/signer.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { days } from '../../src/kube/duration.ts';
import { recordingEvents } from '../../src/kube/events.ts';
import { Informer } from '../../src/kube/informer.ts';
import { listAll } from '../../src/kube/list.ts';
import type { WatchEvent } from '../../src/kube/port.ts';
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  type KubeObject,
  LEASES,
  NAMESPACES,
  NODES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  type Resource,
  resource,
  SECRETS,
} from '../../src/kube/resource.ts';
import { systemKeys } from '../../src/pki/keys.ts';
import { eventually } from '../tools/eventually.ts';
import { failure, type TestCluster, testCluster } from './cluster.ts';

let cluster: TestCluster;
let ns: string;
before(async () => {
  cluster = await testCluster();
  ns = await cluster.namespace();
});
after(() => cluster.close());

test('a Secret of the wrong type is made anew with all that it has, also after a stop in the middle (spec 10, 8.4)', async () => {
  const { kube } = cluster;
  const config = { namespace: ns, name: 'wrong-type', validityMs: days(30), refreshMs: days(15) };
  const events = recordingEvents();
  const parts = { clock: systemClock, keys: systemKeys, events, locks: new ObjectLocks() };
  const rotation = { ...parts, kube, objects: liveObjects(kube) };
  const ensured = await ensureSigner({ ...config, name: 'right-type', keyAlgorithm: 'P-256' }, rotation);
  assert.ok(ensured.outcome === 'ready');
  const { metadata, data = {} } = await kube.get(SECRETS, { namespace: ns, name: 'right-type' });
  const owner = await kube.create(CONFIG_MAPS, configMap('owner-of-wrong-type'));
  const ownerReferences = [
    { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner-of-wrong-type', uid: owner.metadata?.uid ?? '' },
  ];
  const { annotations = {}, labels = {} } = metadata ?? {};
  const before = await kube.create(SECRETS, {
    metadata: { namespace: ns, name: 'wrong-type', annotations: { ...annotations, a: '1' }, labels, ownerReferences },
    type: 'SecretTypeTLS',
    data: { ...data, extra: 'eA==' },
  });
  const untilDeleted = new Promise<void>(resolve => {
    const stopping = new Proxy(kube, {
      get: (target, verb: 'create') =>
        verb === 'create' && events.events.some(({ reason }) => reason === 'SecretDeleted')
          ? () => new Promise(() => resolve())
          : (target[verb] as () => unknown).bind(target),
    });
    void ensureSigner(config, { ...parts, kube: stopping, objects: liveObjects(kube) });
  });
  await untilDeleted;
  await assert.rejects(kube.get(SECRETS, config), { code: 404 });
  const result = await ensureSigner(config, rotation);
  assert.ok(result.outcome === 'ready' && !result.regenerated);
  const after = await kube.get(SECRETS, config);
  assert.deepEqual(
    [after.type, after.data, after.metadata?.labels, after.metadata?.ownerReferences, after.metadata?.annotations],
    [
      'kubernetes.io/tls',
      before.data,
      labels,
      ownerReferences,
      { ...annotations, a: '1', [RECREATED]: before.metadata?.uid },
    ],
  );
  const { items } = await kube.list(SECRETS, { namespace: ns });
  assert.deepEqual(
    items.filter(({ type }) => type === SET_ASIDE_TYPE),
    [],
  );
});

describe('objects', () => {
  test('create fills in what the server owns, get gives the same object', async () => {
    const created = await cluster.kube.create(SECRETS, secret('created', { a: 'eA==' }));
    const { uid, resourceVersion, creationTimestamp, namespace } = created.metadata ?? {};
    assert.ok(uid && resourceVersion && creationTimestamp);
    assert.deepEqual([namespace, created.type, created.kind, created.apiVersion], [ns, 'Opaque', 'Secret', 'v1']);
    assert.deepEqual(await cluster.kube.get(SECRETS, { namespace: ns, name: 'created' }), created);
  });

  test('create twice: 409 AlreadyExists, which is no conflict', async () => {
    await cluster.kube.create(SECRETS, secret('twice'));
    const error = await failure(cluster.kube.create(SECRETS, secret('twice')));
    assert.deepEqual(
      [error.code, error.reason, error.message],
      [409, 'AlreadyExists', 'secrets "twice" already exists'],
    );
  });

  test('get of nothing: 404 NotFound', async () => {
    const error = await failure(cluster.kube.get(SECRETS, { namespace: ns, name: 'nothing' }));
    assert.deepEqual([error.code, error.reason, error.message], [404, 'NotFound', 'secrets "nothing" not found']);
  });

  test('update with an old resourceVersion: 409 Conflict, and nothing is written', async () => {
    const first = await cluster.kube.create(CONFIG_MAPS, configMap('conflict', { n: '1' }));
    const second = await cluster.kube.update(CONFIG_MAPS, { ...first, data: { n: '2' } });
    const error = await failure(cluster.kube.update(CONFIG_MAPS, { ...first, data: { n: '3' } }));
    assert.deepEqual([error.code, error.reason], [409, 'Conflict']);
    assert.match(
      error.message,
      /^Operation cannot be fulfilled on configmaps "conflict": the object has been modified; /,
    );
    assert.deepEqual(await cluster.kube.get(CONFIG_MAPS, key('conflict')), second);
  });

  test('an update that changes nothing keeps the resourceVersion', async () => {
    const first = await cluster.kube.create(CONFIG_MAPS, configMap('same', { n: '1' }));
    const again = await cluster.kube.update(CONFIG_MAPS, first);
    assert.equal(again.metadata?.resourceVersion, first.metadata?.resourceVersion);
  });

  test('update of something that is gone: 404, or 409 for another uid', async () => {
    const first = await cluster.kube.create(CONFIG_MAPS, configMap('gone'));
    await cluster.kube.delete(CONFIG_MAPS, key('gone'));
    const missing = await failure(cluster.kube.update(CONFIG_MAPS, first));
    assert.ok(missing.code === 404 || missing.code === 409, String(missing.code));
    await cluster.kube.create(CONFIG_MAPS, configMap('gone'));
    assert.equal((await failure(cluster.kube.update(CONFIG_MAPS, first))).code, 409);
  });

  test('delete with preconditions: the wrong uid or version is refused', async () => {
    const created = await cluster.kube.create(SECRETS, secret('preconditions'));
    const { uid, resourceVersion } = created.metadata ?? {};
    const wrong = cluster.kube.delete(SECRETS, key('preconditions'), { preconditions: { uid: 'other' } });
    assert.equal((await failure(wrong)).code, 409);
    const old = cluster.kube.delete(SECRETS, key('preconditions'), { preconditions: { uid, resourceVersion: '1' } });
    assert.equal((await failure(old)).code, 409);
    await cluster.kube.delete(SECRETS, key('preconditions'), { preconditions: { uid, resourceVersion } });
    assert.equal((await failure(cluster.kube.get(SECRETS, key('preconditions')))).code, 404);
  });

  test('generateName gives a new name each time', async () => {
    const make = () => cluster.kube.create(CONFIG_MAPS, { metadata: { namespace: ns, generateName: 'made-' } });
    const names = new Set([(await make()).metadata?.name, (await make()).metadata?.name]);
    assert.equal(names.size, 2);
    for (const name of names) assert.match(name ?? '', /^made-[a-z0-9]{5}$/);
  });

  test('dry-run answers and writes nothing', async () => {
    const answer = await cluster.kube.create(CONFIG_MAPS, configMap('dry'), { dryRun: true });
    assert.equal(answer.metadata?.name, 'dry');
    assert.equal((await failure(cluster.kube.get(CONFIG_MAPS, key('dry')))).code, 404);
  });

  test('finalizers hold a deletion back until they are gone', async () => {
    const metadata = { namespace: ns, name: 'held', finalizers: ['rotunda.dev/test'] };
    const created = await cluster.kube.create(CONFIG_MAPS, { metadata });
    await cluster.kube.delete(CONFIG_MAPS, key('held'));
    const held = await cluster.kube.get(CONFIG_MAPS, key('held'));
    assert.ok(held.metadata?.deletionTimestamp);
    assert.notEqual(held.metadata.resourceVersion, created.metadata?.resourceVersion);
    await cluster.kube.update(CONFIG_MAPS, { ...held, metadata: { ...held.metadata, finalizers: [] } });
    assert.equal((await failure(cluster.kube.get(CONFIG_MAPS, key('held')))).code, 404);
  });

  test('dependents go with their owner', async () => {
    const owner = await cluster.kube.create(CONFIG_MAPS, configMap('owner'));
    const reference = { apiVersion: 'v1', kind: 'ConfigMap', name: 'owner', uid: owner.metadata?.uid ?? '' };
    await cluster.kube.create(SECRETS, { metadata: { namespace: ns, name: 'owned', ownerReferences: [reference] } });
    await cluster.kube.delete(CONFIG_MAPS, key('owner'), { propagationPolicy: 'Background' });
    await eventually('the dependent to go', () => isGone(SECRETS, 'owned', ns));
  });

  test('bad input: the code and reason of a real API server', async () => {
    const refused = async (object: Secret) => {
      const { code, reason } = await failure(cluster.kube.create(SECRETS, object));
      return [code, reason];
    };
    assert.deepEqual(await refused(secret('Not_A_Name')), [422, 'Invalid']);
    assert.deepEqual(await refused({ ...secret('tls'), type: 'kubernetes.io/tls', data: { 'tls.crt': '' } }), [
      422,
      'Invalid',
    ]);
    assert.deepEqual(await refused(secret('labels', {}, { 'not a label': 'x' })), [422, 'Invalid']);
    assert.deepEqual(await refused({ ...secret('base64'), data: { a: 'not base64!' } }), [400, 'BadRequest']);
    const nowhere = await failure(
      cluster.kube.create(SECRETS, { metadata: { namespace: 'no-such-namespace', name: 'x' } }),
    );
    assert.deepEqual([nowhere.code, nowhere.reason], [404, 'NotFound']);
    const huge = { ...secret('huge'), data: { a: Buffer.alloc(1_100_000).toString('base64') } };
    assert.deepEqual(await refused(huge), [422, 'Invalid']);
  });

  test('strict field validation names the unknown field', async () => {
    const odd = { ...configMap('odd'), dataa: {} } as ConfigMap;
    const error = await failure(cluster.kube.create(CONFIG_MAPS, odd, { fieldValidation: 'Strict' }));
    assert.equal(error.code, 400);
    assert.match(error.message, /strict decoding error: unknown field "dataa"/);
    await cluster.kube.create(CONFIG_MAPS, odd, { fieldValidation: 'Ignore' });
  });

  test('the type of a Secret cannot change, an immutable one not at all', async () => {
    const first = await cluster.kube.create(SECRETS, secret('typed'));
    const typed = await failure(cluster.kube.update(SECRETS, { ...first, type: 'rotunda.dev/other' }));
    assert.equal(typed.code, 422);
    assert.match(typed.message, /field is immutable/);
    const fixed = await cluster.kube.create(SECRETS, { ...secret('fixed', { a: 'eA==' }), immutable: true });
    const changed = await failure(cluster.kube.update(SECRETS, { ...fixed, data: { a: 'eQ==' } }));
    assert.match(changed.message, /field is immutable when `immutable` is set/);
  });
});

describe('lists', () => {
  test('pages are of one moment and lose nothing', async () => {
    const own = await cluster.namespace();
    const names = Array.from({ length: 25 }, (_, index) => `page-${String(index).padStart(2, '0')}`);
    for (const name of names)
      await cluster.kube.create(CONFIG_MAPS, { metadata: { namespace: own, name, labels: { paged: 'yes' } } });
    const selection = { namespace: own, labelSelector: 'paged=yes' };
    const first = await cluster.kube.list(CONFIG_MAPS, { ...selection, limit: 10 });
    assert.equal(first.items.length, 10);
    await cluster.kube.delete(CONFIG_MAPS, { namespace: own, name: 'page-24' });
    const all = await listAll(cluster.kube, CONFIG_MAPS, selection);
    assert.equal(all.items.length, 24);
    const second = await cluster.kube.list(CONFIG_MAPS, {
      ...selection,
      limit: 100,
      continue: first.metadata.continue,
    });
    assert.deepEqual(
      [...first.items, ...second.items].map(({ metadata }) => metadata?.name),
      names,
      'the deleted one is still in its moment',
    );
    assert.equal(second.metadata.resourceVersion, first.metadata.resourceVersion);
  });

  test('label and field selectors', async () => {
    await cluster.kube.create(SECRETS, secret('red', {}, { color: 'red' }));
    await cluster.kube.create(SECRETS, secret('blue', {}, { color: 'blue' }));
    const names = async (labelSelector: string) =>
      (await cluster.kube.list(SECRETS, { namespace: ns, labelSelector })).items.map(({ metadata }) => metadata?.name);
    assert.deepEqual(await names('color=red'), ['red']);
    assert.deepEqual(await names('color in (red, blue),color!=red'), ['blue']);
    assert.deepEqual(await names('color,!shape'), ['blue', 'red']);
    const byName = await cluster.kube.list(SECRETS, { namespace: ns, fieldSelector: 'metadata.name=blue' });
    assert.equal(byName.items.length, 1);
    assert.equal((await failure(cluster.kube.list(SECRETS, { namespace: ns, labelSelector: 'a in (' }))).code, 400);
    assert.equal(
      (await failure(cluster.kube.list(SECRETS, { namespace: ns, fieldSelector: 'spec.nothing=x' }))).code,
      400,
    );
  });
});

describe('watches', () => {
  test('from a version: everything after it, once, in order, resumable at any event', async () => {
    const own = await cluster.namespace();
    const start = await cluster.kube.list(CONFIG_MAPS, { namespace: own, labelSelector: 'w' });
    const labels = { w: 'yes' };
    const created = await cluster.kube.create(CONFIG_MAPS, {
      metadata: { namespace: own, name: 'w', labels },
      data: { n: '1' },
    });
    const updated = await cluster.kube.update(CONFIG_MAPS, { ...created, data: { n: '2' } });
    await cluster.kube.delete(CONFIG_MAPS, { namespace: own, name: 'w' });
    const from = (resourceVersion: string | undefined, count: number) =>
      take(count, { namespace: own, labelSelector: 'w', resourceVersion });
    const events = await from(start.metadata.resourceVersion, 3);
    assert.deepEqual(
      events.map(({ type }) => type),
      ['ADDED', 'MODIFIED', 'DELETED'],
    );
    assert.deepEqual(
      events.slice(0, 2).map(({ object }) => object.metadata?.resourceVersion),
      [created, updated].map(o => o.metadata?.resourceVersion),
    );
    const resumed = await from(updated.metadata?.resourceVersion, 1);
    assert.deepEqual(resumed, events.slice(2));
    assert.ok(
      Number(events[2]?.object.metadata?.resourceVersion) > Number(updated.metadata?.resourceVersion),
      'a deletion has a version of its own',
    );
  });

  test('an object that leaves the selection is seen as deleted, one that enters as added', async () => {
    const own = await cluster.namespace();
    const start = await cluster.kube.list(CONFIG_MAPS, { namespace: own, labelSelector: 'in=yes' });
    const metadata = { namespace: own, name: 'moving' };
    const outside = await cluster.kube.create(CONFIG_MAPS, { metadata });
    const inside = await cluster.kube.update(CONFIG_MAPS, {
      ...outside,
      metadata: { ...outside.metadata, labels: { in: 'yes' } },
    });
    await cluster.kube.update(CONFIG_MAPS, { ...inside, metadata: { ...inside.metadata, labels: {} } });
    const events = await take(2, {
      namespace: own,
      labelSelector: 'in=yes',
      resourceVersion: start.metadata.resourceVersion,
    });
    assert.deepEqual(
      events.map(({ type }) => type),
      ['ADDED', 'DELETED'],
    );
  });

  test('sendInitialEvents: what is there, then a bookmark that says so', async t => {
    const own = await cluster.namespace();
    for (const name of ['a', 'b']) await cluster.kube.create(SECRETS, { metadata: { namespace: own, name } });
    const events: WatchEvent<Secret>[] = [];
    const stop = new AbortController();
    try {
      for await (const event of cluster.kube.watch(SECRETS, {
        namespace: own,
        sendInitialEvents: true,
        allowWatchBookmarks: true,
        signal: stop.signal,
      })) {
        events.push(event);
        if (event.type === 'BOOKMARK') stop.abort();
      }
    } catch (error) {
      // A feature gate of kube-apiserver that some versions ship switched off.
      if (/WatchList feature gate/.test(String(error))) return t.skip('the server does not send initial events');
      throw error;
    }
    assert.deepEqual(
      events.map(({ type }) => type),
      ['ADDED', 'ADDED', 'BOOKMARK'],
    );
    assert.equal(events[2]?.object.metadata?.annotations?.['k8s.io/initial-events-end'], 'true');
  });

  test('an informer ends with what the API has', async () => {
    const own = await cluster.namespace();
    const informer = new Informer(cluster.kube, CONFIG_MAPS, {
      selection: { namespace: own, labelSelector: 'i' },
      selects: ({ metadata }) => metadata?.labels?.i !== undefined,
    }).start();
    try {
      await informer.synced;
      for (let i = 0; i < 20; i++) {
        const metadata = { namespace: own, name: `i-${i % 7}`, labels: { i: 'yes' } };
        await cluster.kube
          .create(CONFIG_MAPS, { metadata, data: { i: String(i) } })
          .catch(() => cluster.kube.delete(CONFIG_MAPS, metadata));
      }
      const { items } = await cluster.kube.list(CONFIG_MAPS, { namespace: own, labelSelector: 'i' });
      const versions = (objects: ConfigMap[]) =>
        objects
          .map(({ metadata }) => `${metadata?.name}@${metadata?.resourceVersion}`)
          .toSorted()
          .join();
      await eventually('the cache to catch up', async () => versions(informer.list()) === versions(items));
    } finally {
      await informer.stop();
    }
  });

  async function take(
    count: number,
    options: Parameters<typeof cluster.kube.watch>[1],
  ): Promise<WatchEvent<ConfigMap>[]> {
    const events: WatchEvent<ConfigMap>[] = [];
    const stop = new AbortController();
    for await (const event of cluster.kube.watch(CONFIG_MAPS, {
      ...options,
      signal: stop.signal,
      timeoutSeconds: 30,
    })) {
      if (event.type !== 'BOOKMARK') events.push(event);
      if (events.length === count) stop.abort();
    }
    return events;
  }
});

describe('patches', () => {
  test('JSON patch, merge patch, strategic merge patch', async () => {
    await cluster.kube.create(CONFIG_MAPS, configMap('patched', { a: '1', b: '2' }));
    const json = await cluster.kube.patch(CONFIG_MAPS, key('patched'), {
      type: 'json',
      body: [
        { op: 'test', path: '/data/a', value: '1' },
        { op: 'replace', path: '/data/a', value: '3' },
      ],
    });
    assert.deepEqual(json.data, { a: '3', b: '2' });
    const failed = cluster.kube.patch(CONFIG_MAPS, key('patched'), {
      type: 'json',
      body: [{ op: 'test', path: '/data/a', value: 'x' }],
    });
    assert.equal((await failure(failed)).code, 422);
    const merged = await cluster.kube.patch(CONFIG_MAPS, key('patched'), {
      type: 'merge',
      body: { data: { a: null, c: '4' } },
    });
    assert.deepEqual(merged.data, { b: '2', c: '4' });
    await cluster.kube.create(PODS, pod('strategic', ['one', 'two']));
    const body = { spec: { containers: [{ name: 'two', image: 'changed' }] } };
    const patched = await cluster.kube.patch(PODS, key('strategic'), { type: 'strategic', body });
    assert.deepEqual(
      patched.spec?.containers.map(({ image }) => image),
      ['image', 'changed'],
      'merged by name',
    );
  });

  test('server-side apply: owners, conflicts, force, and fields that are no longer applied', async () => {
    const apply = (fieldManager: string, data: Record<string, string>, force = false) =>
      cluster.kube.patch(
        CONFIG_MAPS,
        key('applied'),
        {
          type: 'apply',
          body: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied', namespace: ns }, data },
        },
        { fieldManager, force },
      );
    await apply('one', { a: '1', b: '1' });
    await apply('two', { c: '2' });
    const conflict = await failure(apply('two', { a: '2', c: '2' }));
    assert.deepEqual([conflict.code, conflict.reason], [409, 'Conflict']);
    assert.match(conflict.message, /conflict with "one": \.data\.a/);
    assert.equal(conflict.details?.causes?.[0]?.reason, 'FieldManagerConflict');
    assert.deepEqual((await apply('two', { a: '2', c: '2' }, true)).data, { a: '2', b: '1', c: '2' });
    assert.deepEqual((await apply('one', {})).data, { a: '2', c: '2' });
    const again = await apply('two', { a: '2', c: '2' });
    const third = await apply('two', { a: '2', c: '2' });
    assert.equal(third.metadata?.resourceVersion, again.metadata?.resourceVersion, 'applying the same is no write');
  });
});

describe('status and custom resources', () => {
  interface Widget extends KubeObject {
    spec?: { size?: number; color?: string };
    status?: { ready?: boolean };
  }
  const group = 'contract.rotunda.dev';
  const WIDGETS = resource<Widget>(`${group}/v1`, 'Widget', 'widgets');

  before(async () => {
    const spec = {
      type: 'object',
      required: ['size'],
      properties: { size: { type: 'integer', minimum: 1 }, color: { type: 'string', default: 'red' } },
    };
    const status = { type: 'object', properties: { ready: { type: 'boolean' } } };
    const definition: CustomResourceDefinition = {
      metadata: { name: `widgets.${group}` },
      spec: {
        group,
        names: { kind: 'Widget', plural: 'widgets', singular: 'widget', listKind: 'WidgetList' },
        scope: 'Namespaced',
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: { status: {} },
            additionalPrinterColumns: [{ name: 'Size', type: 'integer', jsonPath: '.spec.size' }],
            schema: { openAPIV3Schema: { type: 'object', required: ['spec'], properties: { spec, status } } },
          },
        ],
      },
    };
    await cluster.kube.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: `widgets.${group}` }).catch(() => {});
    await eventually('an older definition to go', () => isGone(CUSTOM_RESOURCE_DEFINITIONS, `widgets.${group}`));
    await cluster.kube.create(CUSTOM_RESOURCE_DEFINITIONS, definition);
    await eventually('the definition to be established', async () => {
      const { status } = await cluster.kube.get(CUSTOM_RESOURCE_DEFINITIONS, { name: `widgets.${group}` });
      return status?.conditions?.some(({ type, status }) => type === 'Established' && status === 'True');
    });
    await eventually('the resource to be served', () =>
      cluster.kube.list(WIDGETS, { namespace: ns }).then(
        () => true,
        () => false,
      ),
    );
  });
  after(() => cluster.kube.delete(CUSTOM_RESOURCE_DEFINITIONS, { name: `widgets.${group}` }));

  test('defaults, pruning and validation follow the schema', async () => {
    const odd = { metadata: { namespace: ns, name: 'w' }, spec: { size: 3, unknown: true } } as Widget;
    const created = await cluster.kube.create(WIDGETS, odd);
    assert.deepEqual(created.spec, { size: 3, color: 'red' });
    const invalid = await failure(
      cluster.kube.create(WIDGETS, { metadata: { namespace: ns, name: 'bad' }, spec: { size: 0 } }),
    );
    assert.deepEqual([invalid.code, invalid.reason], [422, 'Invalid']);
    assert.match(
      invalid.message,
      /^Widget\.contract\.rotunda\.dev "bad" is invalid: spec\.size: Invalid value: 0: spec\.size in body should be greater than or equal to 1$/,
    );
    const missing = await failure(cluster.kube.create(WIDGETS, { metadata: { namespace: ns, name: 'bad' }, spec: {} }));
    assert.match(missing.message, /spec\.size: Required value/);
  });

  test('spec and status are written apart; the generation counts changes of the spec', async () => {
    const created = await cluster.kube.create(WIDGETS, {
      metadata: { namespace: ns, name: 'apart' },
      spec: { size: 1 },
      status: { ready: true },
    });
    assert.deepEqual([created.status, created.metadata?.generation], [undefined, 1]);
    const status = await cluster.kube.updateStatus(WIDGETS, { ...created, spec: { size: 9 }, status: { ready: true } });
    assert.deepEqual([status.spec?.size, status.status, status.metadata?.generation], [1, { ready: true }, 1]);
    const spec = await cluster.kube.update(WIDGETS, { ...status, spec: { size: 2 }, status: {} });
    assert.deepEqual([spec.spec?.size, spec.status, spec.metadata?.generation], [2, { ready: true }, 2]);
  });

  test('nodes and pods have their status apart too', async () => {
    // A real cluster writes to a new Node as well; without a resourceVersion a write is unconditional.
    const name = `node-${ns}`;
    await cluster.kube.create(NODES, { metadata: { name } });
    const ready = { type: 'Ready', status: 'True', reason: 'Test', message: '' };
    const node = await cluster.kube.updateStatus(NODES, {
      metadata: { name },
      spec: { unschedulable: true },
      status: { conditions: [ready] },
    });
    assert.ok(node.status?.conditions?.some(({ reason }) => reason === 'Test'));
    assert.equal(node.spec?.unschedulable, undefined);
    await cluster.kube.delete(NODES, { name });

    const { spec } = await cluster.kube.create(PODS, pod('apart', ['c']));
    assert.ok(spec);
    const shorter = { metadata: { namespace: ns, name: 'apart' }, spec: { ...spec, activeDeadlineSeconds: 5 } };
    const running = await cluster.kube.updateStatus(PODS, { ...shorter, status: { phase: 'Running' } });
    assert.deepEqual([running.status?.phase, running.spec?.activeDeadlineSeconds], ['Running', undefined]);
    const limited = await cluster.kube.update(PODS, { ...shorter, status: { phase: 'Failed' } });
    assert.deepEqual([limited.status?.phase, limited.spec?.activeDeadlineSeconds], ['Running', 5]);
  });
});

describe('the rest of what we use', () => {
  test('leases keep microseconds', async () => {
    const time = '2026-01-01T00:00:00.123456Z';
    const lease = await cluster.kube.create(LEASES, {
      metadata: { namespace: ns, name: 'l' },
      spec: { holderIdentity: 'me', renewTime: time, leaseDurationSeconds: 10 },
    });
    assert.equal(lease.spec?.renewTime, time);
  });

  test('eviction respects a disruption budget', async () => {
    const own = await cluster.namespace();
    const metadata = { namespace: own, name: 'p', labels: { app: 'x' } };
    const { spec } = pod('p', ['c']);
    const created = await cluster.kube.create(PODS, {
      metadata,
      ...(spec && { spec: { ...spec, nodeName: 'nowhere' } }),
    });
    const running = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    await cluster.kube.updateStatus(PODS, { ...created, status: running });
    const selector = { matchLabels: { app: 'x' } };
    await cluster.kube.create(POD_DISRUPTION_BUDGETS, {
      metadata: { namespace: own, name: 'b' },
      spec: { minAvailable: 1, selector },
    });
    await eventually('the budget to count its pod', async () => {
      const budget = await cluster.kube.get(POD_DISRUPTION_BUDGETS, { namespace: own, name: 'b' });
      return budget.status?.expectedPods === 1 && budget.status.currentHealthy === 1;
    });
    const error = await failure(cluster.kube.evict({ namespace: own, name: 'p' }));
    assert.deepEqual([error.code, error.reason], [429, 'TooManyRequests']);
    await cluster.kube.delete(POD_DISRUPTION_BUDGETS, { namespace: own, name: 'b' });
    await cluster.kube.evict({ namespace: own, name: 'p' });
    const { metadata: after } = await cluster.kube.get(PODS, { namespace: own, name: 'p' });
    assert.ok(after?.deletionTimestamp, 'a pod on a node is given time to end');
    await cluster.kube.delete(PODS, { namespace: own, name: 'p' }, { gracePeriodSeconds: 0 });
  });

  test('an access review answers for us', async () => {
    const REVIEWS = resource<SelfSubjectAccessReview>(
      'authorization.k8s.io/v1',
      'SelfSubjectAccessReview',
      'selfsubjectaccessreviews',
      false,
    );
    const attributes = { namespace: ns, verb: 'get', resource: 'secrets' };
    const review = await cluster.kube.create(REVIEWS, { spec: { resourceAttributes: attributes } });
    assert.equal(review.status?.allowed, true);
  });

  test('a namespace that is deleted takes everything with it and accepts nothing new', async () => {
    const own = await cluster.namespace();
    await cluster.kube.create(CONFIG_MAPS, {
      metadata: { namespace: own, name: 'held', finalizers: ['rotunda.dev/test'] },
    });
    await cluster.kube.delete(NAMESPACES, { name: own });
    const refused = await failure(cluster.kube.create(CONFIG_MAPS, { metadata: { namespace: own, name: 'new' } }));
    assert.deepEqual([refused.code, refused.reason], [403, 'Forbidden']);
    assert.match(refused.message, /because it is being terminated/);
    await eventually(
      'its content to be deleted',
      async () =>
        (await cluster.kube.get(CONFIG_MAPS, { namespace: own, name: 'held' })).metadata?.deletionTimestamp !==
        undefined,
    );
    await cluster.kube.patch(
      CONFIG_MAPS,
      { namespace: own, name: 'held' },
      { type: 'merge', body: { metadata: { finalizers: null } } },
    );
    await eventually('the namespace to go', () => isGone(NAMESPACES, own));
  });
});

function key(name: string) {
  return { namespace: ns, name };
}

function secret(name: string, data: Record<string, string> = {}, labels: Record<string, string> = {}): Secret {
  return { metadata: { namespace: ns, name, labels }, data };
}

function configMap(name: string, data: Record<string, string> = {}): ConfigMap {
  return { metadata: { namespace: ns, name }, data };
}

function pod(name: string, containers: string[]): Pod {
  return {
    metadata: { namespace: ns, name },
    spec: { containers: containers.map(container => ({ name: container, image: 'image' })) },
  };
}

async function isGone(kind: Resource, name: string, namespace?: string): Promise<boolean> {
  return cluster.kube.get(kind, namespace === undefined ? { name } : { namespace, name }).then(
    () => false,
    error => (error as { code?: number }).code === 404,
  );
}
