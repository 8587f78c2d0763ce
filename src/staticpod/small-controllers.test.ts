import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createLog, type LogLevel, silentLog } from '../controller/log.ts';
import type { ControllerMetrics } from '../controller/metrics.ts';
import { VirtualClock } from '../kube/clock.ts';
import { KubeError } from '../kube/error.ts';
import { recordingEvents } from '../kube/events.ts';
import { MemoryKube } from '../kube/memory.ts';
import { CONFIG_MAPS, SECRETS, SERVICE_ACCOUNTS } from '../kube/resource.ts';
import { backingResourceReconcile, CLUSTER_ROLE_BINDINGS } from './backing-resource.ts';
import { informersOf, staticPodCaches } from './caches.ts';
import { InvalidConfig, staticPodControllers } from './controllers.ts';
import { logLevelReconcile, verbosityOfLog } from './log-level.ts';
import { resourceSyncReconcile, SyncRules } from './resource-sync.ts';
import { staleConditionsReconcile } from './stale-conditions.ts';
import { CONFIG, intercepted, NAMESPACE, NOW, TestCluster } from './testing.ts';
import { countedTopology, topologyOf } from './topology.ts';
import { leafPaths, overridesCondition } from './unsupported-overrides.ts';
import { logLevelOf, verbosityOf } from './verbosity.ts';

describe('the account of installers (spec 30, 19.1)', () => {
  test('a failure is told with the file it is about, and does not stop the rest', async () => {
    const kube = intercepted(new MemoryKube(), (verb, resource) => {
      if (verb === 'create' && resource === SERVICE_ACCOUNTS) throw new KubeError(403, 'Forbidden', 'no');
    });
    const cluster = new TestCluster({ kube });
    await cluster.setOperator({});
    await assert.rejects(cluster.run(backingResourceReconcile(cluster.parts)));
    const [condition] = (await cluster.status()).conditions ?? [];
    assert.deepEqual(
      [condition?.status, condition?.reason, condition?.message],
      ['True', 'SyncError', '"manifests/installer-sa.yaml" (string): no\n'],
    );
    assert.equal((await cluster.kube.list(CLUSTER_ROLE_BINDINGS)).items.length, 1);
  });

  test('a binding to somebody else is put right, an unchanged one is not even asked for', async () => {
    const cluster = new TestCluster();
    await cluster.setOperator({});
    const reconcile = backingResourceReconcile(cluster.parts);
    await cluster.run(reconcile);
    const [binding] = (await cluster.kube.list(CLUSTER_ROLE_BINDINGS)).items;
    await cluster.kube.update(CLUSTER_ROLE_BINDINGS, { ...binding, roleRef: binding?.roleRef as never, subjects: [] });
    await cluster.run(reconcile);
    const [again] = (await cluster.kube.list(CLUSTER_ROLE_BINDINGS)).items;
    assert.deepEqual(again?.subjects, [{ kind: 'ServiceAccount', namespace: NAMESPACE, name: 'installer-sa' }]);
  });
});

describe('unsupported overrides (spec 30, 19.4)', () => {
  const cases: [string, unknown, string, string][] = [
    ['none', undefined, 'True', ''],
    ['null', null, 'True', ''],
    ['an object', { b: { c: [1, { d: 2 }] }, a: true }, 'False', 'setting: [a b.c.0 b.c.1.d]'],
    ['the text of one', '{"b": {"c": 1}}', 'False', 'setting: [b.c]'],
    ['an empty text', '', 'True', ''],
    ['a text that is none', 'b: [', 'False', 'unsupportedConfigOverrides=b: ['],
    ['a list', '[1]', 'False', 'unsupportedConfigOverrides=[1]'],
    ['the YAML of one', 'foo: bar', 'False', 'setting: [foo]'],
    ['a text that says nothing', 'null', 'False', 'setting: []'],
    [
      'aliases, which could grow without end',
      'a: &a [1]\nb: *a',
      'False',
      'unsupportedConfigOverrides=a: &a [1]\nb: *a',
    ],
    ['two ways to one path', { 'a.b': 1, a: { b: 2 } }, 'False', 'setting: [a.b]'],
  ];
  for (const [what, overrides, status, message] of cases) {
    test(what, () => {
      const found = overridesCondition(overrides);
      assert.deepEqual([found.status, found.message ?? ''], [status, message]);
    });
  }
  test('paths are sorted by bytes', () => assert.deepEqual(leafPaths({ b: 1, B: 2, a: 3 }), ['B', 'a', 'b']));
});

