import assert from 'node:assert/strict';
import type { ObjectReference } from 'kubernetes-types/core/v1.d.ts';
import { VirtualClock } from '../../../src/kube/clock.ts';
import { applyConfigMap, applyPod, applySecret } from '../../../src/kube/apply.ts';
import { DEFAULT_CORRELATION, EventCorrelator, SINGLETON_CORRELATION } from '../../../src/kube/event-correlation.ts';
import { EventWriter } from '../../../src/kube/event-writer.ts';
import { eventsTo, type RecordedEvent, recordingEvents } from '../../../src/kube/events.ts';
import { findInvolvedObject } from '../../../src/kube/involved-object.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import { mergeOwnerReferences } from '../../../src/kube/metadata.ts';
import { CONFIG_MAPS, EVENTS, PODS, REPLICA_SETS, type Resource, SECRETS } from '../../../src/kube/resource.ts';
import { syncSecret } from '../../../src/kube/sync-copy.ts';
import { liveObjects } from '../../../src/staticpod/objects.ts';
import { type Location, resourceSyncReconcile, SyncRules } from '../../../src/staticpod/resource-sync.ts';
import { intercepted, NOW, TestCluster } from '../../../src/staticpod/testing.ts';
import { type Adapter, attempt, base64, checkConditions, checkError, checkEvent, defined, errorOf, type Json, objectOf } from './case.ts';

export const kubeAdapters: Record<string, Adapter> = {
  'apply.configMap': (given, expected) => checkApply(CONFIG_MAPS, applyConfigMap, given, expected),
  'apply.secret': (given, expected) => checkApply(SECRETS, applySecret, given, expected),
  'apply.pod': (given, expected) => checkApply(PODS, applyPod, given, expected),

  async 'apply.syncSecret'(given, expected) {
    const kube = new MemoryKube();
    for (const object of given.objects) await kube.create(SECRETS, objectOf({ kind: 'Secret', ...object }, ''));
    const events = recordingEvents();
    const [source, target] = [placeOf(given.source), placeOf(given.target)];
    let result: Json;
    const error = await attempt(async () => (result = await syncSecret({ kube, events }, source, target, defined({ keys: given.keys }))));
    checkError(error, expected.error);
    if (expected.changed !== undefined) assert.equal(result?.changed ?? false, expected.changed);
    const stored = await liveObjects(kube).get(SECRETS, target);
    if (expected.target === null) assert.equal(stored, undefined);
    else if (expected.target !== undefined) {
      const { namespace, name, type, data, annotations, ...others } = expected.target;
      assert.deepEqual(others, {});
      if (name !== undefined) assert.deepEqual(target, { namespace, name });
      assert.equal(stored?.type, type);
      assert.deepEqual(stored?.data ?? {}, base64(data) ?? {});
      assert.deepEqual(stored?.metadata?.annotations ?? {}, annotations ?? {});
    }
    if (expected.event !== undefined) checkEvent(events.events.at(-1), expected.event);
  },

  'apply.ownerReferences'({ existing, required }, expected) {
    const { result, changed } = mergeOwnerReferences(existing ?? undefined, required ?? undefined);
    assert.deepEqual(result, expected.result);
    assert.equal(changed, expected.modified);
  },

  async 'resourceSync.rule'({ watchedNamespaces, rule }, expected) {
    const rules = new SyncRules(watchedNamespaces);
    const error = await attempt(() => rules.add(rule.kind, placeOf(rule.destination), rule.source ? placeOf(rule.source) : undefined));
    checkError(error, expected.error);
  },

  async 'resourceSync.sync'(given, expected) {
    const memory = new MemoryKube();
    const kube = intercepted(memory, (verb, resource, name) => {
      for (const fault of given.faults ?? []) {
        const [kind, place = ''] = String(fault[verb] ?? '').split(' ');
        if (`${kind}s` === resource.plural && place.endsWith(`/${name}`)) throw errorOf(fault.error);
      }
    });
    const cluster = new TestCluster({ kube });
    await cluster.setOperator({}, defined({ managementState: given.managementState }));
    const contents = (text: Json) => (typeof text === 'string' ? { place: text, data: { key: 'value' } } : { place: `${text.kind} ${text.name}`, data: text.data });
    for (const object of given.objects) {
      const { place, data } = contents(object);
      const [kind, path = ''] = place.split(' ');
      await memory.create(resourceOf(kind), { metadata: { ...placeOf(path) }, data } as Json);
    }
    const namespaces = given.rules.flatMap(({ destination, source }: Json) => [destination, source].filter(Boolean).map(place => placeOf(place).namespace));
    const rules = new SyncRules(namespaces);
    for (const { kind, destination, source, provider, keys, precondition, preconditionError } of given.rules) {
      const check = () => {
        if (preconditionError) throw new Error(preconditionError);
        return precondition;
      };
      const from = source && { ...placeOf(source), ...defined({ provider, keys }), ...(precondition === undefined && !preconditionError ? {} : { precondition: check }) };
      rules.add(kind, placeOf(destination), from || undefined);
    }
    const error = await attempt(() => cluster.run(resourceSyncReconcile({ ...cluster.parts, rules })));
    if (expected.result !== undefined) assert.equal(error === undefined ? 'ok' : 'error', expected.result);
    const has = async (text: string) => {
      const [kind, path = ''] = text.split(' ');
      return (await liveObjects(memory).get(resourceOf(kind), placeOf(path))) !== undefined;
    };
    for (const text of expected.present ?? []) assert.ok(await has(text), `${text} is missing`);
    for (const text of expected.absent ?? []) assert.ok(!(await has(text)), `${text} is there`);
    if (expected.condition !== undefined) checkConditions((await cluster.status()).conditions, [expected.condition]);
  },

  async 'events.record'({ component, involved, reason, message, type = 'Normal' }, { event }) {
    const kube = new MemoryKube();
    const writer = new EventWriter(kube, { clock: new VirtualClock(NOW) });
    writer.recorder(component, involved).event(type, reason, message);
    await writer.flush();
    const { items } = await kube.list(EVENTS);
    assert.equal(items.length, 1);
    const [stored] = items as Json[];
    for (const [field, value] of Object.entries(event)) {
      if (field === 'namePattern') assert.match(stored.metadata.name, new RegExp(value as string));
      else if (field === 'namespace') assert.equal(stored.metadata.namespace, value);
      else assert.deepEqual(stored[field], value, field);
    }
  },

  async 'events.controllerRef'({ podNameEnv, pod, replicaSet, namespace = 'ns' }, expected) {
    const kube = new MemoryKube();
    const owned = ({ name, controller }: Json) => {
      if (!controller) return { metadata: { namespace, name } };
      const [apiVersion, kind, owner] = controller.split(' ');
      return { metadata: { namespace, name, ownerReferences: [{ apiVersion, kind, name: owner, uid: 'u', controller: true }] } };
    };
    if (pod) await kube.create(PODS, owned(pod));
    if (replicaSet) await kube.create(REPLICA_SETS, owned(replicaSet));
    const { reference, error } = await findInvolvedObject(kube, namespace, podNameEnv);
    for (const [field, value] of Object.entries(expected.reference ?? {})) assert.equal(reference[field as keyof ObjectReference], value, field);
    if (expected.error !== undefined) assert.equal(error !== undefined, expected.error);
  },

  'events.correlate'({ options, events, distinctMessages }, expected) {
    const correlator = new EventCorrelator(options === 'default' ? DEFAULT_CORRELATION : SINGLETON_CORRELATION);
    const stored = new Map<string, { message: string; count: number }>();
    let last = '';
    for (let index = 0; index < events; index++) {
      const message = distinctMessages ? `message ${index}` : 'message';
      const series = correlator.correlate({ source: 's', type: 'Normal', reason: 'R', message }, NOW);
      if (series === undefined) continue;
      stored.set(series.id, series);
      last = series.message;
    }
    if (expected.storedEvents !== undefined) assert.equal(stored.size, expected.storedEvents);
    if (expected.storedEventsMin !== undefined) assert.ok(stored.size >= expected.storedEventsMin);
    if (expected.countMin !== undefined) assert.ok([...stored.values()].every(({ count }) => count >= expected.countMin));
    if (expected.lastMessageContains !== undefined) assert.ok(last.includes(expected.lastMessageContains), last);
  },

  'events.component'({ parentComponent, controllerName, suffix }, { component }) {
    const found: RecordedEvent[] = [];
    const recorder = eventsTo(parentComponent, event => found.push(event));
    recorder.withComponent(suffix ?? controllerName.toLowerCase()).event('Normal', 'R', 'm');
    assert.equal(found[0]?.component, component);
  },

  'events.format'({ reason, message }, expected) {
    const { events, event } = recordingEvents();
    event('Warning', reason, message);
    assert.equal(events[0]?.message, expected.message);
  },
};

