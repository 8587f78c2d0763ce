import assert from 'node:assert/strict';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { fixedAccess } from './access.ts';
import { HttpKube } from './client.ts';
import { VirtualClock } from './clock.ts';
import { minutes, seconds } from './duration.ts';
import { Informer, type InformerOptions } from './informer.ts';
import { CONFIG_MAPS } from './resource.ts';
import { answer, eventually, TestApi } from './test-api.ts';

const COLLECTION = '/api/v1/namespaces/ns/configmaps';
const FAST = { firstMs: 1, longestMs: 4 };
const configMap = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  metadata: { namespace: 'ns', name },
  data,
});

describe('Informer', () => {
  let api: TestApi;
  let kube: HttpKube;
  let informer: Informer<ConfigMap>;
  let heard: string[];
  let errors: unknown[];

  const start = (options: InformerOptions<ConfigMap> = {}) => {
    informer = new Informer(kube, CONFIG_MAPS, {
      selection: { namespace: 'ns' },
      backoff: FAST,
      onError: error => errors.push(error),
      ...options,
    });
    informer.subscribe({
      add: object => heard.push(`add ${object.metadata?.name} ${object.data?.k ?? ''}`),
      update: (before, after) => heard.push(`update ${after.metadata?.name} ${before.data?.k}->${after.data?.k}`),
      delete: last => heard.push(`delete ${last.metadata?.name} ${last.data?.k ?? ''}`),
    });
    return informer.start().synced;
  };
  const watching = () => eventually(() => api.watchers === 1, 'the watch is open');

  beforeEach(async () => {
    api = await TestApi.start();
    kube = new HttpKube(fixedAccess(api.url));
    heard = [];
    errors = [];
  });

  afterEach(async () => {
    await informer.stop();
    await eventually(() => api.watchers === 0, 'no watch is left after the stop');
    await kube.close();
    await eventually(() => api.sockets.size === 0, 'no connection is left after closing');
    await api.stop();
  });

  it('lists in pages, then follows every change', async () => {
    for (let i = 0; i < 7; i++) api.put(COLLECTION, configMap(`c${i}`, { k: '0' }));
    await start({ pageSize: 3 });
    assert.equal(informer.hasSynced, true);
    assert.equal(informer.list().length, 7);
    await watching();
    api.put(COLLECTION, configMap('c0', { k: '1' }));
    api.put(COLLECTION, configMap('new', { k: 'n' }));
    api.remove(COLLECTION, 'c1');
    await eventually(() => heard.length === 10, 'all changes were heard');
    assert.deepEqual(heard.slice(7), ['update c0 0->1', 'add new n', 'delete c1 0']);
    assert.equal(informer.get({ namespace: 'ns', name: 'c0' })?.data?.k, '1');
    assert.equal(informer.get({ namespace: 'ns', name: 'c1' }), undefined);
    const watch = api.requests.find(request => request.query.has('watch'));
    assert.equal(watch?.query.get('allowWatchBookmarks'), 'true');
    const timeout = Number(watch.query.get('timeoutSeconds'));
    assert.ok(timeout >= 300 && timeout < 600, `found ${timeout}`);
  });

  it('tells a late subscriber what is there', async () => {
    api.put(COLLECTION, configMap('a'));
    await start();
    const late: string[] = [];
    const stop = informer.subscribe({ add: object => late.push(object.metadata?.name ?? '') });
    assert.deepEqual(late, ['a']);
    stop();
    await watching();
    api.put(COLLECTION, configMap('b'));
    await eventually(() => heard.length === 2, 'the other subscriber heard of b');
    assert.deepEqual(late, ['a']);
  });

  it('resumes from a bookmark although everything before it is compacted', async () => {
    await start();
    await watching();
    api.put('/api/v1/namespaces/other/configmaps', configMap('x'));
    api.bookmark();
    api.put(COLLECTION, configMap('a'));
    await eventually(() => heard.length === 1, 'a was heard');
    api.compact();
    for (const socket of api.sockets) socket.resetAndDestroy();
    await eventually(() => api.watchers === 1 && errors.length > 0, 'the watch is open again');
    api.put(COLLECTION, configMap('b'));
    await eventually(() => heard.length === 2, 'b was heard');
    assert.equal(api.requests.filter(request => !request.query.has('watch')).length, 1, 'listed only once');
  });

  it('after 410, works out what happened: real deletions only, each change once', async () => {
    for (const name of ['stays', 'changes', 'goes', 'reborn']) api.put(COLLECTION, configMap(name, { k: '1' }));
    await start();
    await watching();
    heard.length = 0;
    // While the watch is cut, nothing of this can be heard.
    api.intercept = (_seen, response) => {
      answer(response, 500, 'InternalError', 'not now');
      return true;
    };
    for (const socket of api.sockets) socket.destroy();
    await eventually(() => api.watchers === 0, 'the watch is cut');
    api.put(COLLECTION, configMap('changes', { k: '2' }));
    api.remove(COLLECTION, 'goes');
    api.remove(COLLECTION, 'reborn');
    api.put(COLLECTION, configMap('reborn', { k: '9' }));
    api.put(COLLECTION, configMap('comes', { k: '1' }));
    api.put(COLLECTION, configMap('short-lived'));
    api.remove(COLLECTION, 'short-lived');
    api.compact();
    api.intercept = undefined;
    await watching();
    assert.deepEqual(heard.sort(), [
      'add comes 1',
      'add reborn 9',
      'delete goes 1',
      'delete reborn 1',
      'update changes 1->2',
    ]);
    assert.equal(informer.list().length, 4);
  });

  it('finds objects by index and namespace', async () => {
    api.put(COLLECTION, configMap('a', { color: 'red' }));
    api.put('/api/v1/namespaces/other/configmaps', {
      metadata: { name: 'b', namespace: 'other' },
      data: { color: 'red' },
    } as ConfigMap);
    await start({ selection: {}, indexes: { color: object => (object.data?.color ? [object.data.color] : []) } });
    const names = (objects: ConfigMap[]) => objects.map(object => object.metadata?.name ?? '').sort();
    assert.deepEqual(names(informer.by('color', 'red')), ['a', 'b']);
    assert.deepEqual(names(informer.list('other')), ['b']);
    await watching();
    api.put(COLLECTION, configMap('a', { color: 'blue' }));
    await eventually(() => informer.by('color', 'blue').length === 1, 'the index follows');
    assert.deepEqual(names(informer.by('color', 'red')), ['b']);
    assert.throws(() => informer.by('size', '1'), /no index "size"/);
  });

  it('gives frozen objects without managed fields', async () => {
    const metadata = { name: 'a', namespace: 'ns', managedFields: [{ manager: 'm' }] };
    api.put(COLLECTION, { metadata, data: { k: '1' } } as ConfigMap);
    await start();
    const object = informer.get({ namespace: 'ns', name: 'a' }) ?? assert.fail();
    assert.equal(object.metadata?.managedFields, undefined);
    assert.throws(() => {
      (object.data as Record<string, string>).k = '2';
    }, TypeError);
  });

  it('a handler that throws neither stops the others nor the informer', async () => {
    await start();
    informer.subscribe({
      add: () => {
        throw new Error('handler');
      },
    });
    await watching();
    api.put(COLLECTION, configMap('a'));
    api.put(COLLECTION, configMap('b'));
    await eventually(() => heard.length === 2, 'both were heard');
    assert.equal(errors.length, 2);
  });

  it('keeps trying until the API is there; a stop before that rejects the wait', async () => {
    let refusals = 3;
    api.intercept = (_seen, response) => {
      if (refusals-- <= 0) return false;
      answer(response, 503, 'ServiceUnavailable', 'starting');
      return true;
    };
    await start();
    assert.equal(errors.length, 3);
    const other = new Informer(kube, CONFIG_MAPS).start();
    const { synced } = other;
    await other.stop();
    await assert.rejects(async () => {
      await synced;
      await new Informer(kube, CONFIG_MAPS).synced;
    }, /has been stopped/);
  });

  it('refuses to hold more objects than it may', async () => {
    for (let i = 0; i < 3; i++) api.put(COLLECTION, configMap(`c${i}`));
    await start({ mostObjects: 4 });
    await watching();
    for (let i = 3; i < 9; i++) api.put(COLLECTION, configMap(`c${i}`));
    await eventually(() => errors.length > 2, 'it complains');
    assert.match(String(errors[0]), /expected at most 4 configmaps/);
    assert.ok(informer.list().length <= 5);
    for (let i = 0; i < 9; i++) if (i !== 4) api.remove(COLLECTION, `c${i}`);
    await eventually(() => informer.list().length === 1, 'it recovers');
  });

  it('takes a store that was wiped for what it is', async () => {
    for (let i = 0; i < 5; i++) api.put(COLLECTION, configMap(`c${i}`));
    await start();
    await watching();
    heard.length = 0;
    api.wipe();
    api.put(COLLECTION, configMap('c1', { k: 'new' }));
    await eventually(() => informer.list().length === 1, 'the old objects are gone');
    assert.deepEqual(
      heard.filter(line => line.startsWith('add')),
      ['add c1 new'],
    );
    assert.equal(heard.filter(line => line.startsWith('delete')).length, 5);
  });

  it('lists again when the server sends something from before', async () => {
    api.put(COLLECTION, configMap('a', { k: '1' }));
    await start();
    await watching();
    let isOld = true;
    api.sendLine = (response, line) => {
      response.write(isOld ? line.replace(/"resourceVersion":"\d+"/, '"resourceVersion":"3"') : line);
      isOld = false;
      return true;
    };
    api.put(COLLECTION, configMap('a', { k: '2' }));
    await eventually(() => heard.length === 2, 'the change was heard');
    assert.deepEqual(heard, ['add a 1', 'update a 1->2']);
    assert.equal(api.requests.filter(request => !request.query.has('watch')).length, 2);
  });

  describe('remember (spec 10, W-4)', () => {
    const key = { namespace: 'ns', name: 'a' };
    /** Holds back what the watch has to say until it is let go. */
    const delay = () => {
      const held: (() => void)[] = [];
      api.sendLine = (response, line) => {
        held.push(() => response.write(line));
        return true;
      };
      return () => {
        for (const release of held.splice(0)) release();
      };
    };

    it('a written object is read back at once, and heard of once', async () => {
      api.put(COLLECTION, configMap('a', { k: '1' }));
      await start();
      await watching();
      const release = delay();
      const written = await kube.update(CONFIG_MAPS, { ...structuredClone(informer.get(key) ?? {}), data: { k: '2' } });
      assert.equal(informer.get(key)?.data?.k, '1');
      informer.remember(written);
      assert.equal(informer.get(key)?.data?.k, '2');
      await kube.create(CONFIG_MAPS, configMap('end'));
      release();
      await eventually(() => heard.includes('add end '), 'the watch has caught up');
      assert.deepEqual(heard, ['add a 1', 'update a 1->2', 'add end ']);
    });

    it('an older event that comes late does not undo it', async () => {
      await start();
      await watching();
      const release = delay();
      api.put(COLLECTION, configMap('a', { k: 'foreign' }));
      const written = await kube.update(CONFIG_MAPS, configMap('a', { k: 'ours' }));
      informer.remember(written);
      release();
      api.put(COLLECTION, configMap('end'));
      release();
      await eventually(() => heard.includes('add end '), 'the watch has caught up');
      assert.deepEqual(heard, ['add a ours', 'add end ']);
    });

    it('what was deleted meanwhile stays dead', async () => {
      await start();
      await watching();
      const written = await kube.create(CONFIG_MAPS, configMap('a'));
      api.remove(COLLECTION, 'a');
      await eventually(() => heard.length === 2, 'add and delete were heard');
      informer.remember(written);
      assert.equal(informer.get(key), undefined);
    });

    it('survives a list that is older than the write', async () => {
      await start();
      await watching();
      let pending: (() => void) | undefined;
      api.intercept = ({ query }, response) => {
        if (query.has('watch') || pending !== undefined) return false;
        const body = JSON.stringify({ metadata: { resourceVersion: api.revision }, items: [] });
        pending = () => response.end(body);
        return true;
      };
      api.put('/api/v1/namespaces/other/configmaps', configMap('x'));
      api.compact();
      for (const socket of api.sockets) socket.destroy();
      await eventually(() => pending !== undefined, 'the list is under way');
      informer.remember(api.put(COLLECTION, configMap('a', { k: 'ours' })) as ConfigMap);
      pending?.();
      await watching();
      assert.equal(informer.get(key)?.data?.k, 'ours');
      assert.deepEqual(heard, ['add a ours']);
    });

    it('knows the one object it watches by name', async () => {
      await start({ selection: { namespace: 'ns', fieldSelector: 'metadata.name=a' } });
      informer.remember({ metadata: { name: 'b', namespace: 'ns', resourceVersion: '9998' } });
      informer.remember({ metadata: { name: 'a', namespace: 'ns', resourceVersion: '9999' } });
      assert.deepEqual(
        informer.list().map(object => object.metadata?.name),
        ['a'],
      );
    });

    it('ignores what the selection does not hold', async () => {
      await start({ selection: { namespace: 'ns', labelSelector: 'app=x' } });
      informer.remember(api.put(COLLECTION, configMap('a')) as ConfigMap);
      assert.equal(informer.get(key), undefined);
      await informer.stop();
      await start({
        selection: { namespace: 'ns', labelSelector: 'app=x' },
        selects: object => object.metadata?.labels?.app === 'x',
      });
      const labelled = { metadata: { name: 'b', namespace: 'ns', labels: { app: 'x' } } };
      informer.remember(api.put('/nowhere', labelled) as ConfigMap);
      informer.remember({ metadata: { ...labelled.metadata, namespace: 'other', resourceVersion: '9999' } });
      assert.deepEqual(
        informer
          .list()
          .map(object => object.metadata?.name ?? '')
          .sort(),
        ['a', 'b'],
      );
    });
  });
});

