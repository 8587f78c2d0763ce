import { knownWord } from '../run-case.ts';
import assert from 'node:assert/strict';
import type { Event, Node, Pod } from 'kubernetes-types/core/v1.d.ts';
import { reportingDegraded } from '../../../src/controller/degraded.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import { CONFIG_MAPS, EVENTS, PODS, POD_DISRUPTION_BUDGETS } from '../../../src/kube/resource.ts';
import type { StaticPodOperatorConfig } from '../../../src/staticpod/config.ts';
import { guardReconcile } from '../../../src/staticpod/guard/controller.ts';
import { guardBudget } from '../../../src/staticpod/guard/pod.ts';
import { nodeReconcile, decideNodes } from '../../../src/staticpod/nodes.ts';
import { readNodeStatus, type StoredNodeStatus, storedNodeStatus } from '../../../src/staticpod/node-status.ts';
import { StaticPodOperator } from '../../../src/staticpod/operator.ts';
import { pruneReconcile } from '../../../src/staticpod/prune/controller.ts';
import { fallbackReconcile } from '../../../src/staticpod/report/fallback.ts';
import { installerStateReconcile } from '../../../src/staticpod/report/installer-state.ts';
import { missingStaticPodReconcile } from '../../../src/staticpod/report/missing-static-pod.ts';
import { startupMonitorConditionReconcile } from '../../../src/staticpod/report/startup-monitor.ts';
import { staticPodStateReconcile } from '../../../src/staticpod/report/static-pod-state.ts';
import { CONFIG, intercepted, NAMESPACE, OPERATORS, TestCluster } from '../../../src/staticpod/testing.ts';
import {
  type Adapter,
  attempt,
  checkConditions,
  checkError,
  checkEvents,
  defined,
  errorOf,
  type Json,
  timeAgo,
} from './case.ts';

