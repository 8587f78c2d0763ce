import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Event, ObjectReference, Pod } from 'kubernetes-types/core/v1.d.ts';
import type { OwnerReference } from 'kubernetes-types/meta/v1.d.ts';
import { VirtualClock } from './clock.ts';
import { minutes, seconds } from './duration.ts';
import { ConnectionError, KubeError } from './error.ts';
import { DEFAULT_CORRELATION, EventCorrelator, SINGLETON_CORRELATION } from './event-correlation.ts';
import { EventWriter, type EventWriterOptions } from './event-writer.ts';
import { eventsTo, nameForPeople, recordingEvents } from './events.ts';
import { findInvolvedObject } from './involved-object.ts';
import { MemoryKube } from './memory.ts';
import type { Patch } from './port.ts';
import { EVENTS, type KubeObject, LEASES, type ObjectKey, PODS, REPLICA_SETS, type Resource } from './resource.ts';

/** An API that can patch and fail. */
class EventKube extends MemoryKube {
  readonly failures: Error[] = [];
  attempts = 0;

  override async create<T extends KubeObject>(resource: Resource<T>, object: T): Promise<T> {
    this.attempts++;
    const failure = this.failures.shift();
    if (failure !== undefined) throw failure;
    return super.create(resource, object);
  }

  override async patch<T extends KubeObject>(resource?: Resource<T>, key?: ObjectKey, patch?: Patch): Promise<T> {
    if (resource === undefined || key === undefined || patch === undefined) assert.fail();
    return this.update(resource, Object.assign(await this.get(resource, key), patch.body));
  }
}

const involved: ObjectReference = { kind: 'Deployment', namespace: 'test-namespace', name: 'test', uid: 'u' };

function world(options: EventWriterOptions = {}) {
  const clock = new VirtualClock('2024-01-01T00:00:00Z');
  const kube = new EventKube();
  const errors: unknown[] = [];
  const writer = new EventWriter(kube, { clock, onError: error => errors.push(error), ...options });
  const recorder = writer.recorder('test-operator', involved);
  const stored = async () => (await kube.list(EVENTS, { namespace: 'test-namespace' })).items;
  return { clock, kube, errors, writer, recorder, stored };
}

describe('recorders', () => {
  it('nest components with dashes and keep messages as they are (T16)', () => {
    const events = recordingEvents('kube-apiserver-operator');
    events
      .withComponent('revisioncontroller')
      .event('Warning', 'RequiredInstallerResourcesMissing', 'configmaps: 100%-sure-4');
    assert.deepEqual(events.events, [
      {
        component: 'kube-apiserver-operator-revisioncontroller',
        type: 'Warning',
        reason: 'RequiredInstallerResourcesMissing',
        message: 'configmaps: 100%-sure-4',
      },
    ]);
  });

  it('never fail the caller', () => {
    eventsTo('c', () => {
      throw new Error('disk full');
    }).event('Normal', 'R', 'm');
  });

  it('name objects the way people type them', () => {
    assert.equal(
      nameForPeople(LEASES, { metadata: { name: 'l', namespace: 'ns' } }),
      'Lease.coordination.k8s.io/l -n ns',
    );
    assert.equal(nameForPeople(LEASES, { metadata: { name: 'l', namespace: '' } }), 'Lease.coordination.k8s.io/l');
  });
});