describe('Informer and time', () => {
  it('finds out that a server was started anew although it keeps the old watch open', async () => {
    const clock = new VirtualClock('2024-01-01T00:00:00Z');
    const api = await TestApi.start();
    for (let i = 0; i < 3; i++) api.put(COLLECTION, configMap(`old${i}`));
    const kube = new HttpKube(fixedAccess(api.url));
    const informer = new Informer(kube, CONFIG_MAPS, { clock, backoff: FAST }).start();
    try {
      await informer.synced;
      await eventually(() => api.watchers === 1, 'the watch is open');
      let held = 0;
      api.intercept = ({ query }, response) => {
        if (Number(query.get('resourceVersion')) <= Number(api.revision)) return false;
        held++;
        response.writeHead(200).flushHeaders();
        return true;
      };
      api.wipe();
      api.put(COLLECTION, configMap('new'));
      await eventually(() => {
        void clock.advance(10);
        return held === 1;
      }, 'a watch from the future of the server is open');
      assert.equal(informer.list().length, 3);
      await clock.advance(minutes(3));
      await eventually(() => informer.list().length === 1, 'the new state is there');
      assert.equal(informer.list()[0]?.metadata?.name, 'new');
    } finally {
      await informer.stop();
      await kube.close();
      await api.stop();
    }
  });

  it('gives up a silent watch and begins again where it was; pauses grow', async () => {
    const clock = new VirtualClock('2024-01-01T00:00:00Z');
    const api = await TestApi.start();
    const kube = new HttpKube(fixedAccess(api.url));
    const backoff = { firstMs: seconds(1), longestMs: seconds(4), random: () => 0.5 };
    const informer = new Informer(kube, CONFIG_MAPS, { clock, backoff, silenceMs: minutes(3) }).start();
    const heard: string[] = [];
    informer.subscribe({ add: object => heard.push(object.metadata?.name ?? '') });
    try {
      await informer.synced;
      await eventually(() => api.watchers === 1, 'the watch is open');
      const watches = () => api.requests.filter(request => request.query.has('watch')).length;
      // The first watch stalls: the server sends nothing any more, and the connection stays open.
      api.sendLine = () => true;
      api.put(COLLECTION, configMap('lost'));
      api.sendLine = (response, line) => response.write(line) || true;
      await clock.advance(minutes(2));
      assert.equal(watches(), 1);
      await clock.advance(minutes(1));
      await eventually(
        () => watches() === 2 && heard.includes('lost'),
        'the second watch brought what the first one held back',
      );

      api.intercept = (_seen, response) => {
        answer(response, 500, 'InternalError', 'broken');
        return true;
      };
      const begun = watches();
      for (const socket of api.sockets) socket.destroy();
      const pauses: number[] = [];
      for (let failures = 1; failures <= 4; failures++) {
        await eventually(() => {
          const next = clock.nextWait()?.getTime() ?? 0;
          return watches() === begun + failures - 1 && next > 0 && next - clock.now().getTime() <= seconds(4);
        }, 'it pauses');
        const pause = (clock.nextWait()?.getTime() ?? 0) - clock.now().getTime();
        pauses.push(pause);
        await clock.advance(pause);
      }
      assert.deepEqual(pauses, [750, 1500, 3000, 3000]);
    } finally {
      await informer.stop();
      await kube.close();
      await api.stop();
    }
    assert.equal(clock.nextWait(), undefined, 'no timer is left');
  });
});
