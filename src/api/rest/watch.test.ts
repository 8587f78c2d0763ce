import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { KubeError } from '../../kube/error.ts';
import type { WatchEvent, WatchOptions } from '../../kube/port.ts';
import { CONFIG_MAPS, EVENTS, NAMESPACES, resource } from '../../kube/resource.ts';
import { type Engine, startEngine } from '../engine.ts';
import { INITIAL_EVENTS_END } from './bookmark.ts';

describe('watch', () => {
  const namespace = 'watched';
  let engine: Engine;
  let clock: VirtualClock;

  before(async () => {
    clock = new VirtualClock('2026-01-01T00:00:00Z');
    engine = await startEngine({ clock });
    await engine.kube.create(NAMESPACES, { metadata: { name: namespace } });
    await engine.idle();
  });
  after(() => engine.close());

  const put = (name: string, labels: Record<string, string> = {}) =>
    engine.kube.create(CONFIG_MAPS, { metadata: { name, namespace, labels } });
  const label = (name: string, labels: Record<string, string | null>) =>
    engine.kube.patch(CONFIG_MAPS, { name, namespace }, { type: 'merge', body: { metadata: { labels } } });
  const remove = (name: string) => engine.kube.delete(CONFIG_MAPS, { name, namespace });
  const now = async () => (await engine.kube.list(CONFIG_MAPS, { namespace })).metadata.resourceVersion;

  /** Takes events until there are `count`, and ends the watch. */
  async function take(count: number, options: WatchOptions = {}): Promise<WatchEvent<ConfigMap>[]> {
    const events: WatchEvent<ConfigMap>[] = [];
    if (count === 0) return events;
    for await (const event of engine.kube.watch(CONFIG_MAPS, { namespace, ...options })) {
      events.push(event);
      if (events.length === count) break;
    }
    return events;
  }

  const texts = (events: readonly WatchEvent<ConfigMap>[]) =>
    events.map(({ type, object }) => `${type} ${object.metadata?.name ?? ''}`);

  it('shows every change since a version, in order, with its own version', async () => {
    const resourceVersion = await now();
    await put('one');
    await label('one', { a: 'b' });
    await remove('one');
    const events = await take(3, { resourceVersion });
    assert.deepEqual(texts(events), ['ADDED one', 'MODIFIED one', 'DELETED one']);
    const versions = events.map(({ object }) => Number(object.metadata?.resourceVersion));
    assert.deepEqual(
      versions,
      [...versions].sort((a, b) => a - b),
    );
    assert.ok((versions[2] ?? 0) > (versions[1] ?? 0));
  });

  it('begins with what is there when no version is named', async () => {
    assert.deepEqual(texts(await take(1)), ['ADDED kube-root-ca.crt']);
    assert.deepEqual(texts(await take(1, { resourceVersion: '0' })), ['ADDED kube-root-ca.crt']);
  });

  it('ends the initial events with a bookmark when asked to', async () => {
    const events = await take(2, { sendInitialEvents: true, allowWatchBookmarks: true });
    assert.deepEqual(texts(events), ['ADDED kube-root-ca.crt', 'BOOKMARK ']);
    assert.equal(events[1]?.object.metadata?.annotations?.[INITIAL_EVENTS_END], 'true');
    assert.equal(events[1]?.object.metadata?.resourceVersion, String(engine.core.store.revision));
  });

  it('lets objects come and go with the selector', async () => {
    const resourceVersion = await now();
    await put('chosen');
    const out = await label('chosen', { pick: 'me' });
    await label('chosen', { other: 'x' });
    const left = await label('chosen', { pick: 'not' });
    await remove('chosen');
    await put('chosen-2', { pick: 'me' });
    const events = await take(4, { resourceVersion, labelSelector: 'pick=me' });
    assert.deepEqual(texts(events), ['ADDED chosen', 'MODIFIED chosen', 'DELETED chosen', 'ADDED chosen-2']);
    assert.equal(events[0]?.object.metadata?.resourceVersion, out.metadata?.resourceVersion);
    // The last state that matched, with the version of the change that ended it.
    assert.equal(events[2]?.object.metadata?.labels?.['pick'], 'me');
    assert.equal(events[2]?.object.metadata?.resourceVersion, left.metadata?.resourceVersion);
    await remove('chosen-2');
  });

  it('sees one namespace, or one name, or all of them', async () => {
    const resourceVersion = await now();
    await put('mine');
    await engine.kube.create(CONFIG_MAPS, { metadata: { name: 'theirs', namespace: 'default' } });
    await put('last');
    assert.deepEqual(texts(await take(2, { resourceVersion })), ['ADDED mine', 'ADDED last']);
    assert.deepEqual(texts(await take(3, { resourceVersion, namespace: undefined })), [
      'ADDED mine',
      'ADDED theirs',
      'ADDED last',
    ]);
    assert.deepEqual(texts(await take(1, { resourceVersion, fieldSelector: 'metadata.name=last' })), ['ADDED last']);
    await Promise.all([remove('mine'), remove('last')]);
  });

  it('says so when the version is gone', async () => {
    const resourceVersion = await now();
    await put('gone');
    engine.core.store.compact(engine.core.store.revision);
    await assert.rejects(
      take(1, { resourceVersion }),
      (error: KubeError) => error.code === 410 && error.reason === 'Expired',
    );
    await remove('gone');
  });

  it('ends on abort, at its time limit, and takes its listener with it', async () => {
    const abort = new AbortController();
    const ended = Promise.all([
      take(99, { resourceVersion: await now(), signal: abort.signal }),
      take(99, { resourceVersion: await now(), timeoutSeconds: 5 }),
    ]);
    await clock.advance(seconds(6));
    abort.abort();
    assert.deepEqual(await ended, [[], []]);
  });

  it('shows the same Events under both of their APIs', async () => {
    const modern = resource('events.k8s.io/v1', 'Event', 'events');
    await engine.kube.create(EVENTS, {
      metadata: { name: 'e', namespace },
      involvedObject: { kind: 'Pod', name: 'p', namespace },
      reason: 'Because',
      message: 'hello',
      type: 'Normal',
    });
    const read = (await engine.kube.get(modern, { name: 'e', namespace })) as {
      note?: string;
      regarding?: { name: string };
    };
    assert.deepEqual([read.note, read.regarding?.name], ['hello', 'p']);
    const [listed] = (await engine.kube.list(modern, { namespace, fieldSelector: 'reason=Because' })).items;
    assert.equal(listed?.apiVersion, 'events.k8s.io/v1');
  });
});
