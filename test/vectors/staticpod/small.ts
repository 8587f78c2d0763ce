import assert from 'node:assert/strict';
import { Controller } from '../../../src/controller/controller.ts';
import { silentLog } from '../../../src/controller/log.ts';
import { VirtualClock } from '../../../src/kube/clock.ts';
import { recordingEvents } from '../../../src/kube/events.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import { PODS, SERVICE_ACCOUNTS } from '../../../src/kube/resource.ts';
import { backingResourceReconcile, CLUSTER_ROLE_BINDINGS } from '../../../src/staticpod/backing-resource.ts';
import { staticPodCaches } from '../../../src/staticpod/caches.ts';
import type { StaticPodOperatorConfig } from '../../../src/staticpod/config.ts';
import { InvalidConfig, staticPodControllers } from '../../../src/staticpod/controllers.ts';
import { installerReconcile } from '../../../src/staticpod/installer/controller.ts';
import { logLevelReconcile } from '../../../src/staticpod/log-level.ts';
import { CONFIG, configMap, intercepted, NAMESPACE, NOW, secret, TestCluster } from '../../../src/staticpod/testing.ts';
import { openshiftTopology } from '../../../src/staticpod/topology.ts';
import { leafPaths, unsupportedOverridesReconcile } from '../../../src/staticpod/unsupported-overrides.ts';
import { verbosityOf } from '../../../src/staticpod/verbosity.ts';
import { type Adapter, attempt, checkConditions, checkError, checkEvents, defined, errorOf } from './case.ts';