export const reportAdapters: Record<string, Adapter> = {
  async 'node.sync'(given, expected) {
    const cluster = await clusterWithNodes(given, given.nodeStatuses);
    await cluster.run(nodeReconcile(cluster.parts));
    const { nodeStatuses, conditions } = await cluster.status();
    if (expected.nodeStatuses !== undefined) assert.deepEqual(entries(nodeStatuses), entries(expected.nodeStatuses));
    if (expected.conditions !== undefined) checkConditions(conditions, expected.conditions);
    if (expected.events !== undefined) {
      const membership = cluster.events.filter(({ reason }) => reason !== 'MasterNodesReadyChanged');
      const isAsked = expected.events.some((event: Json) => (event.reason ?? event) === 'MasterNodesReadyChanged');
      checkEvents(isAsked ? cluster.events : membership, expected.events);
    }
  },

  'node.removePatch'({ nodes, nodeStatuses }, { jsonPatch }) {
    // One optimistic write does here what main does with a patch; the patch shows which entries have to go.
    const { removed } = decideNodes(nodeStatuses, nodes.map(nodeFrom));
    const left: StoredNodeStatus[] = [...nodeStatuses];
    const patch = removed.flatMap(name => {
      const index = left.findIndex(({ nodeName }) => nodeName === name);
      left.splice(index, 1);
      const path = `/status/nodeStatuses/${index}`;
      return [
        { op: 'test', path: `${path}/nodeName`, value: name },
        { op: 'remove', path },
      ];
    });
    assert.deepEqual(patch, jsonPatch);
  },

  async 'node.lostUpdate'(given, expected) {
    // With what is in the cache there is a conflict, since it is older than what is stored.
    knownWord(given.firstWrite, 'conflict');
    const cluster = await clusterWithNodes(given, given.liveNodeStatuses);
    const live = await cluster.operator.readLive();
    const stale = { ...live, metadata: { ...live.metadata, resourceVersion: '0' }, status: { nodeStatuses: given.cachedNodeStatuses } };
    const cache = { get: () => stale };
    const operator = new StaticPodOperator({ kube: cluster.kube, resource: OPERATORS, clock: cluster.clock, cache });
    await cluster.run(nodeReconcile({ ...cluster.parts, operator }));
    assert.deepEqual(entries((await cluster.status()).nodeStatuses), entries(expected.nodeStatuses));
  },

  async 'prune.sync'(given, expected) {
    const cluster = new TestCluster();
    const { failedRevisionLimit, succeededRevisionLimit, latestAvailableRevision, nodes } = given;
    await cluster.setOperator(
      { latestAvailableRevision, nodeStatuses: nodes },
      defined({ failedRevisionLimit, succeededRevisionLimit, managementState: given.managementState }),
    );
    for (const revision of given.revisionStatusConfigMaps) {
      const metadata = { namespace: NAMESPACE, name: `revision-status-${revision}` };
      await cluster.kube.create(CONFIG_MAPS, { metadata, data: { revision: String(revision) } });
    }
    const config: StaticPodOperatorConfig = {
      ...CONFIG,
      pruner: { command: ['prune'], directoryPrefix: given.staticPodPrefix ?? given.staticPodName ?? 'test-pod' },
      ...(given.certDir && { unrevisioned: { directory: given.certDir, configMaps: [], secrets: [] } }),
    };
    const error = await attempt(() => cluster.run(pruneReconcile({ ...cluster.parts, config })));
    if (expected.error !== undefined) checkError(error, expected.error);
    else assert.equal(error, undefined);
    const left = (await cluster.cached.list(CONFIG_MAPS, { namespace: NAMESPACE })).map(({ data }) => Number(data?.revision));
    if (expected.revisionsLeft !== undefined) assert.deepEqual(left.sort((a, b) => a - b), expected.revisionsLeft);
    const pods = await cluster.cached.list(PODS, { namespace: NAMESPACE });
    const hasPods = expected.prunerPodPerNode ?? expected.protectedRevisions !== undefined;
    // A corrected result repeats only what differs, and so may contradict a flag that goes with the defect.
    const isCorrected = expected.prunerPodPerNode === false && expected.protectedRevisions !== undefined;
    assert.equal(pods.length, hasPods || isCorrected ? nodes.length : 0);
    const args = pods[0]?.spec?.containers[0]?.args ?? [];
    if (expected.protectedRevisions !== undefined) {
      assert.ok(args.includes(`--protected-revisions=${expected.protectedRevisions.join(',')}`), args.join(' '));
    }
    if (expected.maxEligibleRevision !== undefined) assert.ok(args.includes(`--max-eligible-revision=${expected.maxEligibleRevision}`));
    if (expected.args !== undefined) assert.deepEqual(args, expected.args);
    if (expected.podNames !== undefined) assert.deepEqual(new Set(pods.map(({ metadata }) => metadata?.name)), new Set(expected.podNames));
  },

  async 'staticPodState.sync'(given, expected) {
    const memory = new MemoryKube();
    let isReady = false;
    const kube = intercepted(memory, (verb, _resource, name) => {
      if (!isReady || verb !== 'get') return;
      for (const fault of given.faults ?? []) if (String(fault.get ?? fault.pod).endsWith(name) && name !== '') throw errorOf(fault.error);
    });
    const cluster = new TestCluster({ kube });
    const nodeStatuses = given.nodes.map((nodeName: string) => ({ nodeName, currentRevision: 1 }));
    await cluster.setOperator({ nodeStatuses }, defined({ managementState: given.managementState }));
    await cluster.put(...given.pods.map(containersFrom));
    isReady = true;
    const recorded: Record<string, string> = {};
    const { operandImage = '', operandVersion = '', operatorVersion = '' } = given;
    const config = {
      ...CONFIG,
      operandName: given.operandName ?? given.staticPodName,
      staticPodName: given.staticPodName,
      versions: { operandImage, operand: operandVersion, operator: operatorVersion },
    };
    const versions = {
      record(operand: string, version: string) {
        recorded[operand] = version;
      },
    };
    await cluster.run(staticPodStateReconcile({ ...cluster.parts, config, versions }));
    if (expected.conditions !== undefined) checkConditions((await cluster.status()).conditions, expected.conditions);
    if (expected.events !== undefined) checkEvents(cluster.events, expected.events);
    if (expected.versionsSet !== undefined) assert.deepEqual(recorded, expected.versionsSet);
  },

  async 'installerState.sync'(given, expected) {
    const cluster = new TestCluster();
    await cluster.setOperator({});
    await cluster.put(...given.pods.map((pod: Json) => pendingFrom(pod, { app: 'installer' })));
    for (const [index, event] of given.namespaceEvents.entries()) await cluster.kube.create(EVENTS, eventFrom(event, index, given));
    await cluster.run(installerStateReconcile(cluster.parts));
    checkConditions((await cluster.status()).conditions, expected.conditions);
    if (expected.events !== undefined) checkEvents(cluster.events, expected.events);
  },

  async 'missingStaticPod.sync'(given, expected) {
    const cluster = new TestCluster();
    const { operandName, namespace, singleNode } = given;
    await cluster.setOperator({});
    for (const { name, node, terminated } of given.installerPods) {
      const state = terminated && {
        terminated: { exitCode: terminated.exitCode, finishedAt: timeAgo(terminated.finishedSecondsAgo) },
      };
      const status = { containerStatuses: [{ name: 'installer', ...defined({ state }) }] };
      await cluster.kube.create(PODS, {
        metadata: { namespace, name, labels: { app: 'installer' } },
        spec: { nodeName: node, containers: [] },
        status: status as never,
      });
    }
    for (const { node, revision } of given.staticPods) {
      const metadata = { namespace, name: `${operandName}-${node}`, ...defined({ labels: revision === undefined ? undefined : { revision } }) };
      await cluster.kube.create(PODS, { metadata });
    }
    for (const { revision, terminationGracePeriodSeconds, noPodYamlKey, podYaml } of given.podConfigMaps) {
      const manifest = podYaml ?? JSON.stringify({ apiVersion: 'v1', kind: 'Pod', spec: { terminationGracePeriodSeconds } });
      const metadata = { namespace, name: `${operandName}-pod-${revision}` };
      await cluster.kube.create(CONFIG_MAPS, { metadata, data: noPodYamlKey ? {} : { 'pod.yaml': manifest } });
    }
    const topology = () => (given.topologyKnown === false || singleNode === null ? undefined : singleNode);
    const config = { ...CONFIG, operandName, operandNamespace: namespace, staticPodName: operandName, topology };
    const reconcile = missingStaticPodReconcile({ ...cluster.parts, config });
    const name = 'MissingStaticPodController';
    const wrapped = reportingDegraded(reconcile, { name, write: condition => cluster.operator.setConditions([condition]) });
    const error = await attempt(() => cluster.run(wrapped));
    for (let pass = 2; pass <= (given.syncCount ?? 1); pass++) await attempt(() => cluster.run(wrapped));
    if (expected.error !== undefined) assert.equal(error !== undefined, Boolean(expected.error), error?.message);
    if (expected.events !== undefined) checkEvents(cluster.events, expected.events);
    if (expected.eventReason !== undefined) for (const { reason } of cluster.events) assert.equal(reason, expected.eventReason);
    for (const part of [expected.messageContains ?? []].flat()) assert.ok(error?.message.includes(part), error?.message);
    if (expected.conditions !== undefined) checkConditions((await cluster.status()).conditions, expected.conditions);
  },

  async 'fallbackCondition.sync'({ startupMonitorEnabled, pods }, { conditions }) {
    const cluster = new TestCluster();
    await cluster.setOperator({});
    for (const { name, annotations = {}, labels = CONFIG.operandLabels } of pods) {
      await cluster.kube.create(PODS, { metadata: { namespace: NAMESPACE, name, annotations, labels } });
    }
    const config = { ...CONFIG, startupMonitor: () => startupMonitorEnabled };
    await cluster.run(fallbackReconcile({ ...cluster.parts, config }));
    checkConditions((await cluster.status()).conditions, conditions);
  },

  async 'startupMonitorCondition.sync'({ targetName, nodeStatuses, pod, startupMonitorEnabled = true }, { conditions }) {
    const cluster = new TestCluster();
    await cluster.setOperator({ nodeStatuses });
    if (pod) await cluster.put(pendingFrom(pod, {}));
    const config = { ...CONFIG, staticPodName: targetName, startupMonitor: () => startupMonitorEnabled };
    await cluster.run(startupMonitorConditionReconcile({ ...cluster.parts, config }));
    checkConditions((await cluster.status()).conditions, conditions);
  },

  async 'guard.sync'(given, expected) {
    const cluster = new TestCluster();
    const { namespace, prefix, node, operand, existingGuard } = given;
    const labels = { app: 'operand' };
    const image = given.image ?? 'image';
    const taints = node.unschedulable ? [{ key: 'node.kubernetes.io/unschedulable', effect: 'NoSchedule' }] : [];
    await cluster.put({
      kind: 'Node',
      metadata: { name: node.name, labels: { 'node-role.kubernetes.io/master': '' } },
      spec: { taints: node.taints ?? taints },
      status: node.ready === undefined ? {} : { conditions: [{ type: 'Ready', status: node.ready ? 'True' : 'False' }] },
    });
    if (operand) {
      const status = { phase: 'Running', ...defined({ podIP: operand.podIP || undefined }) };
      await cluster.put({ kind: 'Pod', metadata: { namespace, name: operand.name, labels }, spec: { nodeName: operand.node ?? node.name, containers: [] }, status });
    }
    if (existingGuard) {
      const { name, probeHost: host = operand?.podIP, probePort: port = given.readyzPort, path = given.readyzEndpoint ?? 'readyz' } = existingGuard;
      const readinessProbe = { httpGet: { host, port, path } };
      const spec = { nodeName: node.name, ...defined({ hostname: existingGuard.hostname }), containers: [{ name: 'guard', image: existingGuard.image ?? image, readinessProbe }] };
      await cluster.put({ kind: 'Pod', metadata: { namespace, name, labels: { app: 'guard' } }, spec, status: { phase: existingGuard.phase ?? 'Running' } });
    }
    const before = existingGuard && (await cluster.kube.get(PODS, { namespace, name: existingGuard.name })).metadata?.uid;
    const wanted = () => {
      if (given.createError !== undefined) throw new Error(given.createError);
      return given.create ?? undefined;
    };
    const guard = { port: given.readyzPort, path: given.readyzEndpoint ?? 'readyz', wanted };
    const config = { ...CONFIG, operandNamespace: namespace, staticPodName: prefix, operandLabels: labels, guard, installer: { image } };
    const error = await attempt(() => cluster.run(guardReconcile({ ...cluster.parts, config })));
    checkError(error, expected.error);
    const [pod] = await cluster.cached.list(PODS, { namespace, labels: { app: 'guard' } });
    if (expected.guardPod === null) assert.equal(pod, undefined);
    else if (expected.guardPod !== undefined) {
      const probe = pod?.spec?.containers[0]?.readinessProbe?.httpGet;
      const found: Json = {
        ...pod?.metadata,
        ...pod?.spec,
        probeHost: probe?.host,
        probePort: probe?.port,
        probePath: probe?.path,
        image: pod?.spec?.containers[0]?.image,
      };
      for (const [field, value] of Object.entries(expected.guardPod)) assert.deepEqual(found[field], value, field);
    }
    if (expected.recreated !== undefined) assert.equal(before !== undefined && pod?.metadata?.uid !== before, expected.recreated);
    if (given.create === false) assert.equal((await cluster.cached.list(POD_DISRUPTION_BUDGETS, { namespace })).length, 0);
  },

  'guard.pdb'({ masterNodes, prefix, evictionPolicy }, expected) {
    const { metadata, spec } = guardBudget('ns', prefix, masterNodes, evictionPolicy);
    const found: Json = { ...spec, name: metadata?.name, selector: spec?.selector?.matchLabels };
    for (const [field, value] of Object.entries(expected)) assert.deepEqual(found[field], value, field);
  },
};

