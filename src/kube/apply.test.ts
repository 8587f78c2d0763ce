import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import {
  type Applied,
  type ApplyContext,
  applyConfigMap,
  applyNamespace,
  applyObject,
  applyPod,
  applySecret,
  deleteObject,
} from './apply.ts';
import { VirtualClock } from './clock.ts';
import { seconds } from './duration.ts';
import { KubeError } from './error.ts';
import { recordingEvents } from './events.ts';
import { MemoryKube } from './memory.ts';
import type { Kube } from './port.ts';
import {
  CONFIG_MAPS,
  type KubeObject,
  keyOf,
  type ObjectKey,
  PODS,
  type Resource,
  resource,
  SECRETS,
} from './resource.ts';
import { syncConfigMap, syncSecret } from './sync-copy.ts';

const base64 = (text: string) => Buffer.from(text).toString('base64');
const encoded = (data: Record<string, string>) =>
  Object.fromEntries(Object.entries(data).map(([key, value]) => [key, base64(value)]));

/** An API that writes down which calls it gets and can be told to fail. */
class RecordedKube extends MemoryKube {
  readonly calls: string[] = [];
  readonly failures = new Map<string, Error[]>();

  override get<T extends KubeObject>(resource: Resource<T>, key: ObjectKey): Promise<T> {
    return this.#called('get', () => super.get(resource, key));
  }
  override create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    return this.#called('create', () => super.create(resource, object));
  }
  override update<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    return this.#called('update', () => super.update(resource, object));
  }
  override delete(...args: Parameters<Kube['delete']>): Promise<void> {
    return this.#called('delete', () => super.delete(...args));
  }

  async #called<R>(verb: string, work: () => Promise<R>): Promise<R> {
    this.calls.push(verb);
    const failure = this.failures.get(verb)?.shift();
    if (failure !== undefined) throw failure;
    return work();
  }
}

async function world(...objects: [resource: Resource, object: KubeObject][]) {
  const kube = new RecordedKube();
  for (const [kind, object] of objects) await kube.create(kind, object);
  kube.calls.length = 0;
  const events = recordingEvents();
  const context: ApplyContext = { kube, events };
  const lines = () => events.events.map(({ type, reason, message }) => `${type} ${reason} ${message}`);
  return { kube, context, lines };
}

const INJECT_TRUSTED = { 'config.openshift.io/inject-trusted-cabundle': 'true' };
const INJECT_SERVICE = { 'service.beta.openshift.io/inject-cabundle': 'true' };

