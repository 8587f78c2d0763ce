import assert from 'node:assert/strict';
import { RetryRequest } from '../../../src/controller/reconcile.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import { CONFIG_MAPS, SECRETS } from '../../../src/kube/resource.ts';
import { liveObjects } from '../../../src/staticpod/objects.ts';
import { compareRevision, readPairs } from '../../../src/staticpod/revision/compare.ts';
import { publishRevision, revisionReconcile } from '../../../src/staticpod/revision/controller.ts';
import { CONFIG, intercepted, type Verb, TestCluster } from '../../../src/staticpod/testing.ts';
import { type Adapter, attempt, checkConditions, checkError, checkEvent, errorOf, type Json, objectOf } from './case.ts';

/** Said of a revision that is published before all of it is there. */
const NEVER = /^latestAvailableRevision=(\d+) while any required copy of revision (\d+) is missing$/;

export const revisionAdapters: Record<string, Adapter> = {
  async 'revision.sync'(given, expected) {
    const namespace = given.targetNamespace;
    const created: string[] = [];
    const published: number[] = [];
    const early: string[] = [];
    const memory = new MemoryKube();
    let pass = 0;
    let isReady = false;
    const kube = intercepted(memory, async (verb, resource, name, object) => {
      if (!isReady) return;
      const writes = (object as Json)?.status?.latestAvailableRevision;
      const before = published.at(-1) ?? given.status?.latestAvailableRevision ?? 0;
      for (const fault of given.faults ?? []) {
        if (fault.sync !== undefined && fault.sync !== pass) continue;
        if (hits(fault, verb, `${resource.plural}/${name}`, writes !== undefined && writes !== before)) throw errorOf(fault.error);
      }
      if (verb === 'create' && (await liveObjects(memory).get(resource, { namespace, name })) === undefined) {
        created.push(`${resource.plural}/${name}`);
      }
      if (verb === 'updateStatus' && writes !== undefined) {
        if (writes !== before) early.push(...(await missingCopies(writes)));
        published.push(writes);
      }
    });
    const missingCopies = async (revision: number) => {
      const required = [...given.configMaps.map((each: Json) => [CONFIG_MAPS, each]), ...given.secrets.map((each: Json) => [SECRETS, each])];
      const missing: string[] = [];
      for (const [resource, { name, optional = false }] of required) {
        const copy = await liveObjects(memory).get(resource, { namespace, name: `${name}-${revision}` });
        if (copy === undefined && !optional) missing.push(`${resource.plural}/${name}-${revision}`);
      }
      return missing;
    };
    const cluster = new TestCluster({ kube });
    await cluster.setOperator(given.status, { managementState: given.managementState });
    await cluster.put(...given.objects.map((object: Json) => objectOf(object, namespace)));
    isReady = true;
    const reconcile = revisionReconcile({
      ...cluster.parts,
      config: {
        ...CONFIG,
        operandNamespace: namespace,
        revisioned: { configMaps: given.configMaps, secrets: given.secrets },
        revisionPrecondition: given.precondition && (() => answerOf(given.precondition)),
        revisionReady: given.readinessCheck && (() => answerOf(given.readinessCheck)),
      },
    });
    for (pass = 1; pass <= (given.syncCount ?? 1); pass++) {
      const result = await resultOf(cluster, reconcile);
      const wanted = expected.syncs?.[pass - 1];
      if (wanted?.result !== undefined) assert.equal(result, wanted.result, `pass ${pass}`);
      // The text of a request for another pass is Go's own.
      if (wanted?.error !== undefined) assert.deepEqual([result, wanted.error], ['requeue', 'synthetic requeue request']);
      if (wanted?.resultIn !== undefined) assert.ok(wanted.resultIn.includes(result), `pass ${pass}: ${result}`);
      checkStatus(await cluster.status(), expected.statusAfterSync?.[pass - 1]);
    }
    if (expected.createdInOrder !== undefined) assert.deepEqual(created, expected.createdInOrder);
    checkStatus(await cluster.status(), expected.status);
    const live = liveObjects(memory);
    const get = (path: string) => {
      const [plural, name = ''] = path.split('/');
      return live.get<Json>(plural === 'secrets' ? SECRETS : CONFIG_MAPS, { namespace, name });
    };
    for (const [path, annotations] of Object.entries(expected.finalAnnotations ?? {})) {
      assert.deepEqual((await get(path))?.metadata?.annotations, annotations);
    }
    for (const path of expected.objectsPresent ?? []) assert.ok(await get(path), `${path} is missing`);
    for (const path of expected.objectsAbsent ?? []) {
      if (!expected.objectsPresent?.includes(path)) assert.equal(await get(path), undefined, path);
    }
    for (const [path, data] of Object.entries(expected.dataAfter ?? {})) {
      const found: Json = await get(path);
      const values = Object.entries<string>(found?.data ?? {}).map(([key, value]) => [
        key,
        path.startsWith('secrets/') ? Buffer.from(value, 'base64').toString() : value,
      ]);
      assert.deepEqual(Object.fromEntries(values), data);
    }
    if (expected.neverObserved !== undefined) {
      const [, latest, revision] = NEVER.exec(expected.neverObserved) ?? [];
      assert.ok(latest !== undefined && latest === revision, `unknown words: ${expected.neverObserved}`);
      assert.deepEqual(early, []);
    }
    if (expected.ownerReference !== undefined) await checkOwner(expected.ownerReference, get);
    for (const reason of expected.eventsAbsent ?? []) assert.ok(!cluster.events.some(event => event.reason === reason), reason);
    for (const wanted of expected.events ?? []) {
      const reason = typeof wanted === 'string' ? wanted : wanted.reason;
      checkEvent(cluster.events.find(event => event.reason === reason), wanted);
    }
    // Nothing is ever announced backwards (T02).
    assert.deepEqual(published, [...published].sort((a, b) => a - b));
  },

  async 'revision.compare'(given, expected) {
    const memory = new MemoryKube();
    for (const object of given.objects) {
      const { kind, ...rest } = objectOf(object, 'ns');
      await memory.create(kind === 'Secret' ? SECRETS : CONFIG_MAPS, rest as Json);
    }
    const kube = intercepted(memory, (verb, resource, name) => {
      for (const fault of given.faults ?? []) if (hits(fault, verb, `${resource.plural}/${name}`, false)) throw errorOf(fault.error);
    });
    const lists = { configMaps: given.configMaps ?? [], secrets: given.secrets ?? [] };
    let comparison: Json;
    const error = await attempt(async () => {
      const pairs = await readPairs(liveObjects(kube), 'ns', lists, given.revision);
      comparison = compareRevision(given.revision, pairs);
    });
    if (expected.error !== undefined) {
      checkError(error, expected.error === null ? null : true);
      if (expected.error) return;
    }
    assert.equal(comparison.outcome === 'current', expected.current);
    if (expected.requiredSourceMissing !== undefined) {
      assert.equal(comparison.outcome === 'source missing', expected.requiredSourceMissing);
    }
    if (expected.reason !== undefined) assert.equal(comparison.reason ?? '', expected.reason);
  },

  async 'revision.publish'({ statusLatest, publish }, expected) {
    let status: Json = { latestAvailableRevision: statusLatest };
    const error = await attempt(() => (status = publishRevision(status, publish)));
    checkError(error, expected.error);
    assert.equal(status.latestAvailableRevision, expected.statusLatest);
  },
};

