import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Container, Event, Pod, Probe } from 'kubernetes-types/core/v1.d.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { CONFIG_MAPS, PODS } from '../../kube/resource.ts';
import { formatRfc3339 } from '../../kube/time.ts';
import { at, CONFIG, configMap, NAMESPACE, NOW, operandPod, TestCluster } from '../testing.ts';
import { installerConditions, stuckInstallers } from './installer-state.ts';
import { missingStaticPodReconcile } from './missing-static-pod.ts';
import { startupMonitorConditions } from './startup-monitor.ts';
import { describePods } from './static-pod-state.ts';

type State = NonNullable<NonNullable<NonNullable<Pod['status']>['containerStatuses']>[number]['state']>;

function podWith(
  name: string,
  containers: readonly { spec?: Partial<Container>; ready?: boolean; state: State; lastState?: State }[],
): Pod {
  const nameOf = (index: number) => String.fromCharCode(122 - index);
  return {
    metadata: { name },
    spec: { containers: containers.map(({ spec }, index) => ({ name: nameOf(index), image: 'i:1', ...spec })) },
    status: {
      // Sorted by name, the other way round than the containers.
      containerStatuses: containers
        .map(({ ready = false, state, lastState = {} }, index) => ({
          name: nameOf(index),
          image: '',
          imageID: '',
          restartCount: 0,
          ready,
          state,
          lastState,
        }))
        .reverse(),
    },
  };
}

const running = (secondsAgo: number): State => ({ running: { startedAt: formatRfc3339(at(-secondsAgo)) } });
const probe = (initialDelaySeconds: number, periodSeconds: number, failureThreshold: number): Probe => ({
  initialDelaySeconds,
  periodSeconds,
  failureThreshold,
});

