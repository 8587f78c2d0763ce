import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { CustomResourceDefinition, JSONSchemaProps } from 'kubernetes-types/apiextensions/v1.d.ts';
import type { ConfigMap, Pod } from 'kubernetes-types/core/v1.d.ts';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import type { ClusterRole } from 'kubernetes-types/rbac/v1.d.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { minutes } from '../../kube/duration.ts';
import { isNotFound, KubeError } from '../../kube/error.ts';
import {
  CONFIG_MAPS,
  CUSTOM_RESOURCE_DEFINITIONS,
  EVENTS,
  type KubeObject,
  NAMESPACES,
  POD_DISRUPTION_BUDGETS,
  PODS,
  type Resource,
  resource,
  SECRETS,
  SERVICE_ACCOUNTS,
} from '../../kube/resource.ts';
import { type Engine, startEngine } from '../engine.ts';
import { EVENT_LIFETIME_MS } from './events.ts';

const CLUSTER_ROLES = resource<ClusterRole>('rbac.authorization.k8s.io/v1', 'ClusterRole', 'clusterroles', false);

/** The types of the definitions package have another name for this field than the API. */
const PRESERVED = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as JSONSchemaProps;

interface Widget extends KubeObject {
  spec?: { size?: number; color?: string; replicas?: number };
  status?: { phase?: string };
}
const WIDGETS = resource<Widget>('example.com/v1', 'Widget', 'widgets');
const OLD_WIDGETS = resource<Widget>('example.com/v1beta1', 'Widget', 'widgets');