export const smallAdapters: Record<string, Adapter> = {
  async 'common.isSingleNode'({ informerSynced, controlPlaneTopology, infrastructureMissing }, expected) {
    const infrastructure = infrastructureMissing ? undefined : { status: defined({ controlPlaneTopology }) };
    const topology = openshiftTopology({ hasSynced: informerSynced, get: () => infrastructure });
    let singleNode: boolean | undefined;
    const error = await attempt(async () => (singleNode = await topology()));
    checkError(error, expected.error);
    if (expected.precheck !== undefined) assert.equal(error !== undefined || singleNode !== undefined, expected.precheck);
    if (expected.singleNode !== undefined) assert.equal(singleNode ?? false, expected.singleNode);
  },

  'unsupportedOverrides.keys'({ config }, { keysSorted }) {
    assert.deepEqual(leafPaths(config), keysSorted);
  },

  async 'unsupportedOverrides.sync'({ raw }, { conditions }) {
    const cluster = new TestCluster();
    await cluster.setOperator({}, { unsupportedConfigOverrides: raw });
    await cluster.run(unsupportedOverridesReconcile(cluster.parts));
    checkConditions((await cluster.status()).conditions, conditions);
  },

  async 'backingResource.sync'(given, expected) {
    const created: string[] = [];
    const memory = new MemoryKube();
    const kube = intercepted(memory, (verb, resource, name, object) => {
      if (verb !== 'create' || resource.plural === 'kubeapiservers') return;
      for (const { create, error } of given.faults ?? []) if (String(create).endsWith(name)) throw errorOf(error);
      created.push([resource.plural, object?.metadata?.namespace, name].filter(part => part !== undefined).join('/'));
    });
    const cluster = new TestCluster({ kube });
    const namespace = given.targetNamespace;
    await cluster.setOperator({}, { managementState: given.managementState });
    for (const path of given.objects) {
      const [plural, ...names] = path.split('/');
      if (plural === 'serviceaccounts') await memory.create(SERVICE_ACCOUNTS, { metadata: { namespace, name: names.at(-1) } });
      else {
        const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' };
        const subjects = [{ kind: 'ServiceAccount', namespace, name: 'installer-sa' }];
        await memory.create(CLUSTER_ROLE_BINDINGS, { metadata: { name: names.join('/') }, roleRef, subjects });
      }
    }
    const config = { ...CONFIG, operandNamespace: namespace };
    const error = await attempt(() => cluster.run(backingResourceReconcile({ ...cluster.parts, config })));
    assert.equal(error !== undefined, Boolean(expected.error));
    if (expected.createdInOrder !== undefined) assert.deepEqual(created, expected.createdInOrder);
    const name = `system:openshift:operator:${namespace}-installer`;
    const binding = await cluster.cached.get(CLUSTER_ROLE_BINDINGS, { name });
    if (expected.subject !== undefined) assert.deepEqual(binding?.subjects, [expected.subject]);
    if (expected.roleRef !== undefined) assert.equal(binding?.roleRef.name, expected.roleRef);
    if (expected.conditions !== undefined) checkConditions((await cluster.status()).conditions, expected.conditions);
  },

  'logLevel.verbosity'({ logLevel }, { verbosity }) {
    assert.equal(verbosityOf(logLevel), verbosity);
  },

  async 'logLevel.sync'({ operatorLogLevel, startingVerbosity, syncCount }, expected) {
    const cluster = new TestCluster();
    await cluster.setOperator({}, { operatorLogLevel });
    let current = startingVerbosity;
    const verbosity = {
      get: () => current,
      set(value: number) {
        current = value;
      },
    };
    const reconcile = logLevelReconcile({ operator: cluster.operator, verbosity });
    for (let pass = 1; pass <= (syncCount ?? 1); pass++) await cluster.run(reconcile);
    if (expected.verbosity !== undefined) assert.equal(current, expected.verbosity);
    if (expected.events !== undefined) checkEvents(cluster.events, expected.events);
  },

  async 'builder.wiring'({ withStartupMonitor }, expected) {
    const config = { ...CONFIG, ...(withStartupMonitor && { startupMonitor: () => true }) };
    const names = controllersOf(config).map(({ name }) => name);
    if (expected.conditionControllersCreated !== undefined) {
      const found = names.filter(name => ['StartupMonitorPodCondition', 'StaticPodStateFallback'].includes(name));
      assert.deepEqual(found, expected.conditionControllersCreated);
    }
    const cluster = new TestCluster();
    await cluster.setOperator({ latestAvailableRevision: 1, nodeStatuses: [{ nodeName: 'm0', currentRevision: 0, targetRevision: 1 }] });
    await cluster.put(configMap('revision-status-1'), configMap('test-pod-1'), secret('test-secret-1'));
    await cluster.run(installerReconcile({ ...cluster.parts, config }));
    const [pod] = await cluster.cached.list(PODS, { namespace: NAMESPACE });
    const hasLock = (pod?.spec?.containers[0]?.args ?? []).some(arg => arg.startsWith('--pod-manifests-lock-file='));
    if (expected.installerArgsContainLockFile !== undefined) assert.equal(hasLock, expected.installerArgsContainLockFile);
    if (expected.installerControllerKnowsStartupMonitor !== undefined) {
      assert.equal(hasLock, expected.installerControllerKnowsStartupMonitor);
    }
  },

  'builder.errors'(given, expected) {
    const { operandNamespace = 'ns', operandName = 'test', installCommand = ['x'], pruneCommand, startupMonitor, guard } = given;
    const config = {
      ...CONFIG,
      operandNamespace,
      operandName,
      installer: { ...CONFIG.installer, command: installCommand },
      operandLabels: given.operandPodLabelSelector === undefined ? CONFIG.operandLabels : (given.operandPodLabelSelector ?? {}),
      ...(pruneCommand && { pruner: { command: pruneCommand, directoryPrefix: 'test' } }),
      ...(startupMonitor && { startupMonitor: () => true }),
      ...((guard ?? given.pdbUnhealthyPodEvictionPolicy) && {
        guard: { port: 1, path: 'readyz', wanted: () => true, evictionPolicy: given.pdbUnhealthyPodEvictionPolicy, ...guard },
      }),
    };
    const events = recordingEvents();
    let errors: readonly string[] = [];
    try {
      controllersOf(config, events);
    } catch (error) {
      assert.ok(error instanceof InvalidConfig);
      errors = error.errors;
    }
    if (expected.errors !== undefined) assert.deepEqual(errors, expected.errors);
    if (expected.warnings !== undefined) checkEvents(events.events, expected.warnings);
  },

  async 'factory.cacheSync'({ cachesNeverSync, cacheSyncTimeoutSeconds }, { processExitCode }) {
    const clock = new VirtualClock(NOW);
    const never = { synced: new Promise<void>(() => {}), start: () => () => {} };
    const controller = new Controller({
      name: 'Test',
      reconcile: async () => {},
      clock,
      events: recordingEvents(),
      log: silentLog,
      triggers: [never],
      cacheSyncLimitMs: cacheSyncTimeoutSeconds * 1000,
    });
    assert.equal(cachesNeverSync, true);
    // The command that runs it ends with code 1 on any rejection.
    assert.equal(processExitCode, 1);
    const run = assert.rejects(controller.run(new AbortController().signal), /unable to sync caches for Test/);
    await clock.advance(cacheSyncTimeoutSeconds * 1000);
    await run;
  },

  async 'factory.resync'({ resyncSeconds }, { firstSyncImmediately, warningEvent }) {
    const clock = new VirtualClock(NOW);
    const events = recordingEvents();
    const stop = new AbortController();
    let passes = 0;
    const reconcile = async () => {
      passes++;
    };
    const controller = new Controller({ name: 'Test', reconcile, clock, events, log: silentLog, resyncMs: resyncSeconds * 1000 });
    const run = controller.run(stop.signal);
    await clock.advance(0);
    if (firstSyncImmediately !== undefined) assert.equal(passes > 0, firstSyncImmediately);
    const warned = events.events.filter(({ reason }) => reason === 'FastControllerResync');
    const found = warned.map(({ type, reason }) => ({ type, reason }));
    assert.deepEqual(found, warningEvent ? [warningEvent] : []);
    await clock.advance(resyncSeconds * 1000);
    assert.equal(passes, 2);
    stop.abort();
    await run;
  },
};

function controllersOf(config: StaticPodOperatorConfig, events = recordingEvents()): Controller[] {
  const kube = new MemoryKube();
  return staticPodControllers(config, { kube, caches: staticPodCaches(config, kube), clock: new VirtualClock(NOW), events, log: silentLog });
}