describe('applyConfigMap (spec 30, 6.2)', () => {
  const configMap = (
    rest: Partial<ConfigMap> & { labels?: Record<string, string>; annotations?: Record<string, string> } = {},
  ): ConfigMap => {
    const { labels, annotations, ...fields } = rest;
    return {
      metadata: {
        namespace: 'one-ns',
        name: 'foo',
        ...(labels ? { labels } : {}),
        ...(annotations ? { annotations } : {}),
      },
      ...fields,
    };
  };
  const R = 'ConfigMap/foo -n one-ns';
  const updated = (details: string) => `Normal ConfigMapUpdated Updated ${R}:\n${details}`;
  interface Case {
    readonly rule: string;
    readonly existing?: ConfigMap;
    readonly required: ConfigMap;
    readonly action: 'none' | 'create' | 'update';
    readonly object?: ConfigMap;
    readonly event?: string;
  }
  const cases: Case[] = [
    {
      rule: 'create',
      required: configMap(),
      action: 'create',
      object: configMap(),
      event: `Normal ConfigMapCreated Created ${R} because it was missing`,
    },
    {
      rule: 'create without removals',
      required: configMap({ labels: { 'a-': '', b: '1' } }),
      action: 'create',
      object: configMap({ labels: { b: '1' } }),
    },
    {
      rule: 'an injected CA bundle is no difference',
      existing: configMap({ labels: INJECT_TRUSTED, data: { 'ca-bundle.crt': 'value' } }),
      required: configMap({ labels: INJECT_TRUSTED }),
      action: 'none',
    },
    {
      rule: 'an injected CA bundle survives another change',
      existing: configMap({ labels: INJECT_TRUSTED, data: { 'ca-bundle.crt': 'value', x: '1' } }),
      required: configMap({ labels: INJECT_TRUSTED, data: { x: '2' } }),
      action: 'update',
      object: configMap({ labels: INJECT_TRUSTED, data: { x: '2', 'ca-bundle.crt': 'value' } }),
      event: updated('cause by changes in data.x'),
    },
    {
      rule: 'a required CA bundle wins over an injected one',
      existing: configMap({ labels: INJECT_TRUSTED, data: { 'ca-bundle.crt': 'value' } }),
      required: configMap({ labels: INJECT_TRUSTED, data: { 'ca-bundle.crt': 'different' } }),
      action: 'update',
      object: configMap({ labels: INJECT_TRUSTED, data: { 'ca-bundle.crt': 'different' } }),
      event: updated('cause by changes in data.ca-bundle.crt'),
    },
    {
      rule: 'an injected service CA survives, too (T18)',
      existing: configMap({ annotations: INJECT_SERVICE, data: { 'service-ca.crt': 'value', x: '1' } }),
      required: configMap({ annotations: INJECT_SERVICE, data: { x: '2' } }),
      action: 'update',
      object: configMap({ annotations: INJECT_SERVICE, data: { x: '2', 'service-ca.crt': 'value' } }),
      event: updated('cause by changes in data.x'),
    },
    {
      rule: 'a CA bundle that nobody asked for goes',
      existing: configMap({ data: { 'ca-bundle.crt': 'value' } }),
      required: configMap(),
      action: 'update',
      object: configMap(),
      event: updated('cause by changes in data.ca-bundle.crt'),
    },
    {
      rule: 'a missing label',
      existing: configMap({ labels: { extra: 'leave-alone' } }),
      required: configMap({ labels: { new: 'merge' } }),
      action: 'update',
      object: configMap({ labels: { extra: 'leave-alone', new: 'merge' } }),
      event: updated(''),
    },
    {
      rule: 'binary data',
      existing: configMap({ labels: { extra: 'leave-alone' }, data: { configmap: 'value' } }),
      required: configMap({ data: { configmap: 'value' }, binaryData: { binconfigmap: 'value' } }),
      action: 'update',
      object: configMap({
        labels: { extra: 'leave-alone' },
        data: { configmap: 'value' },
        binaryData: { binconfigmap: 'value' },
      }),
      event: updated('cause by changes in binaryData.binconfigmap'),
    },
    {
      rule: 'all changed keys, sorted',
      existing: configMap({ data: { same: '1', gone: '1', other: '1' }, binaryData: { z: 'AA==' } }),
      required: configMap({ data: { same: '1', other: '2', fresh: '1' } }),
      action: 'update',
      object: configMap({ data: { same: '1', other: '2', fresh: '1' } }),
      event: updated('cause by changes in binaryData.z,data.fresh,data.gone,data.other'),
    },
    {
      rule: 'absent and empty data are the same',
      existing: configMap({ data: {} }),
      required: configMap({ binaryData: {} }),
      action: 'none',
    },
  ];
  for (const { rule, existing, required, action, object, event } of cases) {
    it(rule, async () => {
      const { kube, context, lines } = await world(
        ...(existing ? [[CONFIG_MAPS, existing] as [Resource, KubeObject]] : []),
      );
      const applied = await applyConfigMap(context, required);
      assert.deepEqual(kube.calls, action === 'none' ? ['get'] : ['get', action]);
      assert.equal(applied.changed, action !== 'none');
      if (object !== undefined) assert.deepEqual(plain(await kube.get(CONFIG_MAPS, keyOf(object))), object);
      if (event !== undefined) assert.deepEqual(lines(), [event]);
      if (action === 'none') assert.deepEqual(lines(), []);
      kube.calls.length = 0;
      assert.equal((await applyConfigMap(context, required)).changed, false, 'a second pass writes nothing');
      assert.deepEqual(kube.calls, ['get']);
    });
  }

  it('failures are events and errors', async () => {
    const { kube, context, lines } = await world();
    kube.failures.set('create', [new KubeError(403, 'Forbidden', 'no')]);
    await assert.rejects(applyConfigMap(context, configMap()), { code: 403 });
    await kube.create(CONFIG_MAPS, configMap());
    kube.failures.set('update', [new KubeError(409, 'Conflict', 'changed')]);
    await assert.rejects(applyConfigMap(context, configMap({ data: { a: '1' } })), { reason: 'Conflict' });
    kube.failures.set('get', [new KubeError(500, 'InternalError', 'broken')]);
    await assert.rejects(applyConfigMap(context, configMap()), { code: 500 });
    assert.deepEqual(lines(), [
      `Warning ConfigMapCreateFailed Failed to create ${R}: no`,
      `Warning ConfigMapUpdateFailed Failed to update ${R}: changed`,
    ]);
  });

  it('when somebody else creates it first, goes on with theirs (T23)', async () => {
    const { kube, context, lines } = await world([CONFIG_MAPS, configMap({ labels: { theirs: '1' } })]);
    kube.failures.set('get', [new KubeError(404, 'NotFound', 'stale')]);
    const { object } = await applyConfigMap(context, configMap({ data: { a: '1' } }));
    assert.deepEqual(plain(object), configMap({ labels: { theirs: '1' }, data: { a: '1' } }));
    assert.deepEqual(kube.calls, ['get', 'create', 'get', 'update']);
    assert.equal(lines().length, 1);
  });
});

