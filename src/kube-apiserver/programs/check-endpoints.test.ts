import assert from 'node:assert/strict';
import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { startEngine } from '../../api/engine.ts';
import { silentLog } from '../../controller/log.ts';
import { createRegistry } from '../../controller/metrics.ts';
import { recordingEvents } from '../../kube/events.ts';
import { wantedChecks } from '../connectivity/checks.ts';
import { isReachable, type Probe, withProbe } from '../connectivity/status.ts';
import { connectivityMetrics } from '../metrics/connectivity.ts';
import { OPERAND_NAMESPACE } from '../namespaces.ts';
import { CONNECTIVITY_CHECKS, type ConnectivityStatus } from '../resources.ts';
import { eventually, NOW, prepareCluster, testClock } from '../testing.ts';
import { probeEndpoint, runCheckEndpoints } from './check-endpoints.ts';

const good = (second: number): Probe => ({
  at: new Date(NOW.getTime() + second * 1000),
  endpoint: 'x:1',
  connectMs: 2,
});
const bad = (second: number, message = 'refused'): Probe => ({
  ...good(second),
  failure: { part: 'connect', message },
});

describe('what attempts become', () => {
  const after = (...probes: Probe[]) => {
    let status: ConnectivityStatus = {};
    const events: string[] = [];
    for (const probe of probes) {
      const next = withProbe(status, probe, 'etcd');
      status = next.status;
      events.push(...next.events.map(({ reason }) => reason));
    }
    return { status, events };
  };

  test('an outage begins with the first failure and ends with the next success', () => {
    const { status, events } = after(good(0), bad(1), bad(2), bad(3, 'other'), good(5));
    assert.deepEqual(events, ['ConnectivityOutageDetected', 'ConnectivityRestored']);
    const [outage] = status.outages ?? [];
    assert.equal(outage?.message, 'Connectivity restored after 4s');
    assert.deepEqual(
      [outage?.start, outage?.end].map(time => time?.slice(17, 19)),
      ['01', '05'],
    );
    assert.equal(outage?.startLogs?.length, 2);
    assert.equal(outage?.endLogs?.length, 4);
    assert.equal(isReachable(status), true);
    assert.match(status.successes?.[0]?.message ?? '', /^etcd: tcp connection to x:1 succeeded$/);
  });

  test('nothing grows without end', () => {
    const flapping = Array.from({ length: 100 }, (_, second) => (second % 2 === 0 ? good(second) : bad(second)));
    const { status } = after(...flapping, ...Array.from({ length: 50 }, (_, second) => bad(200 + second)));
    assert.deepEqual([status.successes?.length, status.failures?.length, status.outages?.length], [10, 10, 20]);
    assert.equal(status.outages?.[0]?.endLogs?.length, 5);
    assert.equal(isReachable(status), false);
  });
});

test('every server looks at every member of etcd and at both load balancers', () => {
  const node = (name: string, address: string) => ({
    metadata: { name },
    status: { addresses: [{ type: 'InternalIP', address }] },
  });
  const checks = wantedChecks({
    observedConfig: {
      apiServerArguments: {
        'etcd-servers': [
          'https://10.0.0.1:2379',
          'https://[fd00::1]:2379',
          'https://localhost:2379',
          'https://10.9.9.9:2379',
        ],
      },
    },
    infrastructure: { status: { apiServerURL: 'https://ext:6443', apiServerInternalURI: 'https://int' } },
    controlPlaneNodes: [node('m0', '10.0.0.1'), node('m1', 'fd00::1')],
  });
  assert.deepEqual(
    checks.slice(0, 5).map(({ metadata, spec }) => [metadata?.name, spec?.targetEndpoint, spec?.tlsClientCert?.name]),
    [
      ['kube-apiserver-m0-to-etcd-server-m0', '10.0.0.1:2379', 'etcd-client'],
      ['kube-apiserver-m0-to-etcd-server-m1', '[fd00::1]:2379', 'etcd-client'],
      ['kube-apiserver-m0-to-etcd-server-localhost', 'localhost:2379', 'etcd-client'],
      ['kube-apiserver-m0-to-load-balancer-api-external', 'ext:6443', ''],
      ['kube-apiserver-m0-to-load-balancer-api-internal', 'int:443', ''],
    ],
  );
  assert.equal(checks.length, 10);
});

test('real connections: one that is taken, one that is refused, a name that does not exist', async t => {
  const server = createServer(socket => socket.destroy());
  await new Promise<void>(resolve => {
    server.listen(0, '127.0.0.1', resolve);
  });
  t.after(() => new Promise<void>(resolve => server.close(() => resolve())));
  const { port } = server.address() as AddressInfo;
  const probe = (endpoint: string) => probeEndpoint(endpoint, NOW, undefined, new AbortController().signal);
  assert.equal((await probe(`127.0.0.1:${port}`)).failure, undefined);
  assert.equal((await probe('127.0.0.1:1')).failure?.part, 'connect');
  assert.equal((await probe('no-such-host.invalid:1')).failure?.part, 'dns');
});

test('the program writes changes at once and the quiet time once a minute, for its own checks only', async t => {
  const clock = testClock();
  const engine = await startEngine({ clock });
  await prepareCluster(engine);
  const { kube } = engine;
  const key = { namespace: OPERAND_NAMESPACE, name: 'kube-apiserver-m0-to-etcd-server-m0' };
  const spec = { sourcePod: 'kube-apiserver-m0', targetEndpoint: '10.0.0.1:2379' };
  await kube.create(CONNECTIVITY_CHECKS, { metadata: key, spec });
  const foreign = { namespace: OPERAND_NAMESPACE, name: 'kube-apiserver-m1-to-etcd-server-m0' };
  await kube.create(CONNECTIVITY_CHECKS, { metadata: foreign, spec: { ...spec, sourcePod: 'kube-apiserver-m1' } });
  let isDown = false;
  const events = recordingEvents();
  const registry = createRegistry();
  const stop = new AbortController();
  const running = runCheckEndpoints(
    {
      kube,
      clock,
      log: silentLog,
      events,
      namespace: OPERAND_NAMESPACE,
      podName: 'kube-apiserver-m0',
      metrics: connectivityMetrics(registry, OPERAND_NAMESPACE),
      probe: async (endpoint, at) => ({
        at,
        endpoint,
        connectMs: 1,
        ...(isDown ? { failure: { part: 'connect', message: 'down' } as const } : {}),
      }),
    },
    stop.signal,
  );
  t.after(async () => {
    stop.abort();
    await running;
    await engine.close();
  });
  const read = async () => (await kube.get(CONNECTIVITY_CHECKS, key)).status ?? {};
  await eventually(clock, async () => isReachable(await read()) === true);
  const version = (await kube.get(CONNECTIVITY_CHECKS, key)).metadata?.resourceVersion;
  await clock.advance(30_000);
  assert.equal((await kube.get(CONNECTIVITY_CHECKS, key)).metadata?.resourceVersion, version);
  isDown = true;
  await eventually(clock, async () => isReachable(await read()) === false, 5);
  isDown = false;
  await eventually(clock, async () => isReachable(await read()) === true, 5);
  assert.deepEqual(
    events.events.map(({ reason }) => reason),
    ['ConnectivityOutageDetected', 'ConnectivityRestored'],
  );
  assert.equal((await kube.get(CONNECTIVITY_CHECKS, foreign)).status, undefined);
  assert.match(await registry.metrics(), /pod_network_connectivity_check_count\{.*tcpConnect="failure".*\} [1-9]/);
});