describe('what works inside the server', () => {
  let engine: Engine;
  let clock: VirtualClock;
  const errors: unknown[] = [];
  const kube = () => engine.kube;
  const namespace = 'default';

  before(async () => {
    clock = new VirtualClock('2026-01-01T00:00:00Z');
    engine = await startEngine({ clock, rootCa: () => 'the root', onError: (_, error) => errors.push(error) });
  });
  after(async () => {
    await engine.close();
    assert.deepEqual(errors, []);
  });

  async function exists(
    resource: Resource,
    name: string,
    inNamespace: string | undefined = namespace,
  ): Promise<boolean> {
    try {
      await kube().get(
        resource,
        inNamespace === undefined || !resource.namespaced ? { name } : { name, namespace: inNamespace },
      );
      return true;
    } catch (error) {
      if (isNotFound(error)) return false;
      throw error;
    }
  }

  describe('the garbage collector', () => {
    const owned = async (name: string, owners: readonly (ConfigMap | OwnerReference)[], finalizers?: string[]) => {
      const ownerReferences = owners.map(owner =>
        'uid' in owner
          ? owner
          : {
              apiVersion: 'v1',
              kind: 'ConfigMap',
              name: owner.metadata?.name ?? '',
              uid: owner.metadata?.uid ?? '',
              blockOwnerDeletion: true,
            },
      );
      return kube().create(CONFIG_MAPS, {
        metadata: { name, namespace, ownerReferences, ...(finalizers === undefined ? {} : { finalizers }) },
      });
    };
    const remove = async (name: string, propagationPolicy?: 'Orphan' | 'Background' | 'Foreground') => {
      await kube().delete(CONFIG_MAPS, { name, namespace }, { propagationPolicy });
      await engine.idle();
    };

    it('collects what loses its last owner, and what never had a living one', async () => {
      const a = await owned('gc-a', []);
      const b = await owned('gc-b', []);
      await owned('gc-one', [a]);
      await owned('gc-both', [a, b]);
      const chain = await owned('gc-chain', [a]);
      await owned('gc-chain-2', [chain]);
      await owned('gc-dead', [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'never', uid: 'nobody' }]);
      await owned('gc-odd', [{ apiVersion: 'unknown.io/v1', kind: 'Thing', name: 'x', uid: 'y' }]);
      await engine.idle();
      assert.equal(await exists(CONFIG_MAPS, 'gc-dead'), false);
      assert.equal(await exists(CONFIG_MAPS, 'gc-odd'), true);
      await remove('gc-a');
      for (const name of ['gc-a', 'gc-one', 'gc-chain', 'gc-chain-2'])
        assert.equal(await exists(CONFIG_MAPS, name), false, name);
      const left = await kube().get(CONFIG_MAPS, { name: 'gc-both', namespace });
      assert.deepEqual(
        left.metadata?.ownerReferences?.map(({ name }) => name),
        ['gc-b'],
      );
    });

    it('takes an owner of another identity for none', async () => {
      const first = await owned('gc-reborn', []);
      await owned('gc-child', [first]);
      await remove('gc-reborn', 'Orphan');
      assert.equal(await exists(CONFIG_MAPS, 'gc-child'), true);
      await owned('gc-reborn', []);
      await owned('gc-stale', [first]);
      await engine.idle();
      assert.equal(await exists(CONFIG_MAPS, 'gc-stale'), false);
    });

    it('deletes dependents first when the deletion is in the foreground', async () => {
      const owner = await owned('gc-front', []);
      await owned('gc-held', [owner], ['example.com/hold']);
      await owned('gc-free', [owner]);
      await remove('gc-front', 'Foreground');
      assert.deepEqual((await kube().get(CONFIG_MAPS, { name: 'gc-front', namespace })).metadata?.finalizers, [
        'foregroundDeletion',
      ]);
      assert.equal(await exists(CONFIG_MAPS, 'gc-free'), false);
      await kube().patch(
        CONFIG_MAPS,
        { name: 'gc-held', namespace },
        { type: 'merge', body: { metadata: { finalizers: null } } },
      );
      await engine.idle();
      assert.equal(await exists(CONFIG_MAPS, 'gc-front'), false);
    });

    it('takes itself off the dependents when they are to stay', async () => {
      const owner = await owned('gc-leaving', []);
      await owned('gc-orphan', [owner]);
      await remove('gc-leaving', 'Orphan');
      assert.equal(await exists(CONFIG_MAPS, 'gc-leaving'), false);
      assert.equal(
        (await kube().get(CONFIG_MAPS, { name: 'gc-orphan', namespace })).metadata?.ownerReferences,
        undefined,
      );
    });
  });

  describe('namespaces', () => {
    it('are furnished, and refurnished', async () => {
      await kube().create(NAMESPACES, { metadata: { name: 'home' } });
      await engine.idle();
      const root = await kube().get(CONFIG_MAPS, { name: 'kube-root-ca.crt', namespace: 'home' });
      assert.deepEqual(root.data, { 'ca.crt': 'the root' });
      await kube().delete(SERVICE_ACCOUNTS, { name: 'default', namespace: 'home' });
      await kube().patch(
        CONFIG_MAPS,
        { name: 'kube-root-ca.crt', namespace: 'home' },
        { type: 'merge', body: { data: { 'ca.crt': 'x' } } },
      );
      await engine.idle();
      assert.equal(await exists(SERVICE_ACCOUNTS, 'default', 'home'), true);
      assert.deepEqual((await kube().get(CONFIG_MAPS, { name: 'kube-root-ca.crt', namespace: 'home' })).data, {
        'ca.crt': 'the root',
      });
    });

    it('are emptied before they go, and take nothing new meanwhile', async () => {
      const inside = { namespace: 'doomed' };
      await kube().create(NAMESPACES, { metadata: { name: 'doomed' } });
      await kube().create(CONFIG_MAPS, { metadata: { name: 'easy', ...inside } });
      await kube().create(SECRETS, { metadata: { name: 'held', ...inside, finalizers: ['example.com/hold'] } });
      await kube().delete(NAMESPACES, { name: 'doomed' });
      await engine.idle();
      const namespaceNow = await kube().get(NAMESPACES, { name: 'doomed' });
      assert.equal(namespaceNow.status?.phase, 'Terminating');
      const remaining = namespaceNow.status?.conditions?.find(({ type }) => type === 'NamespaceFinalizersRemaining');
      assert.match(remaining?.message ?? '', /example\.com\/hold in 1 resource instances/);
      assert.equal(await exists(CONFIG_MAPS, 'easy', 'doomed'), false);
      await assert.rejects(kube().create(CONFIG_MAPS, { metadata: { name: 'new', ...inside } }), (error: KubeError) => {
        assert.equal(
          error.message,
          'configmaps "new" is forbidden: unable to create new content in namespace doomed because it is being terminated',
        );
        return error.code === 403 && error.details?.causes?.[0]?.reason === 'NamespaceTerminating';
      });
      await kube().patch(
        SECRETS,
        { name: 'held', ...inside },
        { type: 'merge', body: { metadata: { finalizers: null } } },
      );
      await engine.idle();
      assert.equal(await exists(NAMESPACES, 'doomed'), false);
    });
  });

  describe('disruption budgets', () => {
    const labels = { app: 'web' };
    const ready: Pod['status'] = { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] };
    const inside = { namespace: 'budgets' };

    before(async () => {
      await kube().create(NAMESPACES, { metadata: { name: 'budgets' } });
      for (const name of ['web-1', 'web-2']) {
        const pod = await kube().create(PODS, {
          metadata: { name, ...inside, labels },
          spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
        });
        await kube().updateStatus(PODS, { ...pod, status: { ...pod.status, ...ready } });
      }
    });

    it('allow as many evictions as they say, and 429 beyond', async () => {
      const key = { name: 'web', ...inside };
      const created = kube().create(POD_DISRUPTION_BUDGETS, {
        metadata: key,
        spec: { minAvailable: 1, selector: { matchLabels: labels } },
      });
      await created;
      await engine.idle();
      const budget = await kube().get(POD_DISRUPTION_BUDGETS, key);
      const { currentHealthy, desiredHealthy, disruptionsAllowed, expectedPods } = budget.status ?? {};
      assert.deepEqual([currentHealthy, desiredHealthy, disruptionsAllowed, expectedPods], [2, 1, 1, 2]);
      await kube().evict({ name: 'web-1', ...inside });
      const evicted = await kube().get(PODS, { name: 'web-1', ...inside });
      assert.ok(evicted.metadata?.deletionTimestamp !== undefined);
      assert.equal(
        evicted.status?.conditions?.find(({ type }) => type === 'DisruptionTarget')?.reason,
        'EvictionByEvictionAPI',
      );
      await engine.idle();
      await assert.rejects(kube().evict({ name: 'web-2', ...inside }), (error: KubeError) => {
        assert.equal(
          error.details?.causes?.[0]?.message,
          'The disruption budget web needs 1 healthy pods and has 1 currently',
        );
        return error.code === 429 && error.reason === 'TooManyRequests';
      });
    });

    it('let two evictions at once use up one disruption only once', async () => {
      await kube().delete(PODS, { name: 'web-1', ...inside }, { gracePeriodSeconds: 0 });
      const pod = await kube().create(PODS, {
        metadata: { name: 'web-3', ...inside, labels },
        spec: { nodeName: 'n1', containers: [{ name: 'c', image: 'i' }] },
      });
      await kube().updateStatus(PODS, { ...pod, status: { ...pod.status, ...ready } });
      await engine.idle();
      const results = await Promise.allSettled(['web-2', 'web-3'].map(name => kube().evict({ name, ...inside })));
      assert.deepEqual(results.map(({ status }) => status).sort(), ['fulfilled', 'rejected']);
    });

    it('do not stand in the way of pods that do not run', async () => {
      await kube().create(PODS, {
        metadata: { name: 'idle', ...inside, labels },
        spec: { containers: [{ name: 'c', image: 'i' }] },
      });
      await kube().evict({ name: 'idle', ...inside });
      assert.equal(await exists(PODS, 'idle', 'budgets'), false);
    });
  });

  describe('definitions', () => {
    const definition = (): CustomResourceDefinition & KubeObject => ({
      metadata: { name: 'widgets.example.com' },
      spec: {
        group: 'example.com',
        scope: 'Namespaced',
        names: { plural: 'widgets', kind: 'Widget', shortNames: ['wd'] },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            subresources: {
              status: {},
              scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
            },
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: {
                  spec: {
                    type: 'object',
                    properties: {
                      size: { type: 'integer', maximum: 10 },
                      color: { type: 'string', default: 'red' },
                      replicas: { type: 'integer' },
                    },
                  },
                  status: PRESERVED,
                },
              },
            },
          },
          { name: 'v1beta1', served: true, storage: false, deprecated: true, schema: { openAPIV3Schema: PRESERVED } },
        ],
      },
    });

    before(async () => {
      await assert.rejects(kube().list(WIDGETS), (error: KubeError) => error.code === 404);
      await kube().create(CUSTOM_RESOURCE_DEFINITIONS, definition());
      await engine.idle();
    });

    it('are established and served', async () => {
      const { status } = await kube().get(CUSTOM_RESOURCE_DEFINITIONS, { name: 'widgets.example.com' });
      const conditions = status?.conditions?.map(({ type, status: value }) => `${type}=${value}`);
      assert.deepEqual(conditions?.sort(), ['Established=True', 'NamesAccepted=True']);
      assert.deepEqual([status?.acceptedNames?.kind, status?.storedVersions], ['Widget', ['v1']]);
      assert.deepEqual((await kube().list(WIDGETS)).items, []);
    });

    it('validate, default, prune, and keep status apart', async () => {
      const created = await kube().create(WIDGETS, {
        metadata: { name: 'w', namespace },
        spec: { size: 3, junk: true } as Widget['spec'] & object,
        status: { phase: 'No' },
      });
      assert.deepEqual(
        [created.spec, created.status, created.metadata?.generation],
        [{ size: 3, color: 'red' }, undefined, 1],
      );
      const status = await kube().updateStatus(WIDGETS, { ...created, spec: { size: 9 }, status: { phase: 'Yes' } });
      assert.deepEqual([status.spec?.size, status.status, status.metadata?.generation], [3, { phase: 'Yes' }, 1]);
      await assert.rejects(
        kube().update(WIDGETS, { ...status, spec: { size: 11 } }),
        (error: KubeError) => error.code === 422 && /spec\.size: Invalid value: 11/.test(error.message),
      );
      const old = await kube().get(OLD_WIDGETS, { name: 'w', namespace });
      assert.deepEqual([old.apiVersion, old.spec?.size], ['example.com/v1beta1', 3]);
      const scaled = await kube().patch(
        WIDGETS,
        { name: 'w', namespace },
        { type: 'merge', body: { spec: { replicas: 4 } } },
        { subresource: 'scale' },
      );
      assert.equal(scaled.kind, 'Scale');
      assert.equal((await kube().get(WIDGETS, { name: 'w', namespace })).spec?.replicas, 4);
    });

    it('show stored objects the way a changed schema wants them', async () => {
      const { metadata, spec } = await kube().get(CUSTOM_RESOURCE_DEFINITIONS, { name: 'widgets.example.com' });
      const schema = spec.versions[0]?.schema?.openAPIV3Schema?.properties?.['spec'];
      const changed = structuredClone(spec);
      changed.versions[0]!.schema!.openAPIV3Schema!.properties!['spec']!.properties = {
        ...schema?.properties,
        shape: { type: 'string', default: 'round' },
      };
      await kube().update(CUSTOM_RESOURCE_DEFINITIONS, { metadata: metadata!, spec: changed });
      await engine.idle();
      const seen = (await kube().get(WIDGETS, { name: 'w', namespace })) as Widget & { spec: { shape?: string } };
      assert.equal(seen.spec.shape, 'round');
    });

    it('do not take names that others have', async () => {
      const rival = definition();
      rival.metadata = { name: 'gadgets.example.com' };
      rival.spec.names = { plural: 'gadgets', kind: 'Widget' };
      await kube().create(CUSTOM_RESOURCE_DEFINITIONS, rival);
      await engine.idle();
      const { status } = await kube().get(CUSTOM_RESOURCE_DEFINITIONS, { name: 'gadgets.example.com' });
      assert.equal(status?.conditions?.find(({ type }) => type === 'NamesAccepted')?.status, 'False');
      await kube().delete(CUSTOM_RESOURCE_DEFINITIONS, { name: 'gadgets.example.com' });
    });

    it('take their objects with them', async () => {
      await kube().delete(CUSTOM_RESOURCE_DEFINITIONS, { name: 'widgets.example.com' });
      await engine.idle();
      assert.equal(await exists(CUSTOM_RESOURCE_DEFINITIONS, 'widgets.example.com'), false);
      assert.equal(engine.core.store.count('example.com/widgets'), 0);
      await assert.rejects(kube().list(WIDGETS), (error: KubeError) => error.code === 404);
    });
  });

  it('keeps aggregated roles up to date', async () => {
    await kube().create(CLUSTER_ROLES, {
      metadata: { name: 'more-view', labels: { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' } },
      rules: [{ apiGroups: ['example.com'], resources: ['widgets'], verbs: ['get'] }],
    });
    await engine.idle();
    for (const name of ['view', 'edit', 'admin']) {
      const { rules } = await kube().get(CLUSTER_ROLES, { name });
      assert.ok(
        rules?.some(({ resources }) => resources?.includes('widgets')),
        name,
      );
    }
  });

  it('fills token Secrets, and takes them away with their account', async () => {
    await kube().create(SERVICE_ACCOUNTS, { metadata: { name: 'robot', namespace } });
    await kube().create(SECRETS, {
      metadata: { name: 'robot-token', namespace, annotations: { 'kubernetes.io/service-account.name': 'robot' } },
      type: 'kubernetes.io/service-account-token',
    });
    await engine.idle();
    const secret = await kube().get(SECRETS, { name: 'robot-token', namespace });
    const token = Buffer.from(secret.data?.['token'] ?? '', 'base64').toString();
    const answer = engine.core.authenticator.authenticate({ authorization: `Bearer ${token}` });
    assert.equal(answer.ok && answer.user.name, 'system:serviceaccount:default:robot');
    await kube().delete(SERVICE_ACCOUNTS, { name: 'robot', namespace });
    await engine.idle();
    assert.equal(await exists(SECRETS, 'robot-token'), false);
    assert.equal(engine.core.authenticator.authenticate({ authorization: `Bearer ${token}` }).ok, false);
  });

  it('lets Events go after an hour', async () => {
    const event = (name: string) =>
      kube().create(EVENTS, { metadata: { name, namespace }, involvedObject: { namespace }, reason: 'R' });
    await event('old');
    await clock.advance(EVENT_LIFETIME_MS - minutes(2));
    await event('young');
    await clock.advance(minutes(3));
    await event('new');
    await engine.idle();
    assert.deepEqual(await Promise.all(['old', 'young', 'new'].map(name => exists(EVENTS, name))), [false, true, true]);
  });
});