/** Faults name what fails: a verb and an object, or a step of the controller. */
function hits(fault: Json, verb: Verb, path: string, publishes: boolean): boolean {
  const verbs = ['get', 'create', 'update', 'delete'];
  const [op = '', ...rest] = String(fault.op ?? verbs.find(name => fault[name] !== undefined) ?? '').split(' ');
  if (op === 'writeLatestAvailableRevision') return publishes;
  if (['writeStatus', 'updateStatus', 'writeCondition'].includes(op)) return verb === 'updateStatus' && !publishes;
  if (op === 'markReady') return verb === 'update' && path.includes('/revision-status-');
  const target = String(fault.object ?? fault.resource ?? fault.name ?? fault[op] ?? rest.join(' '));
  assert.ok(verbs.includes(op) && target !== '', `a fault nobody knows: ${JSON.stringify(fault)}`);
  const named = target.replace(/^(configmap|secret)s?[ /]/i, (_match, kind: string) => `${kind.toLowerCase()}s/`);
  return verb === op && (path === named || path.endsWith(`/${named}`));
}

async function answerOf({ returns, error }: Json): Promise<boolean> {
  if (error) throw new Error(typeof error === 'string' ? error : 'no answer');
  return returns;
}

async function resultOf(cluster: TestCluster, reconcile: Parameters<TestCluster['run']>[0]): Promise<string> {
  try {
    const result = await cluster.run(reconcile);
    return result?.retry ? 'requeue' : 'ok';
  } catch (error) {
    return error instanceof RetryRequest ? 'requeue' : 'error';
  }
}

function checkStatus(found: Json, expected: Json): void {
  if (expected === undefined) return;
  if (expected.latestAvailableRevision !== undefined) {
    assert.equal(found.latestAvailableRevision ?? 0, expected.latestAvailableRevision);
  }
  checkConditions(found.conditions, expected.conditions ?? []);
}

async function checkOwner(expected: Json, get: (path: string) => Promise<Json>): Promise<void> {
  for (const [path, owner] of Object.entries<Json>(expected.apiVersion === undefined ? expected : { [expected.of]: expected })) {
    const [found, ...more] = (await get(path))?.metadata?.ownerReferences ?? [];
    assert.equal(more.length, 0);
    for (const field of ['apiVersion', 'kind', 'name']) if (owner[field] !== undefined) assert.equal(found?.[field], owner[field]);
    assert.equal(found?.controller ?? false, owner.controller ?? false);
    assert.equal(found?.blockOwnerDeletion ?? false, owner.blockOwnerDeletion ?? false);
  }
}