async function clusterWithNodes(given: Json, nodeStatuses: Json): Promise<TestCluster> {
  const cluster = new TestCluster();
  await cluster.setOperator({ nodeStatuses, ...defined({ conditions: given.conditions }) });
  const nodes: Node[] = given.nodes.map(nodeFrom);
  const cached = { ...cluster.cached, list: async () => nodes.filter(({ metadata }) => metadata?.labels?.['node-role.kubernetes.io/master'] === '') as never };
  return Object.assign(cluster, { cached });
}

function nodeFrom({ name, labels, uid, readyCondition }: Json): Node {
  return {
    kind: 'Node',
    metadata: { name, ...defined({ labels, uid }) },
    ...(readyCondition && { status: { conditions: [{ type: 'Ready', ...readyCondition }] } }),
  };
}

function entries(list: readonly StoredNodeStatus[] | undefined): StoredNodeStatus[] {
  return (list ?? []).map(entry => storedNodeStatus(readNodeStatus(entry)));
}

function containersFrom({ name, image, containerSpecs = [{ name: 'c' }], containerStatuses = [] }: Json): Pod {
  return {
    kind: 'Pod',
    metadata: { namespace: NAMESPACE, name },
    spec: { containers: containerSpecs.map((spec: Json) => ({ image, ...spec })) },
    status: {
      containerStatuses: containerStatuses.map(({ name, ready, waiting, running, terminated }: Json) => ({
        name,
        ready,
        state: defined({ waiting, terminated, running: running && { startedAt: timeAgo(running.startedSecondsAgo) } }),
      })),
    },
  };
}