describe('EventWriter without correlation (spec 30, 4.2)', () => {
  it('makes one object for each event', async () => {
    const { writer, recorder, stored } = world();
    recorder.event('Normal', 'TestReason', 'foo');
    recorder.event('Normal', 'TestReason', 'foo');
    await writer.flush();
    const [first, second] = (await stored()) as [Event, Event];
    assert.match(first.metadata.name ?? '', /^test\.[0-9a-f]{16}$/);
    assert.notEqual(first.metadata.name, second.metadata.name);
    const { metadata: _metadata, apiVersion: _version, kind: _kind, ...rest } = first;
    assert.deepEqual(rest, {
      involvedObject: involved,
      type: 'Normal',
      reason: 'TestReason',
      message: 'foo',
      count: 1,
      firstTimestamp: '2024-01-01T00:00:00Z',
      lastTimestamp: '2024-01-01T00:00:00Z',
      source: { component: 'test-operator' },
    });
  });

  it('tries again when the server fails, gives up when it refuses', async () => {
    const { clock, kube, errors, writer, recorder, stored } = world();
    kube.failures.push(new ConnectionError('ECONNRESET', 'reset'), new KubeError(503, 'ServiceUnavailable', 'busy'));
    recorder.event('Normal', 'A', 'a');
    const flushed = writer.flush();
    await clock.advance(minutes(1));
    await flushed;
    assert.equal((await stored()).length, 1);
    kube.failures.push(new KubeError(403, 'Forbidden', 'namespace is being terminated'));
    recorder.event('Normal', 'B', 'b');
    recorder.event('Normal', 'C', 'c');
    await writer.flush();
    assert.deepEqual(
      (await stored()).map(event => event.reason),
      ['A', 'C'],
    );
    assert.equal(errors.length, 1);
  });

  it('keeps a limited number of events waiting, and messages of a limited length', async () => {
    const { errors, writer, recorder, stored } = world();
    for (let i = 0; i < 1005; i++) recorder.event('Normal', 'R', i === 0 ? 'x'.repeat(100_000) : `${i}`);
    await writer.flush();
    assert.equal((await stored()).length, 1000);
    assert.equal(errors.length, 5);
    assert.equal((await stored())[0]?.message?.length, 16 * 1024);
  });

  it('puts events about cluster-wide objects into default', async () => {
    const { kube, writer } = world();
    writer.recorder('c', { kind: 'Node', name: 'n' }).event('Normal', 'R', 'm');
    await writer.flush();
    assert.equal((await kube.list(EVENTS, { namespace: 'default' })).items.length, 1);
  });

  it('a stop writes what is waiting, but not for ever; later events are still tried', async () => {
    const { clock, kube, errors, writer, recorder, stored } = world();
    recorder.event('Normal', 'A', 'a');
    await writer.stop();
    assert.equal((await stored()).length, 1);
    recorder.event('Normal', 'B', 'b');
    await clock.advance(0);
    assert.equal((await stored()).length, 2);
    assert.equal(clock.nextWait(), undefined);

    const broken = world();
    broken.kube.failures.push(...Array.from({ length: 100 }, () => new KubeError(500, 'InternalError', 'broken')));
    broken.recorder.event('Normal', 'A', 'a');
    const stopping = broken.writer.stop();
    await broken.clock.advance(seconds(5));
    await stopping;
    assert.equal(broken.errors.length, 1);
    assert.equal(broken.clock.nextWait(), undefined);
    assert.ok(kube.attempts > 0 && errors.length === 0);
  });
});

describe('EventWriter with correlation (spec 30, 4.3)', () => {
  it('counts what is the same, keeps apart what is not', async () => {
    const { clock, writer, recorder, stored } = world({ correlation: SINGLETON_CORRELATION, host: 'master-0' });
    for (let i = 0; i < 31; i++) {
      recorder.event('Normal', 'TestReason', 'same');
      await clock.advance(seconds(1));
    }
    recorder.event('Normal', 'TestReason', 'another');
    await writer.flush();
    const [same, another, ...rest] = await stored();
    assert.equal(rest.length, 0);
    assert.equal(same?.count, 31);
    assert.equal(same.firstTimestamp, '2024-01-01T00:00:00Z');
    assert.equal(same.lastTimestamp, '2024-01-01T00:00:30Z');
    assert.deepEqual(same.source, { component: 'test-operator', host: 'master-0' });
    assert.equal(another?.count, 1);
  });

  it('by default folds many similar messages into one', async () => {
    const { writer, recorder, stored } = world({ correlation: DEFAULT_CORRELATION });
    for (let i = 0; i < 31; i++) recorder.event('Normal', 'TestReason', `message ${i}`);
    await writer.flush();
    const all = await stored();
    assert.equal(all.length, 10);
    assert.match(all.at(-1)?.message ?? '', /^\(combined from similar events\): message \d+$/);
  });

  it('makes a new object when the old one has expired', async () => {
    const { kube, writer, recorder, stored } = world({ correlation: SINGLETON_CORRELATION });
    recorder.event('Normal', 'R', 'm');
    await writer.flush();
    const [first] = await stored();
    await kube.delete(EVENTS, { namespace: 'test-namespace', name: first?.metadata.name ?? '' });
    recorder.event('Normal', 'R', 'm');
    await writer.flush();
    assert.deepEqual(
      (await stored()).map(event => event.count),
      [2],
    );
  });
});

