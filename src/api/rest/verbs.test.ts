import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { Deployment } from 'kubernetes-types/apps/v1.d.ts';
import type { ConfigMap, Pod, Secret } from 'kubernetes-types/core/v1.d.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import {
  CONFIG_MAPS,
  DEPLOYMENTS,
  type KubeObject,
  LEASES,
  NAMESPACES,
  PODS,
  type Resource,
  SECRETS,
  SERVICES,
} from '../../kube/resource.ts';
import type { User } from '../auth/user.ts';
import { type Engine, startEngine } from '../engine.ts';

describe('the verbs', () => {
  let engine: Engine;
  let clock: VirtualClock;
  const kube = () => engine.kube;
  const namespace = 'default';

  before(async () => {
    clock = new VirtualClock('2026-01-01T00:00:00Z');
    engine = await startEngine({ clock });
  });
  after(() => engine.close());

  const configMap = (name: string, data: Record<string, string> = {}): ConfigMap => ({
    metadata: { name, namespace },
    data,
  });
  const pod = (name: string, changes: Partial<Pod> = {}): Pod => ({
    metadata: { name, namespace, ...changes.metadata },
    spec: { containers: [{ name: 'c', image: 'i' }], ...changes.spec },
  });

  async function fails(
    promise: Promise<unknown>,
    code: number,
    reason: string,
    message: RegExp | string,
  ): Promise<void> {
    await assert.rejects(promise, (error: unknown) => {
      assert.ok(error instanceof KubeError, String(error));
      assert.deepEqual([error.code, error.reason], [code, reason], error.message);
      if (typeof message === 'string') assert.equal(error.message, message);
      else assert.match(error.message, message);
      return true;
    });
  }

  describe('create', () => {
    it('sets what only the server sets', async () => {
      const created = await kube().create(CONFIG_MAPS, {
        ...configMap('system-fields'),
        metadata: {
          name: 'system-fields',
          namespace,
          uid: 'mine',
          generation: 7,
          deletionTimestamp: '2020-01-01T00:00:00Z',
        },
      });
      const { metadata } = created;
      assert.match(metadata?.uid ?? '', /^[0-9a-f-]{36}$/);
      assert.equal(metadata?.creationTimestamp, '2026-01-01T00:00:00Z');
      assert.equal(metadata?.deletionTimestamp, undefined);
      assert.equal(metadata?.generation, undefined);
      assert.equal(metadata?.managedFields?.[0]?.manager, 'rotunda');
      assert.deepEqual(await kube().get(CONFIG_MAPS, { name: 'system-fields', namespace }), created);
    });

    it('stores without the record of owners what would be too large with it, as the real server does', async () => {
      const prefix = Array.from({ length: 4 }, () => 'a'.repeat(60)).join('.');
      const longLabels = (length: number) =>
        Object.fromEntries(Array.from({ length }, (_, index) => [`${prefix}/l${index}`, 'v']));
      const labels = longLabels(5_000);
      const large = { ...configMap('many-labels'), metadata: { name: 'many-labels', namespace, labels } };
      const created = await kube().create(CONFIG_MAPS, large);
      assert.deepEqual(created.metadata?.labels, labels);
      assert.equal(created.metadata?.managedFields, undefined);
      const name = { name: 'many-labels', namespace };
      const merged = await kube().patch(CONFIG_MAPS, name, { type: 'merge', body: { data: { more: 'x' } } });
      assert.deepEqual([merged.data?.['more'], merged.metadata?.managedFields], ['x', undefined]);
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied-labels', namespace, labels } };
      const applied = kube().patch(CONFIG_MAPS, { ...name, name: 'applied-labels' }, { type: 'apply', body });
      await assert.rejects(applied, { code: 413 });
      const larger = { ...large, metadata: { ...large.metadata, labels: longLabels(9_000) } };
      await assert.rejects(kube().update(CONFIG_MAPS, larger), { code: 413 });
      await kube().delete(CONFIG_MAPS, name);
    });

    it('makes up a name, and another one when it is taken', async () => {
      const first = await kube().create(CONFIG_MAPS, { metadata: { generateName: 'gen-', namespace } });
      const second = await kube().create(CONFIG_MAPS, { metadata: { generateName: 'gen-', namespace } });
      assert.match(first.metadata?.name ?? '', /^gen-[a-z0-9]{5}$/);
      assert.notEqual(first.metadata?.name, second.metadata?.name);
    });

    it('refuses what the real server refuses, in its words', async () => {
      await kube().create(CONFIG_MAPS, configMap('taken'));
      const cases: [Resource, KubeObject, number, string, RegExp | string][] = [
        [CONFIG_MAPS, configMap('taken'), 409, 'AlreadyExists', 'configmaps "taken" already exists'],
        [
          CONFIG_MAPS,
          { metadata: { namespace } },
          422,
          'Invalid',
          /metadata\.name: Required value: name or generateName/,
        ],
        [
          CONFIG_MAPS,
          configMap('A_b'),
          422,
          'Invalid',
          /ConfigMap "A_b" is invalid: metadata\.name: Invalid value: "A_b": a lowercase RFC 1123/,
        ],
        [
          CONFIG_MAPS,
          { metadata: { name: 'x', namespace: 'nowhere' } },
          404,
          'NotFound',
          'namespaces "nowhere" not found',
        ],
        [
          CONFIG_MAPS,
          { metadata: { name: 'x', namespace, resourceVersion: '5' } },
          500,
          '',
          /resourceVersion should not be set/,
        ],
        [
          SECRETS,
          { kind: 'ConfigMap', metadata: { name: 'x', namespace } },
          400,
          'BadRequest',
          /cannot be handled as a Secret/,
        ],
        [
          SECRETS,
          { metadata: { name: 'x', namespace }, data: { a: 5 } } as KubeObject,
          400,
          'BadRequest',
          /cannot unmarshal number/,
        ],
        [
          SECRETS,
          { metadata: { name: 'x', namespace }, type: 'kubernetes.io/tls', data: { 'tls.crt': '' } } as KubeObject,
          422,
          'Invalid',
          'Secret "x" is invalid: data[tls.key]: Required value',
        ],
        [
          NAMESPACES,
          { metadata: { name: 'a.b' } },
          422,
          'Invalid',
          /metadata\.name: Invalid value: "a\.b": a lowercase RFC 1123 label/,
        ],
        [
          PODS,
          pod('x', { spec: { containers: [{ name: 'c', image: 'i' }], priorityClassName: 'none' } }),
          403,
          'Forbidden',
          /no PriorityClass with name none was found/,
        ],
        [
          PODS,
          pod('x', { spec: { containers: [{ name: 'c', image: 'i' }], serviceAccountName: 'no' } }),
          403,
          'Forbidden',
          /serviceaccount "no" not found/,
        ],
      ];
      for (const [resource, object, code, reason, message] of cases) {
        await fails(kube().create(resource, object), code, reason, message);
      }
    });

    it('leaves no trace of a dry run', async () => {
      const { revision } = engine.core.store;
      const shown = await kube().create(CONFIG_MAPS, configMap('dry'), { dryRun: true });
      assert.match(shown.metadata?.uid ?? '', /-/);
      assert.equal(engine.core.store.revision, revision);
      await fails(kube().get(CONFIG_MAPS, { name: 'dry', namespace }), 404, 'NotFound', 'configmaps "dry" not found');
    });

    it('refuses unknown fields only when asked to', async () => {
      const odd = { ...configMap('odd'), nonsense: 1 } as KubeObject;
      await fails(
        kube().create(CONFIG_MAPS, odd as ConfigMap, { fieldValidation: 'Strict' }),
        400,
        'BadRequest',
        'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: unknown field "nonsense"',
      );
      assert.equal('nonsense' in (await kube().create(CONFIG_MAPS, odd as ConfigMap)), false);
    });

    it('gives pods and services what they need', async () => {
      const created = await kube().create(
        PODS,
        pod('furnished', {
          spec: { containers: [{ name: 'c', image: 'i' }], priorityClassName: 'system-node-critical' },
        }),
      );
      assert.equal(created.spec?.serviceAccountName, 'default');
      assert.equal(created.spec?.priority, 2_000_001_000);
      assert.deepEqual(created.status, { phase: 'Pending', qosClass: 'BestEffort' });
      const [one, two] = await Promise.all(
        ['one', 'two'].map(name =>
          kube().create(SERVICES, { metadata: { name, namespace }, spec: { ports: [{ port: 80 }] } }),
        ),
      );
      assert.match(one?.spec?.clusterIP ?? '', /^172\.30\./);
      assert.notEqual(one?.spec?.clusterIP, two?.spec?.clusterIP);
    });
  });

  describe('update', () => {
    it('is refused when the object has changed meanwhile, and is not when no version is named', async () => {
      const first = await kube().create(CONFIG_MAPS, configMap('contended'));
      await kube().update(CONFIG_MAPS, { ...first, data: { a: '1' } });
      await fails(
        kube().update(CONFIG_MAPS, { ...first, data: { a: '2' } }),
        409,
        'Conflict',
        'Operation cannot be fulfilled on configmaps "contended": the object has been modified; please apply your changes to the latest version and try again',
      );
      const { resourceVersion: _, ...metadata } = first.metadata ?? {};
      const third = await kube().update(CONFIG_MAPS, { ...first, metadata, data: { a: '3' } });
      assert.equal(third.data?.['a'], '3');
    });

    it('makes no new version of what is the same', async () => {
      const first = await kube().create(CONFIG_MAPS, configMap('same', { a: '1' }));
      await clock.advance(minutes(1));
      assert.deepEqual(await kube().update(CONFIG_MAPS, first), first);
      assert.deepEqual(
        await kube().patch(CONFIG_MAPS, { name: 'same', namespace }, { type: 'merge', body: { data: { a: '1' } } }),
        first,
      );
    });

    it('needs an object, unless the kind is created by PUT', async () => {
      await fails(kube().update(CONFIG_MAPS, configMap('absent')), 404, 'NotFound', 'configmaps "absent" not found');
      const lease = await kube().update(LEASES, {
        metadata: { name: 'put', namespace },
        spec: { holderIdentity: 'me', leaseDurationSeconds: 1 },
      });
      assert.equal(lease.spec?.holderIdentity, 'me');
      await fails(
        kube().update(LEASES, { metadata: { name: 'put', namespace }, spec: {} }),
        422,
        'Invalid',
        /metadata\.resourceVersion: Invalid value: 0: must be specified for an update/,
      );
    });

    it('keeps spec and status apart', async () => {
      const deployment: Deployment = {
        metadata: { name: 'apart', namespace },
        spec: {
          selector: { matchLabels: { a: 'b' } },
          template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
        },
        status: { replicas: 9 },
      };
      const created = await kube().create(DEPLOYMENTS, deployment);
      assert.equal(created.status?.replicas, undefined);
      assert.equal(created.metadata?.generation, 1);
      const main = await kube().update(DEPLOYMENTS, {
        ...created,
        spec: { ...created.spec!, replicas: 3 },
        status: { replicas: 9 },
      });
      assert.deepEqual([main.spec?.replicas, main.status?.replicas, main.metadata?.generation], [3, undefined, 2]);
      const status = await kube().updateStatus(DEPLOYMENTS, {
        ...main,
        spec: { ...main.spec!, replicas: 7 },
        status: { replicas: 2 },
      });
      assert.deepEqual([status.spec?.replicas, status.status?.replicas, status.metadata?.generation], [3, 2, 2]);
      const annotated = await kube().patch(
        DEPLOYMENTS,
        { name: 'apart', namespace },
        { type: 'merge', body: { metadata: { annotations: { a: 'b' } } } },
      );
      assert.equal(annotated.metadata?.generation, 3);
      const labelled = await kube().patch(
        DEPLOYMENTS,
        { name: 'apart', namespace },
        { type: 'merge', body: { metadata: { labels: { a: 'b' } } } },
      );
      assert.equal(labelled.metadata?.generation, 3);
    });

    it('refuses changes of what cannot change', async () => {
      const secret = await kube().create(SECRETS, {
        metadata: { name: 'fixed', namespace },
        type: 'a/b',
        data: { a: 'YQ==' },
      });
      await fails(
        kube().update(SECRETS, { ...secret, type: 'c/d' }),
        422,
        'Invalid',
        'Secret "fixed" is invalid: type: Invalid value: "c/d": field is immutable',
      );
      const frozen = await kube().update(SECRETS, { ...secret, immutable: true });
      await fails(
        kube().update(SECRETS, { ...frozen, data: { a: 'Yg==' } }),
        422,
        'Invalid',
        'Secret "fixed" is invalid: data: Forbidden: field is immutable when `immutable` is set',
      );
      await fails(kube().update(SECRETS, { ...frozen, immutable: false }), 422, 'Invalid', /immutable: Forbidden/);
      const labelled = await kube().update(SECRETS, {
        ...frozen,
        metadata: { ...frozen.metadata, labels: { a: 'b' } },
      });
      assert.equal(labelled.metadata?.labels?.['a'], 'b');
      const running = await kube().create(PODS, pod('fixed'));
      await fails(
        kube().update(PODS, { ...running, spec: { ...running.spec!, restartPolicy: 'Never' } }),
        422,
        'Invalid',
        /pod updates may not change fields other than/,
      );
      const image = await kube().update(PODS, {
        ...running,
        spec: { ...running.spec!, containers: [{ ...running.spec!.containers[0]!, image: 'j' }] },
      });
      assert.equal(image.spec?.containers[0]?.image, 'j');
      await fails(
        kube().patch(PODS, { name: 'fixed', namespace }, { type: 'merge', body: { metadata: { uid: 'x' } } }),
        422,
        'Invalid',
        /metadata\.uid: Invalid value: "x": field is immutable/,
      );
    });
  });

  describe('patch', () => {
    it('comes in four kinds', async () => {
      const key = { name: 'patched', namespace };
      await kube().create(CONFIG_MAPS, configMap('patched', { a: '1' }));
      await kube().patch(CONFIG_MAPS, key, { type: 'json', body: [{ op: 'add', path: '/data/b', value: '2' }] });
      await kube().patch(CONFIG_MAPS, key, { type: 'merge', body: { data: { a: null, c: '3' } } });
      await kube().patch(CONFIG_MAPS, key, { type: 'strategic', body: { data: { d: '4' } } });
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'patched' }, data: { e: '5' } };
      const applied = await kube().patch(CONFIG_MAPS, key, { type: 'apply', body }, { fieldManager: 'me' });
      assert.deepEqual(applied.data, { b: '2', c: '3', d: '4', e: '5' });
      await fails(
        kube().patch(CONFIG_MAPS, key, { type: 'apply', body: { ...body, data: { b: 'x' } } }, { fieldManager: 'me' }),
        409,
        'Conflict',
        /Apply failed with 1 conflict: conflict with "rotunda"/,
      );
      const forced = await kube().patch(
        CONFIG_MAPS,
        key,
        { type: 'apply', body: { ...body, data: { b: 'x' } } },
        { fieldManager: 'me', force: true },
      );
      assert.deepEqual(forced.data, { b: 'x', c: '3', d: '4' });
    });

    it('creates what does not exist only when it is an apply', async () => {
      const key = { name: 'applied', namespace };
      await fails(
        kube().patch(CONFIG_MAPS, key, { type: 'merge', body: {} }),
        404,
        'NotFound',
        'configmaps "applied" not found',
      );
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' }, data: { a: '1' } };
      const created = await kube().patch(CONFIG_MAPS, key, { type: 'apply', body }, { fieldManager: 'me' });
      assert.equal(created.metadata?.managedFields?.[0]?.operation, 'Apply');
    });

    it('cannot change what an object is', async () => {
      const key = { name: 'fixed', namespace };
      const { metadata } = await kube().create(CONFIG_MAPS, configMap('fixed', { a: '1' }));
      for (const body of [{ kind: 'Secret' }, { apiVersion: 'v2' }, { kind: 5 }]) {
        await fails(
          kube().patch(CONFIG_MAPS, key, { type: 'merge', body }),
          422,
          'Invalid',
          /^ "" is invalid: patch: Inval/,
        );
      }
      const removed = await kube().patch(CONFIG_MAPS, key, { type: 'json', body: [{ op: 'remove', path: '/kind' }] });
      assert.deepEqual([removed.kind, removed.metadata?.resourceVersion], ['ConfigMap', metadata?.resourceVersion]);
      const body = { $patch: 'replace', metadata: { name: 'fixed' }, data: { b: '2' } };
      const replaced = await kube().patch(CONFIG_MAPS, key, { type: 'strategic', body });
      assert.deepEqual([replaced.kind, replaced.apiVersion, replaced.data], ['ConfigMap', 'v1', { b: '2' }]);
    });

    it('creates an applied object whatever version it was made from, and says what is missing in it', async () => {
      const metadata = { name: 'gone', resourceVersion: '5' };
      const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata };
      const options = { fieldManager: 'me' };
      const created = await kube().patch(CONFIG_MAPS, { name: 'gone', namespace }, { type: 'apply', body }, options);
      assert.notEqual(created.metadata?.resourceVersion, '5');
      const unnamed = {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'q' },
        spec: { containers: [{ image: 'i' }] },
      };
      await fails(
        kube().patch(PODS, { name: 'q', namespace }, { type: 'apply', body: unnamed }, options),
        422,
        'Invalid',
        'Pod "q" is invalid: spec.containers[0].name: Required value',
      );
    });

    it('does not show the content of a Secret in an error', async () => {
      await kube().create(SECRETS, {
        metadata: { name: 'quiet', namespace },
        data: { key: Buffer.from('hunter2').toString('base64') },
      });
      const bad = kube().patch(SECRETS, { name: 'quiet', namespace }, { type: 'merge', body: { data: { other: 5 } } });
      await assert.rejects(
        bad,
        (error: KubeError) => error.code === 422 && !error.message.includes(Buffer.from('hunter2').toString('base64')),
      );
    });

    it('changes one object at a time however many come at once', async () => {
      const key = { name: 'counter', namespace };
      await kube().create(CONFIG_MAPS, configMap('counter'));
      const patches = Array.from({ length: 50 }, (_, index) =>
        kube().patch(CONFIG_MAPS, key, { type: 'merge', body: { data: { [`k${index}`]: '1' } } }),
      );
      await Promise.all(patches);
      assert.equal(Object.keys((await kube().get(CONFIG_MAPS, key)).data ?? {}).length, 50);
    });
  });

  describe('delete', () => {
    it('honours preconditions', async () => {
      const { metadata } = await kube().create(CONFIG_MAPS, configMap('guarded'));
      const key = { name: 'guarded', namespace };
      await fails(
        kube().delete(CONFIG_MAPS, key, { preconditions: { uid: 'other' } }),
        409,
        'Conflict',
        /the UID in the precondition \(other\)/,
      );
      await fails(
        kube().delete(CONFIG_MAPS, key, { preconditions: { resourceVersion: '1' } }),
        409,
        'Conflict',
        /the ResourceVersion in the precondition/,
      );
      await kube().delete(CONFIG_MAPS, key, { dryRun: true });
      await kube().delete(CONFIG_MAPS, key, {
        preconditions: { uid: metadata?.uid, resourceVersion: metadata?.resourceVersion },
      });
      await fails(kube().delete(CONFIG_MAPS, key), 404, 'NotFound', 'configmaps "guarded" not found');
    });

    it('waits for finalizers, and takes no new ones', async () => {
      const key = { name: 'held', namespace };
      await kube().create(CONFIG_MAPS, { metadata: { ...key, finalizers: ['a.b/c'] } });
      await kube().delete(CONFIG_MAPS, key);
      const held = await kube().get(CONFIG_MAPS, key);
      assert.ok(held.metadata?.deletionTimestamp !== undefined);
      await fails(
        kube().patch(CONFIG_MAPS, key, { type: 'merge', body: { metadata: { finalizers: ['a.b/c', 'd.e/f'] } } }),
        422,
        'Invalid',
        /no new finalizers can be added/,
      );
      await kube().patch(CONFIG_MAPS, key, { type: 'merge', body: { metadata: { finalizers: null } } });
      await fails(kube().get(CONFIG_MAPS, key), 404, 'NotFound', /./);
    });

    it('lets a pod that runs on a node end in its own time', async () => {
      const key = { name: 'graceful', namespace };
      await kube().create(PODS, pod('graceful', { spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] } }));
      await kube().delete(PODS, key);
      const first = await kube().get(PODS, key);
      assert.equal(first.metadata?.deletionGracePeriodSeconds, 30);
      assert.equal(new Date(first.metadata?.deletionTimestamp ?? '').getTime(), clock.now().getTime() + seconds(30));
      await kube().delete(PODS, key, { gracePeriodSeconds: 60 });
      assert.deepEqual(await kube().get(PODS, key), first);
      await kube().delete(PODS, key, { gracePeriodSeconds: 5 });
      assert.equal((await kube().get(PODS, key)).metadata?.deletionGracePeriodSeconds, 5);
      await kube().delete(PODS, key, { gracePeriodSeconds: 0 });
      await fails(kube().get(PODS, key), 404, 'NotFound', /./);
      await kube().create(PODS, pod('unbound'));
      await kube().delete(PODS, { name: 'unbound', namespace });
      await fails(kube().get(PODS, { name: 'unbound', namespace }), 404, 'NotFound', /./);
    });

    it('spares the namespaces everything depends on', async () => {
      for (const name of ['default', 'kube-system', 'kube-public']) {
        await fails(
          kube().delete(NAMESPACES, { name }),
          403,
          'Forbidden',
          `namespaces "${name}" is forbidden: this namespace may not be deleted`,
        );
      }
    });
  });

  describe('list', () => {
    before(async () => {
      await kube().create(NAMESPACES, { metadata: { name: 'pages' } });
      for (const name of ['a', 'b', 'c', 'd', 'e']) {
        await kube().create(SECRETS, {
          metadata: { name, namespace: 'pages', labels: { vowel: String('ae'.includes(name)) } },
        });
      }
    });

    const names = (items: readonly Secret[]) => items.map(({ metadata }) => metadata?.name).join('');

    it('comes in pages that show one moment', async () => {
      const first = await kube().list(SECRETS, { namespace: 'pages', limit: 2 });
      assert.deepEqual([names(first.items), first.metadata.remainingItemCount], ['ab', 3]);
      await kube().delete(SECRETS, { name: 'c', namespace: 'pages' });
      await kube().create(SECRETS, { metadata: { name: 'cc', namespace: 'pages' } });
      const second = await kube().list(SECRETS, { namespace: 'pages', limit: 2, continue: first.metadata.continue });
      assert.deepEqual([names(second.items), second.metadata.resourceVersion], ['cd', first.metadata.resourceVersion]);
      const third = await kube().list(SECRETS, { namespace: 'pages', limit: 2, continue: second.metadata.continue });
      assert.deepEqual([names(third.items), third.metadata.continue], ['e', undefined]);
      assert.equal(names((await kube().list(SECRETS, { namespace: 'pages' })).items), 'abccde');
    });

    it('chooses by labels and fields', async () => {
      const by = async (labelSelector?: string, fieldSelector?: string, limit?: number) =>
        kube().list(SECRETS, { namespace: 'pages', labelSelector, fieldSelector, limit });
      assert.equal(names((await by('vowel=true')).items), 'ae');
      assert.equal(names((await by(undefined, 'metadata.name=b')).items), 'b');
      const page = await by('vowel=true', undefined, 1);
      assert.deepEqual([names(page.items), page.metadata.remainingItemCount], ['a', undefined]);
      await fails(by('a==='), 400, 'BadRequest', /unable to parse requirement/);
      await fails(by(undefined, 'foo=bar'), 400, 'BadRequest', 'field label not supported: foo');
    });

    it('knows versions: exact ones, future ones, forgotten ones', async () => {
      const now = await kube().list(SECRETS, { namespace: 'pages' });
      const { resourceVersion } = now.metadata;
      await kube().create(SECRETS, { metadata: { name: 'late', namespace: 'pages' } });
      const exact = await kube().list(SECRETS, { namespace: 'pages', resourceVersion, resourceVersionMatch: 'Exact' });
      assert.deepEqual(exact.items, now.items);
      await fails(
        kube().list(SECRETS, { resourceVersion: '999999' }),
        504,
        'Timeout',
        /Too large resource version: 999999/,
      );
      await fails(kube().list(SECRETS, { resourceVersion: 'x' }), 400, 'BadRequest', /invalid resource version/);
      await fails(kube().list(SECRETS, { continue: 'x' }), 400, 'BadRequest', /invalid continue token/);
      const page = await kube().list(SECRETS, { namespace: 'pages', limit: 1 });
      await kube().create(SECRETS, { metadata: { name: 'later', namespace: 'pages' } });
      engine.core.store.compact(engine.core.store.revision);
      await fails(
        kube().list(SECRETS, { resourceVersion, resourceVersionMatch: 'Exact' }),
        410,
        'Expired',
        'The resourceVersion for the provided list is too old.',
      );
      const expired = await kube()
        .list(SECRETS, { namespace: 'pages', limit: 1, continue: page.metadata.continue })
        .catch((error: unknown) => error);
      assert.ok(expired instanceof KubeError && expired.code === 410 && 'token' in expired);
      const rest = await kube().list(SECRETS, { namespace: 'pages', continue: String(expired.token) });
      assert.equal(names(rest.items), 'bccdelatelater');
    });
  });

  it('asks whether one may', async () => {
    const bob: User = { name: 'bob', uid: '', groups: ['system:authenticated'], extra: {} };
    await fails(
      kube().as(bob).list(SECRETS, { namespace }),
      403,
      'Forbidden',
      'secrets is forbidden: User "bob" cannot list resource "secrets" in API group "" in the namespace "default"',
    );
  });

  it('hands out copies', async () => {
    const created = await kube().create(CONFIG_MAPS, configMap('copied', { a: '1' }));
    created.data!['a'] = 'changed';
    const read = await kube().get(CONFIG_MAPS, { name: 'copied', namespace });
    read.data!['a'] = 'changed';
    assert.equal((await kube().get(CONFIG_MAPS, { name: 'copied', namespace })).data?.['a'], '1');
  });
});
