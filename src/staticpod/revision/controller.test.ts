import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RetryRequest } from '../../controller/reconcile.ts';
import { KubeError } from '../../kube/error.ts';
import { MemoryKube } from '../../kube/memory.ts';
import type { Kube } from '../../kube/port.ts';
import { CONFIG_MAPS, SECRETS } from '../../kube/resource.ts';
import type { StaticPodOperatorStatus } from '../operator.ts';
import { CONFIG, configMap, intercepted, NAMESPACE, secret, storedNode, TestCluster } from '../testing.ts';
import { decideRevision, publishRevision, revisionReconcile } from './controller.ts';
import { READY_ANNOTATION } from './number.ts';

const READY = { [READY_ANNOTATION]: 'true' };

describe('deciding on a revision (spec 30, 8.2)', () => {
  const current = { outcome: 'current' } as const;
  const changed = { outcome: 'changed', reason: 'why' } as const;
  const missing = { outcome: 'source missing', reason: 'what' } as const;
  const at = (revision: number): StaticPodOperatorStatus => ({ latestAvailableRevision: revision });
  const cases: [string, StaticPodOperatorStatus, number, Parameters<typeof decideRevision>[2], object][] = [
    ['nothing changed', at(3), 3, current, { do: 'nothing' }],
    ['the first one', {}, 0, changed, { do: 'build', revision: 1, reason: 'why' }],
    ['something changed', at(3), 3, changed, { do: 'build', revision: 4, reason: 'why' }],
    ['a complete one is announced before anything else', at(3), 5, changed, { do: 'publish', revision: 5 }],
    ['an older one is never announced again (T02)', at(5), 3, current, { do: 'nothing' }],
    ['nor is its number used again (T02)', at(5), 3, changed, { do: 'build', revision: 6, reason: 'why' }],
    ['a source is missing', at(3), 3, missing, { do: 'wait for sources', revision: 4, reason: 'what' }],
    [
      'a node has been told a higher number',
      { ...at(3), nodeStatuses: [storedNode('m0', { currentRevision: 7, lastFailedRevision: 9 })] },
      3,
      changed,
      { do: 'build', revision: 10, reason: 'why' },
    ],
  ];
  for (const [what, status, ready, comparison, expected] of cases) {
    test(what, () => assert.deepEqual(decideRevision(status, ready, comparison), expected));
  }

  test('after the largest number there is none (26.2)', () => {
    assert.throws(() => decideRevision(at(2 ** 31 - 1), 0, changed), /expected a revision number below 2147483647/);
  });

  test('a number only ever grows', () => {
    assert.equal(publishRevision(at(4), 5).latestAvailableRevision, 5);
    for (const published of [5, 6]) {
      const expected = new RegExp(`conflicting latestAvailableRevision ${published}`);
      assert.throws(() => publishRevision(at(published), 5), expected);
    }
  });
});

async function clusterAt(revision: number, kube: Kube = new MemoryKube()): Promise<TestCluster> {
  const cluster = new TestCluster({ kube });
  await cluster.setOperator({ latestAvailableRevision: revision, nodeStatuses: [storedNode('m0')] });
  await cluster.put(configMap('test-pod', { a: '1' }), secret('test-secret', { key: 'new' }));
  if (revision > 0) {
    await cluster.put(configMap(`test-pod-${revision}`, { a: '1' }), secret(`test-secret-${revision}`, { key: 'old' }));
    await cluster.put(configMap(`revision-status-${revision}`, { revision: String(revision) }, READY));
  }
  return cluster;
}

