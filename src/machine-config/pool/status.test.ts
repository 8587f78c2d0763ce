import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { silentLog } from '../../controller/log.ts';
import { VirtualClock } from '../../kube/clock.ts';
import { recordingEvents } from '../../kube/events.ts';
import type { KubeObject } from '../../kube/resource.ts';
import { DAEMON_REASON, DAEMON_STATE, DESIRED_CONFIG } from '../../machine-config-api/names.ts';
import { noGauges } from '../metrics.ts';
import { customPool, NOW } from '../testing.ts';
import { candidatesOf } from './candidates.ts';
import { nodeReconcile } from './controller.ts';
import { MaxUnavailableError, maxUnavailable } from './max-unavailable.ts';
import { isReady } from './node-state.ts';
import { poolStatus } from './status.ts';

describe('maxUnavailable (ND-20)', () => {
  for (const [value, nodeCount, expected] of [
    [-1, 5, -1],
    [-5, 5, -5],
    ['-10%', 5, -1],
    ['-0%', 5, 1],
    [-0, 5, 1],
    ['+40%', 5, 2],
    ['150%', 4, 6],
  ] as const) {
    test(`${value} of ${nodeCount} is ${expected}`, () => assert.equal(maxUnavailable(value, nodeCount), expected));
  }
  test('a percentage that is no number of 64 bits means nothing', () => {
    for (const value of ['99999999999999999999%', '-99999999999999999999%']) {
      assert.throws(() => maxUnavailable(value, 5), MaxUnavailableError);
    }
  });
  test('less than nothing leaves no candidate (ND-21)', () => {
    const nodes: Node[] = [{ metadata: { name: 'n', annotations: { [DESIRED_CONFIG]: 'old' } } }];
    assert.deepEqual(candidatesOf({ spec: { configuration: { name: 'new' } } }, nodes, -1).nodes, []);
  });
});

test('a condition of whatever name does not make a node unready (ND-10)', () => {
  const condition = (type: string) => ({ status: { conditions: [{ type, status: 'Unknown' }] } });
  for (const type of ['constructor', '__proto__', 'toString', 'MemoryPressure']) assert.ok(isReady(condition(type)));
  assert.equal(isReady(condition('Ready')), false);
});

test("reasons of nodes are quoted as Go's %q does (8.6)", () => {
  const annotations = {
    [DESIRED_CONFIG]: 'c',
    [DAEMON_STATE]: 'Degraded',
    [DAEMON_REASON]: 'a\u001b[1m\u0007"é\u007f',
  };
  const { conditions } = poolStatus(
    { metadata: { name: 'p' }, spec: { configuration: { name: 'c' } } },
    [{ metadata: { name: 'n', annotations } }],
    undefined,
    NOW,
  );
  const degraded = conditions?.find(({ type }) => type === 'NodeDegraded');
  assert.equal(degraded?.message, String.raw`Node n is reporting: "a\x1b[1m\a\"é\x7f"`);
});

test('a node that is gone is not counted as overruled any more (ND-3)', async () => {
  const labels = { 'node-role.kubernetes.io/master': '', 'node-role.kubernetes.io/x': '' };
  const named = <T extends KubeObject>(objects: T[]) => ({
    list: () => objects,
    get: ({ name }: { name: string }) => objects.find(({ metadata }) => metadata?.name === name),
    remember: () => {},
  });
  const nodes: Node[] = [{ metadata: { name: 'n', labels } }];
  const pools = ['master', 'x'].map(name => customPool(name));
  for (const pool of pools) pool.spec = { ...pool.spec, paused: true, configuration: { name: 'c' } };
  const alerts: [string, number | undefined][] = [];
  const reconcile = nodeReconcile({
    kube: { get: async () => pools[0], updateStatus: async (_resource: unknown, object: unknown) => object } as never,
    caches: {
      pools: named(pools),
      nodes: named(nodes),
      controllerConfigs: named([]),
      operatorPods: named([]),
      schedulers: named([]),
    } as never,
    eventsAbout: () => recordingEvents(),
    gauges: { ...noGauges, poolAlert: (node, value) => alerts.push([node, value]) },
  });
  const { signal } = new AbortController();
  const pass = () =>
    reconcile('master', {
      signal,
      clock: new VirtualClock(NOW),
      events: recordingEvents(),
      log: silentLog,
      enqueue: () => {},
    });
  await pass();
  nodes.pop();
  await pass();
  await pass();
  assert.deepEqual(alerts, [
    ['n', 1],
    ['n', undefined],
  ]);
});