describe('applySecret (spec 30, 6.3)', () => {
  const secret = (type: string | undefined, data?: Record<string, string>, rest: Partial<Secret> = {}): Secret => ({
    metadata: { namespace: 'default', name: 'test' },
    ...(type === undefined ? {} : { type }),
    ...(data === undefined ? {} : { data: encoded(data) }),
    ...rest,
  });
  const apply = async (existing: Secret | undefined, required: Secret, options = {}) => {
    const made = await world(...(existing ? [[SECRETS, existing] as [Resource, KubeObject]] : []));
    const applied = await applySecret(made.context, required, options).catch((error: unknown) => error as Error);
    const calls = [...made.kube.calls];
    const stored = plain(await made.kube.get(SECRETS, keyOf(required)).catch(() => ({})));
    return { ...made, applied, calls, stored };
  };
  const TOKEN = 'kubernetes.io/service-account-token';
  const TLS = 'kubernetes.io/tls';

  it('creates, with a type in any case', async () => {
    const { calls, stored } = await apply(undefined, secret(undefined, { a: '1' }));
    assert.deepEqual(calls, ['get', 'create']);
    assert.deepEqual(stored, secret('Opaque', { a: '1' }));
    assert.deepEqual((await apply(undefined, secret(TLS))).calls, ['get', 'create']);
  });

  it('leaves alone what is right', async () => {
    for (const [existing, required] of [
      [secret('Opaque', { a: '1' }), secret(undefined, { a: '1' })],
      [secret('Opaque', { a: '1' }), secret('Opaque', undefined, { stringData: { a: '1' } })],
      [secret(TOKEN, { 'tls.key': 'aaa' }), secret(TOKEN)],
    ] as const) {
      const { calls, applied } = await apply(existing, required);
      assert.deepEqual(calls, ['get']);
      assert.equal((applied as Applied<Secret>).changed, false);
    }
  });

  it('replaces data as a whole, overlays that of tokens', async () => {
    assert.deepEqual(
      (await apply(secret('Opaque', { a: '1', b: '1' }), secret('Opaque', { a: '2' }))).stored,
      secret('Opaque', { a: '2' }),
    );
    const { stored } = await apply(secret(TOKEN, { token: 't' }), secret(TOKEN, { extra: 'x' }));
    assert.deepEqual(stored, secret(TOKEN, { token: 't', extra: 'x' }));
  });

  it('folds stringData and refuses a contradiction', async () => {
    const { applied, calls } = await apply(undefined, secret('Opaque', { a: '1' }, { stringData: { a: '2' } }));
    assert.equal((applied as Error).message, 'Secret.stringData["a"] conflicts with Secret.data["a"]');
    assert.deepEqual(calls, ['get']);
    const { stored } = await apply(undefined, secret('Opaque', { a: '1' }, { stringData: { a: '1', b: 'ü' } }));
    assert.deepEqual(stored, secret('Opaque', { a: '1', b: 'ü' }));
  });

  it('another type is another object: exactly the one that was read is deleted', async () => {
    const existing = secret('SecretTypeTLS', { 'tls.crt': 'c', 'tls.key': 'k' });
    const { calls, stored, lines } = await apply(existing, secret(TLS, { 'tls.crt': 'c2', 'tls.key': 'k2' }));
    assert.deepEqual(calls, ['get', 'delete', 'create']);
    assert.deepEqual(stored, secret(TLS, { 'tls.crt': 'c2', 'tls.key': 'k2' }));
    assert.deepEqual(lines(), [
      'Normal SecretDeleted Deleted Secret/test -n default',
      'Normal SecretCreated Created Secret/test -n default because it was missing',
    ]);
  });

  it('deletes when an update is refused as immutable, but only if allowed to', async () => {
    const immutable = () =>
      new KubeError(422, 'Invalid', 'data: Forbidden: field is immutable when `immutable` is set');
    for (const updateOnly of [false, true]) {
      const { kube, context } = await world([SECRETS, secret('Opaque', { a: '1' })]);
      kube.failures.set('update', [immutable()]);
      const applying = applySecret(context, secret('Opaque', { a: '2' }), { updateOnly });
      if (updateOnly) await assert.rejects(applying, { code: 422 });
      else await applying;
      assert.deepEqual(kube.calls, updateOnly ? ['get', 'update'] : ['get', 'update', 'delete', 'create']);
    }
    const { applied, calls } = await apply(secret('Opaque', { a: '1' }), secret(TLS, { a: '1' }), { updateOnly: true });
    assert.deepEqual([(applied as KubeError).code, calls], [422, ['get', 'update']]);
  });

  it('between delete and create, does not give up at the first fault (T24)', async () => {
    const clock = new VirtualClock('2024-01-01T00:00:00Z');
    const { kube, context } = await world([SECRETS, secret('SecretTypeTLS', { k: 'only copy' })]);
    kube.failures.set('create', [
      new KubeError(500, 'InternalError', '1'),
      new KubeError(503, 'ServiceUnavailable', '2'),
    ]);
    const applying = applySecret({ ...context, clock }, secret(TLS, { k: 'only copy' }));
    await clock.advance(seconds(0));
    await clock.advance(seconds(10));
    await applying;
    assert.deepEqual(kube.calls, ['get', 'delete', 'create', 'create', 'create']);
  });

  it('a failed delete leaves everything as it was', async () => {
    const { kube, context, lines } = await world([SECRETS, secret('SecretTypeTLS', { k: '1' })]);
    kube.failures.set('delete', [new KubeError(409, 'Conflict', 'changed')]);
    await assert.rejects(applySecret(context, secret(TLS, { k: '1' })), { reason: 'Conflict' });
    assert.deepEqual(kube.calls, ['get', 'delete']);
    assert.deepEqual(lines(), ['Warning SecretDeleteFailed Failed to delete Secret/test -n default: changed']);
  });
});

