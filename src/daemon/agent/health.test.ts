import assert from 'node:assert/strict';
import { createServer, get } from 'node:http';
import type { AddressInfo } from 'node:net';
import { test } from 'node:test';
import { silentLog } from '../../controller/log.ts';
import { createRegistry } from '../../controller/metrics.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import { startHealthEndpoint } from './health-endpoint.ts';
import { watchKubeletHealth } from './kubelet-health.ts';
import { agentMetrics } from './metrics.ts';

test('the liveness probe gets an empty 200, other methods 405', async () => {
  const health = await startHealthEndpoint({ host: '127.0.0.1', port: 0 });
  try {
    for (const method of ['GET', 'HEAD']) {
      const answer = await fetch(health.url, { method });
      assert.deepEqual([answer.status, answer.headers.get('content-length'), await answer.text()], [200, '0', '']);
    }
    assert.equal((await fetch(health.url, { method: 'POST' })).status, 405);
    assert.equal((await fetch(new URL('/', health.url))).status, 404);
    // No URL, and no reason to end.
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
    get(health.url, { path: '//' }, answer => resolve(answer.resume().statusCode)).on('error', reject);
    assert.equal(await promise, 404);
  } finally {
    await health.stop();
  }
});

test('only silence of the kubelet counts; any answer ends the row', async () => {
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const answers = ['ok', undefined, undefined, 'not well', undefined];
  const seen: number[] = [];
  const stop = new AbortController();
  const running = watchKubeletHealth(
    {
      endpoint: 'http://localhost/healthz',
      clock,
      log: silentLog,
      metrics: { kubeletFailures: count => seen.push(count) },
      async ask() {
        const answer = answers.shift();
        if (answer === undefined) throw new Error('refused');
        return answer;
      },
    },
    stop.signal,
  );
  await clock.advance(seconds(30) * 4);
  stop.abort();
  await running;
  assert.deepEqual(seen, [0, 1, 2, 0, 1]);
});

test('asks over HTTP, whatever the status', async () => {
  const server = createServer((_, answer) => answer.writeHead(500).end('failed'));
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const clock = new VirtualClock('2026-01-01T00:00:00Z');
  const stop = new AbortController();
  const counted = Promise.withResolvers<number>();
  const running = watchKubeletHealth(
    {
      endpoint: `http://127.0.0.1:${port}/healthz`,
      clock,
      log: silentLog,
      metrics: { kubeletFailures: count => counted.resolve(count) },
    },
    stop.signal,
  );
  assert.equal(await counted.promise, 0);
  stop.abort();
  await running;
  await new Promise(resolve => server.close(resolve));
});

test('all metrics of section 13.1 are registered, and older series of a state are gone', async () => {
  const registry = createRegistry();
  const metrics = agentMetrics(registry, 'worker-0');
  const at = new Date(1_000_000);
  metrics.hostOs('RHCOS', '416');
  metrics.state('Working', '', at);
  metrics.state('Degraded', 'because', at);
  metrics.updated('rendered-1', '', at);
  metrics.kubeletFailures(2);
  metrics.rebootFailed();
  metrics.drift(at);
  metrics.unsupportedPackages(3);
  metrics.missingConfigs(['gone']);
  metrics.pivot(true);
  metrics.login();
  const lines = (await registry.metrics()).split('\n').filter(line => !line.startsWith('#') && line !== '');
  assert.deepEqual(lines.sort(), [
    'mcd_config_drift 1000',
    'mcd_host_os_and_version{os="RHCOS",version="416"} 1',
    'mcd_kubelet_state 2',
    'mcd_local_unsupported_packages{node="worker-0"} 3',
    'mcd_missing_mc{mc="gone"} 1',
    'mcd_pivot_errors_total 1',
    'mcd_reboots_failed_total 1',
    'mcd_state{state="Degraded",reason="because"} 1000',
    'mcd_update_state{config="rendered-1",err=""} 1000',
    'ssh_accesses_total 1',
  ]);
  metrics.pivot(false);
  assert.match(await registry.metrics(), /mcd_pivot_errors_total 0/);
});
