import assert from 'node:assert/strict';
import { connect } from 'node:net';
import { after, before, describe, it } from 'node:test';
import { systemClock, VirtualClock } from '../kube/clock.ts';
import { seconds } from '../kube/duration.ts';
import { type HealthServer, startHealthServer } from './health.ts';
import { controllerMetrics, createRegistry } from './metrics.ts';

describe('health server', () => {
  const registry = createRegistry();
  const metrics = controllerMetrics(registry)('TestController');
  const errors: string[] = [];
  let isReady = false;
  let server: HealthServer;
  before(async () => {
    server = await startHealthServer({
      clock: systemClock,
      live: { ping: () => {} },
      ready: {
        leader: () => {
          if (!isReady) throw new Error('secret detail');
        },
      },
      metrics: registry,
      onError: (check, error) => errors.push(`${check}: ${(error as Error).message}`),
    });
  });
  after(() => server.stop());
  const ask = async (path: string, init?: RequestInit) => {
    const response = await fetch(`${server.url}${path}`, init);
    return [response.status, await response.text()] as const;
  };

  it('listens on loopback', () => {
    assert.match(server.url, /^http:\/\/127\.0\.0\.1:\d+$/);
  });

  it('livez and healthz', async () => {
    assert.deepEqual(await ask('/livez'), [200, 'ok']);
    assert.deepEqual(await ask('/healthz'), [200, 'ok']);
    assert.deepEqual(await ask('/livez?verbose'), [200, '[+]ping ok\ncheck passed\n']);
  });

  it('readyz follows its checks and does not tell why', async () => {
    assert.deepEqual(await ask('/readyz'), [500, '[+]ping ok\n[-]leader failed: reason withheld\ncheck failed\n']);
    assert.deepEqual(errors, ['leader: secret detail']);
    isReady = true;
    assert.deepEqual(await ask('/readyz'), [200, 'ok']);
  });

  it('metrics', async () => {
    metrics.queue.added?.();
    metrics.queue.retried?.();
    metrics.queue.depth?.(3);
    metrics.passed('success', 12);
    metrics.passed('error', 30);
    const [status, text] = await ask('/metrics');
    assert.equal(status, 200);
    for (const line of [
      'controller_runtime_reconcile_total{controller="TestController",result="success"} 1',
      'controller_runtime_reconcile_errors_total{controller="TestController"} 1',
      'controller_runtime_reconcile_time_seconds_count{controller="TestController"} 2',
      'workqueue_depth{name="TestController"} 3',
      'workqueue_adds_total{name="TestController"} 1',
      'workqueue_retries_total{name="TestController"} 1',
    ]) {
      assert.ok(text.includes(line), `${line} is not in\n${text}`);
    }
  });

  it('anything else', async () => {
    assert.equal((await ask('/'))[0], 404);
    assert.equal((await ask('/livez/../secrets'))[0], 404);
    assert.deepEqual(await ask('/livez', { method: 'POST', body: 'x' }), [405, 'method not allowed\n']);
    assert.deepEqual(await ask('/livez', { method: 'HEAD' }), [200, '']);
    assert.equal((await ask('/livez', { headers: { big: 'x'.repeat(10_000) } }))[0], 431);
  });

  it('garbage is answered and closed', async () => {
    const answer = await new Promise<string>(resolve => {
      const socket = connect(server.port, '127.0.0.1', () => socket.end('garbage\r\n\r\n'));
      let text = '';
      socket.on('data', data => {
        text += data.toString();
      });
      socket.on('close', () => resolve(text));
    });
    assert.match(answer, /^HTTP\/1\.1 400/);
  });
});

it('a check that hangs fails in time', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  let wasTold = false;
  const hangs = (signal: AbortSignal) => {
    signal.addEventListener('abort', () => {
      wasTold = true;
    });
    asked.resolve();
    return new Promise<void>(() => {});
  };
  const asked = Promise.withResolvers<void>();
  const server = await startHealthServer({ clock, live: { hangs } });
  const response = fetch(`${server.url}/livez`);
  await asked.promise;
  await clock.advance(seconds(5));
  assert.equal((await response).status, 500);
  assert.equal(wasTold, true);
  await (await response).body?.cancel();
  await server.stop();
});

it('a port that is taken is an error', async () => {
  const first = await startHealthServer({ clock: systemClock });
  await assert.rejects(startHealthServer({ clock: systemClock, port: first.port }), { code: 'EADDRINUSE' });
  await first.stop();
});