async function checkApply(resource: Resource<Json>, apply: (context: Json, object: Json) => Promise<Json>, given: Json, expected: Json): Promise<void> {
  const calls: string[] = [];
  const memory = new MemoryKube();
  const stored = (object: Json) => ({ ...objectOf({ kind: resource.kind, ...object }, ''), ...defined({ spec: object.spec, stringData: object.stringData }) });
  if (given.existing) await memory.create(resource, stored(given.existing));
  const events = recordingEvents();
  const kube = intercepted(memory, verb => {
    calls.push(verb);
  });
  let applied: Json;
  const required = { ...stored(given.required), ...(given.required.type === undefined ? { type: undefined } : {}) };
  const error = await attempt(async () => (applied = await apply({ kube, events }, required)));
  checkError(error, expected.error ?? (expected.action === 'error' ? true : null));
  if (expected.changed !== undefined) assert.equal(applied?.changed ?? false, expected.changed);
  if (expected.action !== undefined && expected.action !== 'error') {
    const writes = calls.filter(call => call !== 'get');
    assert.equal(writes.join('+') || 'none', expected.action);
  }
  if (expected.calls !== undefined) assert.deepEqual(calls, expected.calls);
  if (expected.object !== undefined) {
    const wanted = stored(expected.object);
    const found = await memory.get(resource, placeOf(`${expected.object.namespace}/${expected.object.name}`));
    for (const field of ['labels', 'annotations']) assert.deepEqual(found.metadata[field] ?? {}, (wanted.metadata as Json)[field] ?? {});
    for (const field of ['data', 'binaryData']) assert.deepEqual(found[field] ?? {}, (wanted as Json)[field] ?? {});
    if (expected.object.type !== undefined) assert.equal(found.type, expected.object.type);
  }
  if (expected.event !== undefined) checkEvent(events.events.at(-1), expected.event);
}

function placeOf(path: string): Location {
  const [namespace = '', name = ''] = path.split('/');
  return { namespace, name };
}

function resourceOf(kind: string | undefined): Resource {
  return kind === 'secret' ? SECRETS : CONFIG_MAPS;
}