describe('the state of static pods (spec 30, section 13)', () => {
  const allowances: [string, Partial<Container>, number][] = [
    ['no probes: 30 s and 10 s', {}, 40],
    ['liveness', { livenessProbe: probe(5, 10, 3) }, 45],
    ['a short liveness probe counts too', { livenessProbe: probe(0, 1, 1) }, 11],
    ['readiness when it takes longer', { livenessProbe: probe(0, 1, 1), readinessProbe: probe(20, 10, 3) }, 60],
    ['startup comes on top', { startupProbe: probe(0, 5, 30) }, 190],
    ['what the API has not filled in is 0', { livenessProbe: {} }, 10],
  ];
  for (const [what, spec, expected] of allowances) {
    test(`the time a container may take: ${what}`, () => {
      const pod = podWith('p', [{ spec, state: running(0) }]);
      const { changesAt } = describePods([pod], NOW);
      assert.equal((changesAt as Date).getTime() - NOW.getTime(), seconds(expected) + 1);
      assert.equal(describePods([pod], at(expected)).condition.message, undefined);
      const late = describePods([pod], changesAt as Date);
      assert.equal(late.condition.status, 'False');
      assert.equal(late.condition.reason, 'Error');
      assert.equal(late.changesAt, undefined);
    });
  }

  test('containers are told by name (T12), failing ones fail, ended ones are told', () => {
    const pod = podWith('p', [
      { state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m' } } },
      { spec: { startupProbe: probe(0, 10, 30) }, state: running(100) },
      { state: { terminated: { exitCode: 0, reason: 'Completed' } } },
      { ready: true, state: running(100) },
    ]);
    const { condition } = describePods([pod, { error: new Error('no quorum') }], NOW);
    assert.equal(condition.status, 'True');
    assert.deepEqual(condition.message?.split('\n'), [
      'pod/p container "x" is terminated: Completed: ',
      'pod/p container "z" is waiting: CrashLoopBackOff: back-off 5m',
      'no quorum',
    ]);
  });

  test('a container that waits to be started again is told with what it said when it ended', () => {
    const state = { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m' } };
    const lastState = { terminated: { exitCode: 2, reason: 'Error', message: 'no such file\n' } };
    const { condition } = describePods([podWith('p', [{ state, lastState }])], NOW);
    assert.equal(condition.status, 'True');
    assert.deepEqual(condition.message?.split('\n'), [
      'pod/p container "z" is waiting: CrashLoopBackOff: back-off 5m',
      'pod/p container "z" ended with exit code 2: no such file',
    ]);
  });
});

function installer(name: string, phase: string, startedAgo: number | undefined, extra: object = {}): Pod {
  const startTime = startedAgo === undefined ? {} : { startTime: formatRfc3339(at(-startedAgo)) };
  return { metadata: { name }, spec: { nodeName: 'm0', containers: [] }, status: { phase, ...startTime, ...extra } };
}

describe('installers that do not get going (spec 30, section 15)', () => {
  test('five minutes are too long, and one that was overtaken does not count', () => {
    assert.deepEqual(stuckInstallers([installer('installer-3-m0', 'Pending', 299)], NOW).stuck, []);
    assert.deepEqual(stuckInstallers([installer('installer-3-m0', 'Pending', 299)], NOW).nextAt, at(1));
    assert.equal(stuckInstallers([installer('installer-3-m0', 'Pending', 300)], NOW).stuck.length, 1);
    const overtaken = [installer('installer-3-m0', 'Pending', 900), installer('installer-4-m0', 'Running', 1)];
    assert.deepEqual(stuckInstallers(overtaken, NOW).stuck, []);
    const same = [installer('installer-4-m0', 'Pending', 900), installer('installer-4-retry-1-m0', 'Failed', 1)];
    assert.equal(stuckInstallers(same, NOW).stuck.length, 1);
    assert.deepEqual(stuckInstallers([installer('installer-3-m0', 'Pending', undefined)], NOW).stuck, []);
  });

  test('a pod with the label and no number in its name counts as the oldest', () => {
    const odd = installer('installer-x-m0', 'Pending', 900);
    assert.deepEqual(stuckInstallers([odd, installer('installer-3-m0', 'Pending', 900)], NOW).stuck.length, 2);
    assert.deepEqual(stuckInstallers([odd, installer('installer-3-m0', 'Running', 1)], NOW).stuck, []);
  });

  test('what a container waits for is quoted as Go does it', () => {
    const waiting = [{ name: 'c', state: { waiting: { reason: 'R', message: 'no\u200b\u0001' } } }];
    const [, found] = installerConditions(
      [installer('installer-3-m0', 'Pending', 600, { containerStatuses: waiting })],
      [],
    );
    assert.match(found?.message ?? '', /because "no\\u200b\\x01"$/);
  });

  test('each kind of trouble has its condition, and the first pod that has it is named', () => {
    const waiting = [{ name: 'c', state: { waiting: { reason: 'ErrImagePull', message: 'no such image' } } }];
    const pods = [
      installer('installer-3-m0', 'Pending', 600, { reason: 'Unschedulable', message: 'no room' }),
      installer('installer-3-m1', 'Pending', 600, { reason: 'Other', message: 'other', containerStatuses: waiting }),
    ];
    const event = (name: string, message: string): Event => ({
      metadata: {},
      involvedObject: { kind: 'Pod', name },
      reason: 'FailedCreatePodSandBox',
      message,
    });
    const events = [
      event('installer-3-m1', 'unrelated'),
      event('installer-3-m1', 'x: failed to create pod network sandbox'),
    ];
    const conditions = installerConditions(pods, events);
    assert.deepEqual(
      conditions.map(({ type, status, reason, message }) => [type, status, reason, message]),
      [
        [
          'InstallerPodPendingDegraded',
          'True',
          'Unschedulable',
          'Pod "installer-3-m0" on node "m0" is Pending since 2025-12-31 23:50:00 +0000 UTC because no room',
        ],
        [
          'InstallerPodContainerWaitingDegraded',
          'True',
          'ErrImagePull',
          'Pod "installer-3-m1" on node "m0" container "c" is waiting since 2025-12-31 23:50:00 +0000 UTC because "no such image"',
        ],
        [
          'InstallerPodNetworkingDegraded',
          'True',
          'FailedCreatePodSandBox',
          'Pod "installer-3-m1" on node "m0" observed degraded networking: x: failed to create pod network sandbox',
        ],
      ],
    );
    assert.ok(installerConditions([], events).every(({ status }) => status === 'False'));
  });
});

describe('a static pod that does not show up (spec 30, section 16)', () => {
  async function world(topology: () => boolean | undefined) {
    const cluster = new TestCluster();
    const state = { terminated: { exitCode: 0, finishedAt: formatRfc3339(NOW) } };
    await cluster.put({
      kind: 'Pod',
      metadata: { namespace: NAMESPACE, name: 'installer-4-m0', labels: { app: 'installer' } },
      spec: { nodeName: 'm0', containers: [] },
      status: {
        containerStatuses: [{ name: 'installer', image: '', imageID: '', ready: false, restartCount: 0, state }],
      },
    });
    await cluster.put(
      configMap('test-pod-4', { 'pod.yaml': 'kind: Pod\nspec: {terminationGracePeriodSeconds: 20}\n' }),
    );
    const reconcile = missingStaticPodReconcile({ ...cluster.parts, config: { ...CONFIG, topology } });
    return { cluster, run: () => cluster.run(reconcile) };
  }

  for (const [what, topology, threshold, text] of [
    ['several nodes', () => false, 170, '2m50s'],
    ['one node', () => true, 200, '3m20s'],
    ['not known how many', () => undefined, 200, '3m20s'],
  ] as const) {
    test(`${what}: more than ${text}`, async () => {
      const { cluster, run } = await world(topology);
      const result = await run();
      assert.equal(result?.againAt?.getTime(), at(threshold).getTime() + 1);
      await cluster.clock.advanceTo(at(threshold));
      await run();
      await cluster.clock.advance(1);
      const expected = `static pod lifecycle failure - static pod: "test" in namespace: "${NAMESPACE}" for revision: 4 on node: "m0" didn't show up, waited: ${text}`;
      await assert.rejects(run(), { message: expected });
      await assert.rejects(run());
      assert.deepEqual(
        cluster.events.map(({ message }) => message),
        [expected],
      );
      await cluster.clock.advance(minutes(31));
      await assert.rejects(run());
      assert.equal(cluster.events.length, 2);
      await cluster.put(operandPod('m0', 4, false));
      await run();
    });
  }

  test('the topology is asked only when an installer is done (16.3)', async () => {
    const cluster = new TestCluster();
    const topology = () => {
      throw new Error('not known');
    };
    await cluster.run(missingStaticPodReconcile({ ...cluster.parts, config: { ...CONFIG, topology } }));
    await assert.rejects((await world(topology)).run(), /not known/);
  });

  test('a manifest that is none is told with where it is', async () => {
    for (const [text, expected] of [
      ['spec: [', /^Error: pod.yaml of configmap openshift-test\/test-pod-4 is not YAML: /],
      ['just words', /pod.yaml of configmap openshift-test\/test-pod-4: expected a Pod, found a string/],
      ['[]', /expected a Pod, found/],
      ['{}', /expected a Pod, found kind undefined/],
      ['kind: ConfigMap', /expected a Pod, found kind "ConfigMap"/],
      ['{kind: Pod, spec: []}', /expected a mapping in spec, .*, found \[\]/],
      [
        '{kind: Pod, spec: {terminationGracePeriodSeconds: "9"}}',
        /expected a number in spec.terminationGracePeriodSeconds, .*, found "9"/,
      ],
    ] as const) {
      const { cluster, run } = await world(() => false);
      await cluster.kube.update(CONFIG_MAPS, configMap('test-pod-4', { 'pod.yaml': text }));
      await assert.rejects(run(), expected);
    }
  });

  test('a pod of an older revision is not it; a label that is no number is an error', async () => {
    const { cluster, run } = await world(() => false);
    await cluster.clock.advance(minutes(10));
    await cluster.put(operandPod('m0', 3, true));
    await assert.rejects(run(), /for revision: 4/);
    await cluster.kube.update(PODS, operandPod('m0', 'four', true));
    await assert.rejects(run(), /label "four" is not a number/);
  });
});

describe('the startup monitor (spec 30, 17.3)', () => {
  const pod = (phase: string, status: object = {}): Pod => ({ metadata: { name: 'p' }, status: { phase, ...status } });
  const first = (found: Pod | undefined, now = NOW) => startupMonitorConditions(found, now)[0];
  const started = { startTime: formatRfc3339(at(-120)) };

  test('pending for two minutes', () => {
    assert.equal(first(pod('Pending', { startTime: formatRfc3339(at(-119)) }))?.status, 'False');
    const { status, reason, message } = first(pod('Pending', started)) ?? {};
    assert.deepEqual([status, reason], ['True', 'Unknown']);
    assert.equal(message, 'the pod p has been in Pending phase for more than max tolerated time (2m0s) due to unknown');
  });

  test('a waiting container explains it', () => {
    const waiting = [
      { name: 'c', restartCount: 0, state: { waiting: { reason: 'ErrImagePull', message: 'no image' } } },
    ];
    const { reason, message } = first(pod('Pending', { ...started, containerStatuses: waiting })) ?? {};
    assert.equal(reason, 'ErrImagePull');
    assert.equal(message, 'at least one container c is waiting since 2025-12-31 23:58:00 +0000 UTC due to no image');
  });

  test('failed', () => {
    assert.equal(first(pod('Failed'))?.message, 'unknown');
    const ended = [
      { name: 'c', restartCount: 0, state: { terminated: { exitCode: 3, reason: 'Error', message: 'oops' } } },
    ];
    const { reason, message } = first(pod('Failed', { containerStatuses: ended })) ?? {};
    assert.equal(reason, 'Error');
    assert.equal(message, 'at least one container c in p pod exited with 3 (expected nonzero exit code), due to oops');
  });

  test('restarts', () => {
    const restarted = (restartCount: number) =>
      startupMonitorConditions(pod('Running', { containerStatuses: [{ name: 'c', restartCount, state: {} }] }), NOW)[1];
    assert.equal(restarted(1)?.status, 'False');
    assert.equal(restarted(2)?.message, 'at least one container c in p pod has restarted 2 times, max allowed is 2');
  });

  test('no pod, no trouble', () => {
    assert.deepEqual(
      startupMonitorConditions(undefined, NOW).map(({ status }) => status),
      ['False', 'False'],
    );
  });
});
