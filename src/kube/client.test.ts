import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach, beforeEach, describe, it } from 'node:test';
import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import { fixedAccess } from './access.ts';
import { HttpKube } from './client.ts';
import { VirtualClock } from './clock.ts';
import { seconds } from './duration.ts';
import { ConnectionError, isGone, KubeError } from './error.ts';
import { listAll } from './list.ts';
import type { Patch, WatchEvent } from './port.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, PODS } from './resource.ts';
import { answer, eventually, TestApi } from './test-api.ts';

const COLLECTION = '/api/v1/namespaces/ns/configmaps';
const key = { namespace: 'ns', name: 'a' };
const configMap = (name: string, data: Record<string, string> = {}): ConfigMap => ({
  metadata: { namespace: 'ns', name },
  data,
});

describe('HttpKube', () => {
  let api: TestApi;
  let kube: HttpKube;
  let warnings: string[];

  beforeEach(async () => {
    api = await TestApi.start();
    warnings = [];
    kube = new HttpKube(fixedAccess(api.url, { headers: { authorization: 'Bearer secret-token' } }), {
      onWarning: text => warnings.push(text),
    });
  });

  afterEach(async () => {
    await kube.close();
    await eventually(() => api.sockets.size === 0, 'closing leaves no connection');
    await api.stop();
  });

  it('creates, reads, updates, patches and deletes', async () => {
    const created = await kube.create(CONFIG_MAPS, configMap('a', { k: '1' }));
    assert.equal(created.kind, 'ConfigMap');
    assert.deepEqual((await kube.get(CONFIG_MAPS, key)).data, { k: '1' });
    const updated = await kube.update(CONFIG_MAPS, { ...created, data: { k: '2' } });
    assert.notEqual(updated.metadata?.resourceVersion, created.metadata?.resourceVersion);
    await assert.rejects(kube.update(CONFIG_MAPS, created), { name: 'KubeError', code: 409, reason: 'Conflict' });
    await assert.rejects(kube.create(CONFIG_MAPS, configMap('a')), { code: 409, reason: 'AlreadyExists' });
    await kube.delete(CONFIG_MAPS, key);
    await assert.rejects(kube.get(CONFIG_MAPS, key), { code: 404, reason: 'NotFound' });
  });

  it('sends who it is, what it accepts and its credentials', async () => {
    await kube.list(CONFIG_MAPS, { namespace: 'ns' });
    const { headers } = api.requests[0] ?? assert.fail('nothing was sent');
    assert.match(headers['user-agent'] ?? '', /^rotunda\/\d+\.\d+\.\d+$/);
    assert.equal(headers.accept, 'application/json');
    assert.equal(headers.authorization, 'Bearer secret-token');
  });

  it('gives list items their type, as single reads have it', async () => {
    api.put(COLLECTION, { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a', namespace: 'ns' } });
    const { items } = await kube.list(CONFIG_MAPS, { namespace: 'ns' });
    assert.equal(items[0]?.kind, 'ConfigMap');
    assert.equal(items[0]?.apiVersion, 'v1');
  });

  const patches: [type: Patch['type'], contentType: string][] = [
    ['json', 'application/json-patch+json'],
    ['merge', 'application/merge-patch+json'],
    ['strategic', 'application/strategic-merge-patch+json'],
    ['apply', 'application/apply-patch+yaml'],
  ];
  for (const [type, contentType] of patches) {
    it(`sends a ${type} patch as ${contentType}`, async () => {
      api.put(COLLECTION, configMap('a'));
      api.intercept = (_seen, response) => {
        response.writeHead(200).end('{}');
        return true;
      };
      const body = type === 'json' ? [{ op: 'remove', path: '/data' }] : { data: { k: null } };
      await kube.patch(CONFIG_MAPS, key, { type, body } as Patch, { force: true, subresource: 'status', dryRun: true });
      const seen = api.requests[0] ?? assert.fail('nothing was sent');
      assert.equal(seen.method, 'PATCH');
      assert.equal(seen.path, `${COLLECTION}/a/status`);
      assert.equal(seen.headers['content-type'], contentType);
      assert.equal(seen.query.get('force'), type === 'apply' ? 'true' : null);
      assert.equal(seen.query.get('fieldManager'), type === 'apply' ? 'rotunda' : null);
      assert.equal(seen.query.get('dryRun'), 'All');
      assert.deepEqual(seen.body, type === 'apply' ? { data: { k: null }, apiVersion: 'v1', kind: 'ConfigMap' } : body);
    });
  }

  it('deletes with preconditions and evicts with options', async () => {
    api.intercept = (_seen, response) => {
      response.writeHead(200).end('{}');
      return true;
    };
    await kube.delete(CONFIG_MAPS, key, {
      preconditions: { uid: 'u', resourceVersion: '7' },
      propagationPolicy: 'Foreground',
      gracePeriodSeconds: 0,
    });
    await kube.evict({ namespace: 'ns', name: 'p' }, { gracePeriodSeconds: 5, dryRun: true });
    const [deleted, evicted] = api.requests;
    assert.deepEqual(deleted?.body, {
      kind: 'DeleteOptions',
      apiVersion: 'v1',
      preconditions: { uid: 'u', resourceVersion: '7' },
      propagationPolicy: 'Foreground',
      gracePeriodSeconds: 0,
    });
    assert.equal(evicted?.path, '/api/v1/namespaces/ns/pods/p/eviction');
    assert.equal(evicted?.query.get('dryRun'), 'All');
    assert.deepEqual(evicted?.body, {
      apiVersion: 'policy/v1',
      kind: 'Eviction',
      metadata: { name: 'p', namespace: 'ns' },
      deleteOptions: { gracePeriodSeconds: 5, dryRun: ['All'] },
    });
  });

  it('writes status to the subresource and asks for strict validation', async () => {
    api.intercept = (_seen, response) => {
      response.writeHead(200).end('{}');
      return true;
    };
    await kube.updateStatus(NODES, { metadata: { name: 'n' } }, { fieldManager: 'me', fieldValidation: 'Strict' });
    const seen = api.requests[0];
    assert.equal(seen?.path, '/api/v1/nodes/n/status');
    assert.equal(seen.query.toString(), 'fieldManager=me&fieldValidation=Strict');
  });

  it('refuses names and namespaces that would reach something else', async () => {
    for (const name of ['', '.', '..', 'a/b', '%2e%2e']) {
      await assert.rejects(kube.get(CONFIG_MAPS, { namespace: 'ns', name }), TypeError);
    }
    await assert.rejects(kube.get(CONFIG_MAPS, { name: 'a' }), /expected a namespace/);
    await assert.rejects(kube.get(NAMESPACES, { name: 'a', namespace: 'ns' }), /no namespace/);
    await assert.rejects(kube.create(PODS, { metadata: { name: 'p' } }), /without a namespace/);
    assert.equal(api.requests.length, 0);
  });

  it('reads all pages of one state, and begins again when it expires', async () => {
    for (let i = 0; i < 25; i++) api.put(COLLECTION, configMap(`c${i}`));
    let interfered = false;
    api.intercept = ({ query }) => {
      if (query.has('continue') && !interfered) {
        interfered = true;
        api.put(COLLECTION, configMap('late'));
      }
      return false;
    };
    const all = await listAll(kube, CONFIG_MAPS, { namespace: 'ns' }, { pageSize: 10 });
    assert.equal(all.items.length, 26);
    assert.equal(all.metadata.resourceVersion, api.revision);
    await assert.rejects(listAll(kube, CONFIG_MAPS, {}, { mostObjects: 5 }), /expected at most 5 configmaps/);
  });

  it('shows warnings', async () => {
    api.intercept = (_seen, response) => {
      response.appendHeader('warning', ['299 - "old \\"thing\\""', '299 - "second"', '199 - "not ours"']).end('{}');
      return true;
    };
    await kube.get(CONFIG_MAPS, key);
    assert.deepEqual(warnings, ['old "thing"', 'second']);
  });

  describe('watch', () => {
    const collect = async (events: AsyncIterable<WatchEvent<ConfigMap>>, into: WatchEvent<ConfigMap>[]) => {
      for await (const event of events) into.push(event);
    };

    it('gives every event and ends quietly when its signal aborts', async () => {
      const stop = new AbortController();
      const seen: WatchEvent<ConfigMap>[] = [];
      const options = { namespace: 'ns', resourceVersion: api.revision, signal: stop.signal };
      const watching = collect(kube.watch(CONFIG_MAPS, options), seen);
      await eventually(() => api.watchers === 1, 'the watch is open');
      api.put(COLLECTION, configMap('a'));
      api.put(COLLECTION, configMap('a', { k: 'ä'.repeat(100_000) }));
      api.remove(COLLECTION, 'a');
      await eventually(() => seen.length === 3, 'all events have arrived');
      stop.abort();
      await watching;
      assert.deepEqual(
        seen.map(event => event.type),
        ['ADDED', 'MODIFIED', 'DELETED'],
      );
      assert.equal(seen[1]?.object.data?.k?.length, 100_000);
      await eventually(() => api.watchers === 0, 'the server knows that the watch is over');
    });

    it('ends when the consumer stops', async () => {
      api.put(COLLECTION, configMap('a'));
      for await (const event of kube.watch(CONFIG_MAPS, { namespace: 'ns', resourceVersion: '100' })) {
        assert.equal(event.type, 'ADDED');
        break;
      }
      await eventually(() => api.watchers === 0, 'the server knows that the watch is over');
    });

    it('ends normally when the server ends it', async () => {
      const watching = collect(kube.watch(CONFIG_MAPS, { namespace: 'ns' }), []);
      await eventually(() => api.watchers === 1, 'the watch is open');
      api.wipe();
      await watching;
    });

    it('throws 410 from the answer and from the stream', async () => {
      api.put(COLLECTION, configMap('a'));
      api.compact();
      await assert.rejects(collect(kube.watch(CONFIG_MAPS, { resourceVersion: '1' }), []), isGone);
      api.intercept = (_seen, response) => {
        response
          .writeHead(200)
          .end(`{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}\n`);
        return true;
      };
      await assert.rejects(collect(kube.watch(CONFIG_MAPS, {}), []), isGone);
    });

    const broken: [what: string, text: string][] = [
      ['a line that is cut off', '{"type":"ADDED","object":{}}\n{"type":"ADD'],
      ['text that is not JSON', 'top secret\n'],
      ['an unknown event', '{"type":"EXPLODED","object":{}}\n'],
      ['an event without object', '{"type":"ADDED"}\n'],
    ];
    for (const [what, text] of broken) {
      it(`fails on ${what}, without quoting it`, async () => {
        api.intercept = (_seen, response) => {
          response.writeHead(200).end(text);
          return true;
        };
        await assert.rejects(collect(kube.watch(CONFIG_MAPS, {}), []), (error: Error) => {
          assert.ok(error instanceof ConnectionError);
          assert.doesNotMatch(error.message, /top secret/);
          return true;
        });
      });
    }

    it('reports a reset connection', async () => {
      const watching = collect(kube.watch(CONFIG_MAPS, { namespace: 'ns' }), []);
      await eventually(() => api.watchers === 1, 'the watch is open');
      for (const socket of api.sockets) socket.resetAndDestroy();
      await assert.rejects(watching, ConnectionError);
    });
  });

  describe('failures', () => {
    it('of a server without Status objects keep the meaning of their code', async () => {
      api.intercept = (_seen, response) => {
        response.writeHead(503, { 'content-type': 'text/html' }).end('<html>');
        return true;
      };
      await assert.rejects(kube.get(CONFIG_MAPS, key), { code: 503, reason: 'ServiceUnavailable' });
    });

    it('of the connection name what was asked for, and no secret', async () => {
      const { url } = api;
      await api.stop();
      await assert.rejects(kube.get(CONFIG_MAPS, key), (error: Error) => {
        assert.ok(error instanceof ConnectionError);
        assert.equal(error.code, 'ECONNREFUSED');
        assert.match(error.message, /^GET \/api\/v1\/namespaces\/ns\/configmaps\/a: /);
        assert.doesNotMatch(JSON.stringify([error.message, error.stack, error.cause]), /secret-token/);
        return true;
      });
      api = await TestApi.start();
      assert.notEqual(api.url, url);
    });

    it('a read on a connection that the server just dropped is asked once more, a write is not', async () => {
      let dropped = 0;
      api.intercept = (_seen, _response, { socket }) => {
        if (dropped++ > 0) return false;
        socket.destroy();
        return true;
      };
      await assert.rejects(kube.get(CONFIG_MAPS, key), { code: 404 });
      assert.equal(dropped, 2);
      dropped = 0;
      await assert.rejects(kube.create(CONFIG_MAPS, configMap('a')), ConnectionError);
      assert.equal(dropped, 1);
    });

    it('an answer that is not JSON is refused without quoting it', async () => {
      api.intercept = (_seen, response) => {
        response.writeHead(200).end('-----BEGIN PRIVATE KEY-----');
        return true;
      };
      await assert.rejects(kube.get(CONFIG_MAPS, key), (error: Error) => !/PRIVATE/.test(error.message));
    });

    it('an object that is too large is not even sent', async () => {
      const large = configMap('a', { k: 'x'.repeat(3 * 1024 * 1024) });
      await assert.rejects(kube.create(CONFIG_MAPS, large), { code: 413, reason: 'RequestEntityTooLarge' });
      assert.equal(api.requests.length, 0);
    });

    it('an aborted call rejects with the reason', async () => {
      const stop = new AbortController();
      api.intercept = () => {
        stop.abort(new Error('enough'));
        return true;
      };
      await assert.rejects(kube.get(CONFIG_MAPS, key, { signal: stop.signal }), { message: 'enough' });
    });
  });

  it('plain http only to the machine itself', async () => {
    const remote = new HttpKube(fixedAccess('http://192.0.2.1:8080'));
    await assert.rejects(remote.get(CONFIG_MAPS, key), { code: 'UNPROTECTED' });
    await remote.close();
  });

  it('a path in the server URL comes before every request', async () => {
    const proxied = new HttpKube(fixedAccess(`${api.url}/k8s/clusters/c1/`));
    await assert.rejects(proxied.get(CONFIG_MAPS, key), { code: 404 });
    assert.equal(api.requests[0]?.path, `/k8s/clusters/c1${COLLECTION}/a`);
    await proxied.close();
  });

  it('after closing, every call is refused', async () => {
    await kube.close();
    await assert.rejects(kube.get(CONFIG_MAPS, key), { code: 'CLOSED' });
  });
});

describe('closing while a connection is being made', () => {
  it('leaves nothing behind', async () => {
    const sockets = new Set<Socket>();
    // Accepts connections, but never answers the first message of TLS.
    const mute = createServer(socket => {
      sockets.add(
        socket
          .on('error', () => {})
          .once('close', () => sockets.delete(socket))
          .resume(),
      );
    });
    await new Promise<void>(resolve => {
      mute.listen(0, '127.0.0.1', resolve);
    });
    const kube = new HttpKube(fixedAccess(`https://127.0.0.1:${(mute.address() as AddressInfo).port}`));
    const getting = assert.rejects(kube.get(CONFIG_MAPS, key), { name: 'ConnectionError', code: 'CLOSED' });
    await eventually(() => sockets.size === 1, 'the connection is being made');
    await kube.close();
    await getting;
    await eventually(() => sockets.size === 0, 'it is gone');
    mute.close();
  });
});

describe('HttpKube and time', () => {
  const withClock = async (work: (api: TestApi, kube: HttpKube, clock: VirtualClock) => Promise<void>) => {
    const clock = new VirtualClock('2024-01-01T00:00:00Z');
    const api = await TestApi.start();
    const kube = new HttpKube(fixedAccess(api.url), { clock, requestTimeoutMs: seconds(60) });
    try {
      await work(api, kube, clock);
    } finally {
      await kube.close();
      await api.stop();
    }
  };

  it('a busy server is asked again when it says so', () =>
    withClock(async (api, kube, clock) => {
      api.intercept = ({ method }, response) => {
        if (api.requests.length > 3) return false;
        response.setHeader('retry-after', method === 'POST' ? '7' : 'Mon, 01 Jan 2024 00:00:30 GMT');
        answer(response, 429, 'TooManyRequests', 'slow down');
        return true;
      };
      const creating = kube.create(CONFIG_MAPS, configMap('a'));
      for (let i = 1; i <= 3; i++) {
        await eventually(
          () => api.requests.length === i && clock.nextWait()?.getTime() === 1704067200000 + 7000 * i,
          'it waits',
        );
        await clock.advance(seconds(7));
      }
      assert.equal((await creating).metadata?.name, 'a');
      assert.equal(api.requests.length, 4);
    }));

  it('but not for ever, nor for longer than half a minute at a time', () =>
    withClock(async (api, kube, clock) => {
      api.intercept = (_seen, response) => {
        response.setHeader('retry-after', '3600');
        answer(response, 429, 'TooManyRequests', 'slow down');
        return true;
      };
      let failure: unknown;
      const getting = kube.get(CONFIG_MAPS, key).catch((error: unknown) => {
        failure = error;
      });
      for (let i = 0; i < 5; i++) {
        const due = clock.now().getTime() + seconds(30);
        await eventually(() => api.requests.length === i + 1 && clock.nextWait()?.getTime() === due, 'it waits');
        await clock.advance(seconds(30));
      }
      await getting;
      assert.ok(failure instanceof KubeError);
      assert.equal(failure.code, 429);
      assert.equal(api.requests.length, 6);
    }));

  it('an eviction that a disruption budget forbids is answered at once', () =>
    withClock(async (api, kube) => {
      api.intercept = (_seen, response) => {
        response.setHeader('retry-after', '10');
        answer(response, 429, 'TooManyRequests', 'Cannot evict pod as it would violate the disruption budget.');
        return true;
      };
      await assert.rejects(kube.evict({ namespace: 'ns', name: 'p' }), { code: 429 });
      assert.equal(api.requests.length, 1);
    }));

  it('a server that does not answer is given up', () =>
    withClock(async (api, kube, clock) => {
      api.intercept = () => true;
      const getting = kube.get(CONFIG_MAPS, key);
      const watching = kube.watch(CONFIG_MAPS)[Symbol.asyncIterator]().next();
      await eventually(() => api.requests.length === 2, 'both requests are there');
      const both = Promise.allSettled([getting, watching]);
      await clock.advance(seconds(60));
      for (const result of await both) {
        assert.equal(result.status, 'rejected');
        assert.equal((result.reason as ConnectionError).code, 'TIMEOUT');
      }
    }));

  it('a watch that has begun may be silent for long', () =>
    withClock(async (api, kube, clock) => {
      const next = kube.watch(CONFIG_MAPS, { namespace: 'ns' })[Symbol.asyncIterator]().next();
      await eventually(() => api.watchers === 1, 'the watch is open');
      await eventually(() => clock.nextWait() === undefined, 'no limit is left');
      await clock.advance(seconds(300));
      api.put(COLLECTION, configMap('a'));
      assert.equal((await next).value?.object.metadata?.name, 'a');
    }));
});