describe('the revision controller', () => {
  test('makes a revision, tells of it and publishes it last', async () => {
    const cluster = await clusterAt(1);
    await cluster.run(revisionReconcile(cluster.parts));
    assert.equal((await cluster.status()).latestAvailableRevision, 2);
    const copy = await cluster.kube.get(SECRETS, { namespace: NAMESPACE, name: 'test-secret-2' });
    const status = await cluster.kube.get(CONFIG_MAPS, { namespace: NAMESPACE, name: 'revision-status-2' });
    assert.deepEqual(status.data, { revision: '2', reason: 'required secret/test-secret has changed' });
    assert.deepEqual(copy.metadata?.ownerReferences, [
      { apiVersion: 'v1', kind: 'ConfigMap', name: 'revision-status-2', uid: status.metadata?.uid },
    ]);
    assert.deepEqual(
      cluster.events
        .filter(({ reason }) => !reason.endsWith('Created'))
        .map(({ reason, message }) => [reason, message]),
      [
        ['StartingNewRevision', 'new revision 2 triggered by "required secret/test-secret has changed"'],
        ['RevisionTriggered', 'new revision 2 triggered by "required secret/test-secret has changed"'],
        ['RevisionCreate', 'Revision 2 created because required secret/test-secret has changed'],
      ],
    );
    const told = cluster.events.length;
    await cluster.run(revisionReconcile(cluster.parts));
    assert.equal(cluster.events.length, told);
  });

  test('does nothing while it is not managed', async () => {
    const cluster = await clusterAt(1);
    const operator = await cluster.operator.readLive();
    await cluster.kube.update(cluster.operator.resource, { ...operator, spec: { managementState: 'Unmanaged' } });
    await cluster.run(revisionReconcile(cluster.parts));
    assert.equal((await cluster.status()).latestAvailableRevision, 1);
  });

  test('goes on with one that was left unfinished, with what the sources are now (T01)', async () => {
    const cluster = await clusterAt(1);
    const begun = { revision: '2', reason: 'why it was begun' };
    await cluster.put(configMap('revision-status-2', begun, { [READY_ANNOTATION]: 'false' }));
    await cluster.put(secret('test-secret-2', { key: 'half-way' }));
    await cluster.run(revisionReconcile(cluster.parts));
    const status = await cluster.kube.get(CONFIG_MAPS, { namespace: NAMESPACE, name: 'revision-status-2' });
    assert.deepEqual(status.data, begun);
    assert.equal((await cluster.status()).latestAvailableRevision, 2);
    const { data } = await cluster.kube.get(SECRETS, { namespace: NAMESPACE, name: 'test-secret-2' });
    assert.equal(Buffer.from(data?.key ?? '', 'base64').toString(), 'new');
    assert.ok(!(await cluster.has(CONFIG_MAPS, 'revision-status-3')));
  });

  test('creates nothing as long as something required is missing, and names all of it (T03)', async () => {
    const cluster = await clusterAt(1);
    await cluster.kube.delete(SECRETS, { namespace: NAMESPACE, name: 'test-secret' });
    await cluster.kube.delete(CONFIG_MAPS, { namespace: NAMESPACE, name: 'test-pod' });
    const result = await cluster.run(revisionReconcile(cluster.parts));
    assert.equal(result?.retry, true);
    assert.ok(!(await cluster.has(CONFIG_MAPS, 'revision-status-2')));
    const [condition] = (await cluster.status()).conditions ?? [];
    assert.equal(condition?.reason, 'ContentCreationError');
    assert.equal(condition?.message, '[configmaps "test-pod" not found, secrets "test-secret" not found]');
    await cluster.run(revisionReconcile(cluster.parts));
    const told = cluster.events.map(({ type, reason, message }) => [type, reason, message]);
    const message = 'Failed to create revision 2: [configmaps "test-pod" not found, secrets "test-secret" not found]';
    assert.deepEqual(told, [['Warning', 'RevisionCreateFailed', message]], 'told once');
  });

  test('a read that fails is no missing object (T04)', async () => {
    const memory = new MemoryKube();
    let isDown = false;
    const kube = intercepted(memory, (verb, _resource, name) => {
      if (isDown && verb === 'get' && name === 'test-secret') throw new KubeError(500, 'InternalError', 'no quorum');
    });
    const cluster = await clusterAt(1, kube);
    isDown = true;
    await assert.rejects(cluster.run(revisionReconcile(cluster.parts)), /no quorum/);
    assert.ok(!(await cluster.has(CONFIG_MAPS, 'revision-status-2')));
    const [condition] = (await cluster.status()).conditions ?? [];
    assert.deepEqual([condition?.status, condition?.reason, condition?.message], ['True', 'Error', 'no quorum']);
    isDown = false;
    await cluster.run(revisionReconcile(cluster.parts));
    assert.equal((await cluster.status()).conditions?.[0]?.status, 'False');
  });

  test('a status object whose number nobody can read fails the pass and changes no condition (8.2.2)', async () => {
    const cluster = await clusterAt(1);
    const conditions = [{ type: 'RevisionControllerDegraded', status: 'False' as const }];
    await cluster.operator.update(status => ({ ...status, conditions }));
    await cluster.put(configMap('revision-status-2', { revision: 'two' }));
    await assert.rejects(cluster.run(revisionReconcile(cluster.parts)), /revision-status-2, found "two"/);
    assert.deepEqual((await cluster.status()).conditions, conditions);
  });

  test('a cache that is behind leads to nothing, not even to a complaint (T02, T23)', async () => {
    const cluster = await clusterAt(1);
    const stale = { ...cluster.cached };
    const before = await cluster.cached.list(CONFIG_MAPS, { namespace: NAMESPACE });
    await cluster.run(revisionReconcile(cluster.parts));
    const told = cluster.events.length;
    const cached = {
      ...stale,
      list: async () => before as never,
      get: async () => undefined,
    };
    await cluster.run(revisionReconcile({ ...cluster.parts, cached }));
    const { latestAvailableRevision, conditions } = await cluster.status();
    assert.equal(latestAvailableRevision, 2);
    assert.equal(conditions?.[0]?.status, 'False');
    assert.equal(cluster.events.length, told);
  });

  test('somebody who touches the status object meanwhile does not spoil it (T22)', async () => {
    const memory = new MemoryKube();
    let conflicts = 2;
    const kube = intercepted(memory, async (verb, resource, name) => {
      if (verb !== 'update' || name !== 'revision-status-2' || conflicts-- <= 0) return;
      const key = { namespace: NAMESPACE, name };
      const { annotations: _, ...metadata } = (await memory.get(resource, key)).metadata ?? {};
      await memory.update(resource, { ...(await memory.get(resource, key)), metadata });
    });
    const cluster = await clusterAt(1, kube);
    await cluster.run(revisionReconcile(cluster.parts));
    assert.equal((await cluster.status()).latestAvailableRevision, 2);
    const { metadata } = await memory.get(CONFIG_MAPS, { namespace: NAMESPACE, name: 'revision-status-2' });
    assert.equal(metadata?.annotations?.[READY_ANNOTATION], 'true');
  });

  test('another process that publishes first is no failure', async () => {
    const memory = new MemoryKube();
    const cluster: TestCluster = await clusterAt(
      1,
      intercepted(memory, async (verb, _resource, name) => {
        if (verb !== 'update' || name !== 'revision-status-2') return;
        const other = new TestCluster({ kube: memory });
        await other.operator.update(status => ({ ...status, latestAvailableRevision: 2 }));
      }),
    );
    await assert.rejects(cluster.run(revisionReconcile(cluster.parts)), RetryRequest);
    const { latestAvailableRevision, conditions = [] } = await cluster.status();
    assert.equal(latestAvailableRevision, 2);
    assert.deepEqual(conditions, []);
  });

  test('a precondition that does not hold, and copies that are not ready, are asked for again', async () => {
    const cluster = await clusterAt(1);
    let mayBuild = false;
    let isReady = false;
    const config = { ...CONFIG, revisionPrecondition: async () => mayBuild, revisionReady: async () => isReady };
    const reconcile = revisionReconcile({ ...cluster.parts, config });
    assert.ok((await cluster.run(reconcile))?.againAt !== undefined);
    assert.ok(!(await cluster.has(CONFIG_MAPS, 'revision-status-2')));
    mayBuild = true;
    assert.ok((await cluster.run(reconcile))?.againAt !== undefined);
    assert.ok(await cluster.has(CONFIG_MAPS, 'revision-status-2'));
    assert.equal((await cluster.status()).latestAvailableRevision, 1);
    isReady = true;
    await cluster.run(reconcile);
    assert.equal((await cluster.status()).latestAvailableRevision, 2);
  });

  test('a readiness check that fails is reported with its revision', async () => {
    const cluster = await clusterAt(1);
    const config = {
      ...CONFIG,
      revisionReady: async () => {
        throw new Error('no answer');
      },
    };
    await cluster.run(revisionReconcile({ ...cluster.parts, config }));
    const message = (await cluster.status()).conditions?.[0]?.message;
    assert.equal(message, 'revision readiness check failed for revision 2: no answer');
  });
});