describe('other kinds', () => {
  it('pods: metadata only (spec 30, 6.4)', async () => {
    const pod = (image: string, labels = {}): Pod => ({
      metadata: { namespace: 'ns', name: 'p', labels },
      spec: { containers: [{ name: 'c', image }] },
    });
    const { kube, context } = await world([PODS, pod('old')]);
    assert.equal((await applyPod(context, pod('new'))).changed, false);
    const { object } = await applyPod(context, pod('new', { app: 'x' }));
    assert.deepEqual(plain(object), pod('old', { app: 'x' }));
    assert.deepEqual(kube.calls, ['get', 'get', 'update']);
  });

  it('namespaces are named without a namespace', async () => {
    const { context, lines } = await world();
    await applyNamespace(context, { metadata: { name: 'n' } });
    assert.deepEqual(lines(), ['Normal NamespaceCreated Created Namespace/n because it was missing']);
  });

  it('anything else: laid over what is stored, without its status', async () => {
    interface Pool extends KubeObject {
      spec: Record<string, unknown>;
      status?: object;
    }
    const pools = resource<Pool>(
      'machineconfiguration.openshift.io/v1',
      'MachineConfigPool',
      'machineconfigpools',
      false,
    );
    const stored: Pool = {
      metadata: { name: 'worker' },
      spec: { paused: false, list: [1, 2], defaulted: { x: 1 } },
      status: { n: 1 },
    };
    const { kube, context, lines } = await world([pools, stored]);
    const same: Pool = { metadata: { name: 'worker' }, spec: { list: [1, 2], defaulted: {} }, status: { n: 9 } };
    assert.equal((await applyObject(context, pools, same)).changed, false);
    const { object } = await applyObject(context, pools, { ...same, spec: { list: [2], defaulted: { y: 2 } } });
    assert.deepEqual(plain(object), { ...stored, spec: { paused: false, list: [2], defaulted: { x: 1, y: 2 } } });
    assert.deepEqual(lines(), [
      'Normal MachineConfigPoolUpdated Updated MachineConfigPool.machineconfiguration.openshift.io/worker because it changed',
    ]);
    assert.equal(await deleteObject(context, pools, { name: 'worker' }), true);
    assert.equal(await deleteObject(context, pools, { name: 'worker' }), false);
    kube.failures.set('delete', [new KubeError(403, 'Forbidden', 'no')]);
    await assert.rejects(deleteObject(context, pools, { name: 'worker' }), { code: 403 });
    assert.equal(lines().length, 3);
  });
});