describe('log levels (spec 30, 19.6)', () => {
  for (const [level, verbosity] of [
    ['Normal', 2],
    ['Debug', 4],
    ['Trace', 6],
    ['TraceAll', 8],
  ] as const) {
    test(level, () => assert.deepEqual([verbosityOf(level), logLevelOf(verbosity)], [verbosity, level]));
  }
  test('others', () =>
    assert.deepEqual([verbosityOf('constructor'), logLevelOf(1), logLevelOf(5)], [2, undefined, 'Debug']));

  test('a level nobody knows, and a change that fails', async () => {
    const cluster = new TestCluster();
    await cluster.setOperator({}, { operatorLogLevel: 'Loud' });
    const verbosity = {
      get: () => 4,
      set: () => {
        throw new Error('stuck');
      },
    };
    await assert.rejects(cluster.run(logLevelReconcile({ operator: cluster.operator, verbosity })), /stuck/);
    assert.deepEqual(
      cluster.events.map(({ reason }) => reason),
      ['OperatorLogLevelInvalid', 'OperatorLogLevelChangeFailed'],
    );
    assert.equal(cluster.events[0]?.message, 'Invalid logLevel "Loud", falling back to "Normal"');
  });
});

describe('the verbosity of a log', () => {
  const world = async (level: LogLevel, operatorLogLevel: string) => {
    const log = createLog({ name: 'test', level, destination: { write: () => {} } });
    const cluster = new TestCluster();
    await cluster.setOperator({}, { operatorLogLevel });
    const reconcile = logLevelReconcile({ operator: cluster.operator, verbosity: verbosityOfLog(log) });
    await cluster.run(reconcile);
    await cluster.run(reconcile);
    return [log.level, ...cluster.events.map(({ message }) => message)];
  };
  for (const [level, asked, ...expected] of [
    ['info', 'Debug', 'debug', 'Operator log level changed from "Normal" to "Debug"'],
    ['info', 'TraceAll', 'debug', 'Operator log level changed from "Normal" to "TraceAll"'],
    ['debug', '', 'info', 'Operator log level changed from "Debug" to "Normal"'],
    ['info', 'Normal', 'info'],
    ['warn', 'Normal', 'warn'],
  ] as const) {
    test(`started with ${level}, asked for "${asked}"`, async () => {
      assert.deepEqual(await world(level, asked), expected);
    });
  }
});

describe('what the ClusterOperator is told (spec 30, 20.1)', () => {
  test('nothing when there is no operator resource', async () => {
    const cluster = new TestCluster();
    assert.equal(await cluster.operator.reported({}), undefined);
    await cluster.setOperator({}, { managementState: 'Managed' });
    const expected = { managementState: 'Managed', conditions: [], versions: { a: '1' } };
    assert.deepEqual(await cluster.operator.reported({ a: '1' }), expected);
  });
  test('a read that fails is not that', async () => {
    const kube = intercepted(new MemoryKube(), () => {
      throw new KubeError(500, 'InternalError', 'boom');
    });
    await assert.rejects(new TestCluster({ kube }).operator.reported({}), /boom/);
  });
});

test('conditions nobody writes any more go, the others keep their order (spec 30, section 23)', async () => {
  const cluster = new TestCluster();
  const conditions = ['A', 'Stale', 'B'].map(type => ({ type, status: 'True' as const }));
  await cluster.setOperator({ conditions });
  const reconcile = staleConditionsReconcile(cluster.operator, ['Stale', 'NeverThere']);
  await cluster.run(reconcile);
  const types = async () => ((await cluster.status()).conditions ?? []).map(({ type }) => type);
  assert.deepEqual(await types(), ['A', 'B']);
  const version = (await cluster.operator.readLive()).metadata?.resourceVersion;
  await cluster.run(reconcile);
  assert.equal((await cluster.operator.readLive()).metadata?.resourceVersion, version, 'nothing left to write');
});