/** A pod that waits, ends or restarts, as far as the case says. */
function pendingFrom(given: Json, labels: Record<string, string>): Pod {
  const { name, node, phase, reason, message, startedSecondsAgo, containerWaiting, containerRestarts, containerTerminated } = given;
  const containerStatuses = [
    ...(containerWaiting ? [{ name: containerWaiting.name, state: { waiting: defined({ reason: containerWaiting.reason, message: containerWaiting.message }) } }] : []),
    ...(containerRestarts ? [{ name: containerRestarts.name, restartCount: containerRestarts.count }] : []),
    ...(containerTerminated ? [{ name: containerTerminated.name, state: { terminated: containerTerminated } }] : []),
    ...(given.containerStatuses ?? []),
  ].map(status => ({ restartCount: 0, ...status }));
  return {
    kind: 'Pod',
    metadata: { namespace: NAMESPACE, name, labels },
    spec: { ...defined({ nodeName: node || undefined }), containers: [] },
    status: { ...defined({ phase, reason, message, startTime: timeAgo(startedSecondsAgo) }), containerStatuses },
  };
}

function eventFrom(event: Json, index: number, given: Json): Event {
  const { reason = 'FailedCreatePodSandBox', message, involvedObject } = event;
  const name = event.pod ?? event.podName ?? event.involvedName ?? given.pods[0]?.name;
  return {
    metadata: { namespace: NAMESPACE, name: `event-${index}` },
    involvedObject: involvedObject ?? { kind: event.involvedKind ?? 'Pod', name },
    reason,
    message,
  };
}