describe('copies (spec 30, 6.5)', () => {
  const source = { namespace: 'source-ns', name: 'source' };
  const target = { namespace: 'target-ns', name: 'target' };
  const owner = { apiVersion: 'v1', kind: 'Pod', name: 'p', uid: 'u' };

  it('of a Secret: what it says, under another name', async () => {
    const metadata = { ...source, labels: { l: '1' }, annotations: { a: '1' }, ownerReferences: [owner] };
    const { kube, context } = await world([
      SECRETS,
      { metadata, type: 'Opaque', data: encoded({ foo: 'bar' }) } as Secret,
    ]);
    assert.equal((await syncSecret(context, source, target)).changed, true);
    assert.deepEqual(plain(await kube.get(SECRETS, target)), {
      metadata: { ...target, labels: { l: '1' }, annotations: { a: '1' } },
      type: 'Opaque',
      data: encoded({ foo: 'bar' }),
    });
    assert.equal((await syncSecret(context, source, target)).changed, false);
    const { object } = await syncSecret(context, source, target, { ownerReferences: [{ ...owner, name: 'q' }] });
    assert.deepEqual(object?.metadata?.ownerReferences, [{ ...owner, name: 'q' }]);
  });

  it('go with their source', async () => {
    const { context, lines } = await world(
      [SECRETS, { metadata: target, type: 'Opaque' } as Secret],
      [CONFIG_MAPS, { metadata: target }],
    );
    assert.deepEqual(await syncSecret(context, source, target), { object: undefined, changed: true });
    assert.deepEqual(await syncSecret(context, source, target), { object: undefined, changed: false });
    assert.deepEqual(await syncConfigMap(context, source, target), { object: undefined, changed: true });
    assert.deepEqual(await syncConfigMap(context, source, target), { object: undefined, changed: false });
    assert.deepEqual(lines(), [
      'Normal TargetSecretDeleted Deleted target secret target-ns/target because source config does not exist',
      'Normal TargetConfigDeleted Deleted target configmap target-ns/target because source config does not exist',
    ]);
  });

  it('may be of some keys only; none of them counts as no source', async () => {
    const data = { foo: 'bar', baz: 'bax' };
    const { kube, context } = await world(
      [SECRETS, { metadata: source, type: 'Opaque', data: encoded(data) } as Secret],
      [CONFIG_MAPS, { metadata: source, data, binaryData: { bin: 'AA==' } } as ConfigMap],
    );
    assert.deepEqual(await syncSecret(context, source, target, { keys: ['lol'] }), {
      object: undefined,
      changed: false,
    });
    await syncSecret(context, source, target, { keys: ['foo', 'lol'] });
    assert.deepEqual((await kube.get(SECRETS, target)).data, encoded({ foo: 'bar' }));
    assert.deepEqual(await syncSecret(context, source, target, { keys: ['lol'] }), {
      object: undefined,
      changed: true,
    });
    const { object } = await syncConfigMap(context, source, target, { keys: ['bin', 'baz'] });
    assert.deepEqual([object?.data, object?.binaryData], [{ baz: 'bax' }, { bin: 'AA==' }]);
    assert.equal((await syncConfigMap(context, source, target, { keys: ['x'] })).changed, true);
  });

  it('of a token stay while the source waits for its next one (6.5.2, 6.5.3)', async () => {
    const waiting: Secret = {
      metadata: source,
      type: 'kubernetes.io/service-account-token',
      data: encoded({ 'ca.crt': 'ca' }),
    };
    const copy: Secret = { metadata: target, data: encoded({ token: 'the one before' }) };
    const { kube, context } = await world([SECRETS, waiting], [SECRETS, copy]);
    await assert.rejects(syncSecret(context, source, target, { keys: ['token'] }), {
      message: "secret source-ns/source doesn't have a token yet",
    });
    assert.deepEqual((await kube.get(SECRETS, target)).data, copy.data);
  });

  it('of a token are ordinary Secrets, once there is a token', async () => {
    const annotations = {
      'kubernetes.io/service-account.name': 'foo',
      'kubernetes.io/service-account.uid': 'bar',
      own: '1',
    };
    const token: Secret = { metadata: { ...source, annotations }, type: 'kubernetes.io/service-account-token' };
    const { kube, context } = await world([SECRETS, token]);
    await assert.rejects(syncSecret(context, source, target), {
      message: "secret source-ns/source doesn't have a token yet",
    });
    await kube.update(SECRETS, { ...token, data: encoded({ token: 'top-secret' }) });
    await syncSecret(context, source, target);
    assert.deepEqual(plain(await kube.get(SECRETS, target)), {
      metadata: { ...target, annotations: { own: '1' } },
      type: 'Opaque',
      data: encoded({ token: 'top-secret' }),
    });
  });
});

/** An object without what only the API adds. */
function plain<T extends KubeObject>(object: T): T {
  const { apiVersion: _version, kind: _kind, metadata = {}, ...rest } = object;
  const { uid: _uid, resourceVersion: _resourceVersion, ...own } = metadata;
  return { metadata: own, ...rest } as unknown as T;
}