describe('copies between namespaces (spec 30, section 7)', () => {
  const source = { namespace: 'from', name: 'a', provider: 'somebody' };
  const destination = { namespace: 'to', name: 'b' };

  test('one that fails is reported with whom to ask, and holds up no other', async () => {
    const memory = new MemoryKube();
    const kube = intercepted(memory, (verb, resource) => {
      if (verb === 'get' && resource === SECRETS) throw new KubeError(500, 'InternalError', 'boom');
    });
    const cluster = new TestCluster({ kube });
    await cluster.setOperator({});
    await memory.create(CONFIG_MAPS, { metadata: { namespace: 'from', name: 'a' }, data: { x: '1', y: '2' } });
    const rules = new SyncRules(['from', 'to']);
    rules.add('secret', destination, source);
    rules.add('configmap', destination, { ...source, keys: ['y'] });
    await cluster.run(resourceSyncReconcile({ ...cluster.parts, rules }));
    const [condition] = (await cluster.status()).conditions ?? [];
    assert.equal(condition?.message, 'boom (check the "somebody" that is supposed to provide this resource)');
    assert.deepEqual((await memory.get(CONFIG_MAPS, destination)).data, { y: '2' });
  });

  test('without a source the destination goes, and nothing is asked of the API when it is gone', async () => {
    const memory = new MemoryKube();
    let deletions = 0;
    const kube = intercepted(memory, verb => {
      if (verb === 'delete') deletions++;
    });
    const cluster = new TestCluster({ kube });
    await cluster.setOperator({});
    await memory.create(SECRETS, { metadata: destination });
    const rules = new SyncRules(['to']);
    let heard = 0;
    rules.onChange = () => heard++;
    rules.add('secret', destination, undefined);
    const reconcile = resourceSyncReconcile({ ...cluster.parts, rules });
    await cluster.run(reconcile);
    await cluster.run(reconcile);
    assert.deepEqual([heard, deletions, (await memory.list(SECRETS)).items.length], [1, 1, 0]);
  });

  test('a precondition that fails is nobody else to blame for (7.3)', async () => {
    const cluster = new TestCluster();
    await cluster.setOperator({});
    const rules = new SyncRules(['from', 'to']);
    const precondition = () => {
      throw new Error('not known');
    };
    rules.add('secret', destination, { ...source, precondition });
    await cluster.run(resourceSyncReconcile({ ...cluster.parts, rules }));
    assert.equal((await cluster.status()).conditions?.[0]?.message, 'not known');
  });

  test('a source without a name means none (7.2, 7.3)', async () => {
    const memory = new MemoryKube();
    const cluster = new TestCluster({ kube: memory });
    await cluster.setOperator({});
    await memory.create(SECRETS, { metadata: destination });
    const rules = new SyncRules(['to']);
    let mayDelete = false;
    rules.add('secret', destination, { namespace: '', name: '', precondition: () => mayDelete });
    const reconcile = resourceSyncReconcile({ ...cluster.parts, rules });
    await cluster.run(reconcile);
    assert.equal((await memory.list(SECRETS)).items.length, 1);
    mayDelete = true;
    await cluster.run(reconcile);
    assert.equal((await memory.list(SECRETS)).items.length, 0);
  });

  test('a later rule replaces an earlier one, and all can be read in order of their sources', () => {
    const rules = new SyncRules(['from', 'to']);
    rules.add('secret', destination, source);
    rules.add('secret', { namespace: 'to', name: 'a' }, { namespace: 'from', name: 'z' });
    rules.add('secret', destination, { namespace: 'from', name: 'y' });
    assert.throws(
      () => rules.add('configmap', destination, { namespace: 'elsewhere', name: 'x' }),
      /not watching namespace "elsewhere"/,
    );
    assert.deepEqual(JSON.parse(JSON.stringify(rules)), {
      secrets: [
        { destination, source: { namespace: 'from', name: 'y' } },
        { destination: { namespace: 'to', name: 'a' }, source: { namespace: 'from', name: 'z' } },
      ],
      configs: [],
    });
  });
});