describe('EventCorrelator', () => {
  const event = (message: string, source = 's') => ({ source, type: 'Normal', reason: 'R', message });

  it('holds a noisy source back and lets it speak again later', () => {
    const correlator = new EventCorrelator(SINGLETON_CORRELATION);
    const now = new Date('2024-01-01T00:00:00Z');
    const told = (at: Date, source?: string) =>
      Array.from({ length: 100 }, (_, i) => correlator.correlate(event(`${i}`, source), at)).filter(Boolean).length;
    assert.equal(told(now), 60);
    assert.equal(told(now, 'another source'), 60);
    assert.equal(told(new Date(now.getTime() + seconds(10))), 10);
    assert.equal(told(new Date(now.getTime() - minutes(10))), 0, 'a clock that is set back gives nothing');
  });

  it('a flood of one reason does not silence the others where every message counts; client-go knows no difference', () => {
    const now = new Date('2024-01-01T00:00:00Z');
    for (const [options, isTold] of [
      [SINGLETON_CORRELATION, true],
      [DEFAULT_CORRELATION, false],
    ] as const) {
      const correlator = new EventCorrelator(options);
      for (let i = 0; i < 100; i++) correlator.correlate(event(`copy ${i}`), now);
      const last = correlator.correlate({ ...event('what for'), reason: 'RevisionTriggered' }, now);
      assert.equal(last !== undefined, isTold);
    }
  });

  it('does not fold what is far apart in time', () => {
    const correlator = new EventCorrelator({ ...DEFAULT_CORRELATION, burst: 1000 });
    let now = new Date('2024-01-01T00:00:00Z');
    for (let i = 0; i < 30; i++) {
      assert.equal(correlator.correlate(event(`${i}`), now)?.message, `${i}`);
      now = new Date(now.getTime() + minutes(11));
    }
  });

  it('forgets what has not been used for long', () => {
    const correlator = new EventCorrelator({ burst: 1, refillMs: 1 });
    let now = new Date('2024-01-01T00:00:00Z');
    correlator.correlate(event('first'), now);
    for (let i = 0; i < 5000; i++) correlator.correlate(event(`${i}`), (now = new Date(now.getTime() + 1)));
    assert.equal(correlator.correlate(event('first'), new Date(now.getTime() + 1))?.count, 1);
  });
});

describe('findInvolvedObject (spec 30, 4.4)', () => {
  const namespace = 'ns';
  const controller = (apiVersion: string, kind: string, name: string): OwnerReference[] => [
    { apiVersion: 'v1', kind: 'Node', name: 'someone else', uid: 'n' },
    { apiVersion, kind, name, uid: `uid-of-${name}`, controller: true },
  ];
  const pod = (name: string, ownerReferences: OwnerReference[] = []): Pod => ({
    metadata: { namespace, name, ownerReferences },
  });

  it('a bare pod is meant itself', async () => {
    const kube = new MemoryKube();
    const { metadata } = await kube.create(PODS, pod('test'));
    const { reference, error } = await findInvolvedObject(kube, namespace, 'test');
    assert.deepEqual(reference, { apiVersion: 'v1', kind: 'Pod', name: 'test', namespace, uid: metadata?.uid });
    assert.equal(error, undefined);
  });

  it('pod, ReplicaSet, Deployment: as far up as it goes', async () => {
    const kube = new MemoryKube();
    await kube.create(PODS, pod('test', controller('apps/v1', 'ReplicaSet', 'rs')));
    await kube.create(REPLICA_SETS, {
      metadata: { namespace, name: 'rs', ownerReferences: controller('apps/v1', 'Deployment', 'd') },
    });
    const expected = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd', namespace, uid: 'uid-of-d' };
    assert.deepEqual((await findInvolvedObject(kube, namespace, 'test')).reference, expected);
    await kube.create(PODS, pod('another'));
    assert.deepEqual(
      (await findInvolvedObject(kube, namespace, undefined)).reference,
      expected,
      'found by looking around',
    );
  });

  it('where nothing can be found, the namespace, and why', async () => {
    const kube = new MemoryKube();
    await kube.create(PODS, pod('bare'));
    for (const name of [undefined, 'missing']) {
      const { reference, error } = await findInvolvedObject(kube, namespace, name);
      assert.deepEqual(reference, { apiVersion: 'v1', kind: 'Namespace', name: namespace, namespace });
      assert.ok(error instanceof Error);
    }
  });
});