describe('the number of control-plane nodes', () => {
  test('as OpenShift says it', () => {
    assert.equal(topologyOf({ status: { controlPlaneTopology: 'SingleReplica' } }), true);
    assert.equal(topologyOf({ status: { controlPlaneTopology: 'HighlyAvailable' } }), false);
    assert.throws(() => topologyOf({ status: {} }), /ControlPlaneTopology was not set/);
    assert.throws(() => topologyOf(undefined), /unable to determine topology mode/);
  });

  test('as it is counted elsewhere', async () => {
    const cluster = new TestCluster();
    const topology = countedTopology(cluster.cached);
    assert.equal(await topology(), undefined);
    for (const [name, expected] of [
      ['m0', true],
      ['m1', false],
    ] as const) {
      await cluster.put({ kind: 'Node', metadata: { name, labels: { 'node-role.kubernetes.io/master': '' } } });
      assert.equal(await topology(), expected);
    }
  });
});

describe('all controllers of an operator (spec 30, 1.3)', () => {
  const build = (config: Partial<typeof CONFIG>, events = recordingEvents()) => {
    const kube = new MemoryKube();
    const whole = { ...CONFIG, ...config };
    const verbosity = { get: () => 2, set: () => {} };
    const deps = {
      kube,
      caches: staticPodCaches(whole, kube),
      clock: new VirtualClock(NOW),
      events,
      log: silentLog,
      verbosity,
    };
    return staticPodControllers(whole, deps).map(({ name }) => name);
  };
  const ALWAYS = [
    'RevisionController',
    'InstallerController',
    'InstallerStateController',
    'StaticPodStateController',
    'PruneController',
    'NodeController',
    'BackingResourceController',
    'UnsupportedConfigOverridesController',
    'LoggingSyncer',
    'MissingStaticPodController',
  ];

  test('the ones that are always there', () => assert.deepEqual(build({}), ALWAYS));

  test('the ones that are asked for', () => {
    const guard = { port: 6443, path: 'readyz', wanted: () => true };
    const names = build({ startupMonitor: () => true, guard });
    assert.deepEqual(
      names.filter(name => !ALWAYS.includes(name)),
      ['StartupMonitorPodCondition', 'StaticPodStateFallback', 'GuardController'],
    );
  });

  test('a resource that is gone fails no pass: the operand may be removed (3.10)', async () => {
    const kube = new MemoryKube();
    const caches = staticPodCaches(CONFIG, kube);
    const outcomes: string[] = [];
    const stop = new AbortController();
    const passed = (outcome: string) => {
      outcomes.push(outcome);
      stop.abort();
    };
    const metrics = () => ({ passed }) as unknown as ControllerMetrics;
    const clock = new VirtualClock(NOW);
    const deps = { kube, caches, clock, events: recordingEvents(), log: silentLog, metrics };
    const missing = staticPodControllers(CONFIG, deps).find(({ name }) => name === 'MissingStaticPodController');
    for (const informer of informersOf(caches)) informer.start();
    await missing?.run(stop.signal);
    await Promise.all(informersOf(caches).map(informer => informer.stop()));
    assert.deepEqual(outcomes, ['success']);
  });

  test('what is missing is told', () => {
    const events = recordingEvents();
    const names = build({ operandName: '', pruner: undefined }, events);
    assert.ok(!names.includes('StaticPodStateController') && !names.includes('PruneController'));
    assert.deepEqual(
      events.events.map(({ reason }) => reason),
      ['StaticPodStateControllerMissing', 'PruningControllerMissing'],
    );
  });

  test('what cannot be is refused, all at once', () => {
    const guard = { port: 1, path: '', wanted: () => true, evictionPolicy: 'Never' as 'AlwaysAllow' };
    const bad = { operandNamespace: '', installer: { command: [], image: '' }, operandLabels: {}, guard };
    assert.throws(
      () => build(bad),
      (error: unknown) => error instanceof InvalidConfig && error.errors.length === 4,
    );
  });
});
