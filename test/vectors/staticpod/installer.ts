import { knownWord } from '../run-case.ts';
import assert from 'node:assert/strict';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import type { Reconcile } from '../../../src/controller/reconcile.ts';
import { hours } from '../../../src/kube/duration.ts';
import { MemoryKube } from '../../../src/kube/memory.ts';
import { CONFIG_MAPS, PODS, SECRETS } from '../../../src/kube/resource.ts';
import { formatRfc3339 } from '../../../src/kube/time.ts';
import type { StaticPodOperatorConfig } from '../../../src/staticpod/config.ts';
import { chooseNode, revisionToStart } from '../../../src/staticpod/installer/choice.ts';
import { rolloutConditions } from '../../../src/staticpod/installer/conditions.ts';
import { installerReconcile } from '../../../src/staticpod/installer/controller.ts';
import { type Operand, operandOf } from '../../../src/staticpod/installer/operand.ts';
import { fallbackBackoffMs, installerBackoffMs, minReadyWaitMs, retryAfter } from '../../../src/staticpod/installer/pause.ts';
import { installerArguments } from '../../../src/staticpod/installer/pod.ts';
import { installerPodName, revisionOfInstallerPod } from '../../../src/staticpod/installer/pod-name.ts';
import { MissingResources } from '../../../src/staticpod/installer/required.ts';
import { nextNodeState } from '../../../src/staticpod/installer/transition.ts';
import { type NodeStatus, readNodeStatus, storedNodeStatus } from '../../../src/staticpod/node-status.ts';
import { StaticPodOperator } from '../../../src/staticpod/operator.ts';
import { CONFIG, intercepted, NOW, OPERATORS, TestCluster } from '../../../src/staticpod/testing.ts';
import {
  type Adapter,
  attempt,
  checkConditions,
  checkError,
  checkEvent,
  defined,
  errorOf,
  type Json,
  nodesOf,
  objectOf,
  operandFrom,
} from './case.ts';

const NAMESPACE = 'test';
const STATIC_POD = 'test-pod';

export const installerAdapters: Record<string, Adapter> = {
  async 'installer.chooseNode'({ nodes, staticPods }, expected) {
    const operands = new Map<string, Operand>(staticPods.map((pod: Json) => [pod.node, operandInState(pod)]));
    let choice: Json;
    const error = await attempt(() => (choice = chooseNode(nodesOf(nodes), name => operands.get(name))));
    checkError(error, expected.error);
    if (expected.index !== undefined) assert.equal(choice.index, expected.index);
    if (expected.reason !== undefined) assert.equal(choice.reason, expected.reason);
  },

  async 'installer.rollout'(given, expected) {
    pausesAreOver(given);
    knownWord(given.installerOutcome, undefined, 'each installer pod succeeds at creation time and the static pod of that revision is immediately ready');
    const world = await World.of(given);
    let failuresLeft = given.firstInstallersFail ?? 0;
    world.onInstaller = async pod => {
      if (failuresLeft-- > 0) await world.finishInstaller(pod, false);
      else {
        await world.finishInstaller(pod, true);
        const { revision = '', node = '' } = partsOf(pod);
        await world.setOperand(node, { revision, phase: 'Running', ready: true, readyConditionAgeSeconds: 7200 });
      }
    };
    for (let pass = 1; pass <= given.syncCount; pass++) {
      const error = await world.pass();
      const wanted = expected.syncErrors?.[pass - 1] ?? false;
      assert.equal(error !== undefined, wanted, `pass ${pass}: ${error?.message}`);
      await world.passTime();
    }
    const found = world.installers.map(pod => {
      const { node, revision, retry } = partsOf(pod);
      return { node, revision: Number(revision), retry: Number(retry ?? 0) };
    });
    assert.deepEqual(found, expected.installerPodsInOrder);
  },

  'installer.nextNodeState'(given, expected) {
    // Who finds the pods for it knows where they are; the state has nothing of it.
    for (const name of [given.namespace, given.staticPodName]) assert.match(name, /^[a-z-]+$/);
    const node = readNodeStatus(given.nodeStatus);
    const pods: Pod[] = given.installerPods.map(installerFrom);
    const now = new Date(given.now);
    const { node: after, ...transition } = nextNodeState({
      node,
      published: given.latestAvailableRevision,
      installerPod: pods.find(pod => pod.metadata?.name === installerPodName(node)),
      operand: given.staticPod ? operandOf(operandFrom(given.staticPod, NAMESPACE, 'operand'), now) : undefined,
      hasStartupMonitor: given.startupMonitorEnabled,
      now,
    });
    assert.deepEqual(storedNodeStatus(after), storedNodeStatus(readNodeStatus(expected.nodeStatus)));
    if (expected.installerPodFailed !== undefined) assert.equal(transition.installerFailed, expected.installerPodFailed);
    if (expected.reason !== undefined) assert.equal(transition.reason, expected.reason);
    if (expected.deletedPods !== undefined) {
      assert.deepEqual(transition.deletesInstaller ? [installerPodName(node)] : [], expected.deletedPods);
    }
  },

  'installer.revisionToStart'({ node, previousNodeInRing, latestAvailableRevision }, { revision }) {
    const previous = previousNodeInRing ? readNodeStatus(previousNodeInRing) : undefined;
    assert.equal(revisionToStart(readNodeStatus(node), previous, latestAvailableRevision), revision);
  },

  'installer.podName'({ nodeStatus }, { name }) {
    assert.equal(installerPodName(readNodeStatus(nodeStatus)), name);
  },

  'installer.backoff'({ which, count }, { seconds }) {
    const ms = which === 'fallback' ? fallbackBackoffMs(count) : installerBackoffMs(count);
    assert.ok(Math.abs(ms / 1000 - seconds) < 0.01, `${ms} ms`);
  },

  async 'installer.retryGate'(given, expected) {
    const node = readNodeStatus(given.nodeStatus);
    const now = new Date(given.now);
    const after = retryAfter(node);
    const world = await World.of({ ...given, nodes: [given.nodeStatus], now: given.now });
    const result = await world.passResult();
    if (expected.createInstaller !== undefined) assert.equal(world.installers.length > 0, expected.createInstaller);
    if (expected.podName !== undefined) assert.equal(world.installers[0]?.metadata?.name, expected.podName);
    if (expected.requeueAfterSeconds === null) assert.equal(result?.againAt, undefined);
    else if (expected.requeueAfterSeconds !== undefined) {
      assert.equal(((after as Date).getTime() - now.getTime()) / 1000, expected.requeueAfterSeconds);
      // The pass looks again as soon as the time is over, which takes a millisecond more.
      assert.equal(result?.againAt?.getTime(), (after as Date).getTime() + 1);
    }
    if (expected.newTargetRevision !== undefined) {
      assert.equal((await world.node(node.nodeName)).targetRevision, expected.newTargetRevision);
    }
  },

  'installer.minReadyWait'({ minReadySeconds, nodes, staticPods }, { waitSeconds }) {
    const operands = nodes.map((name: string) => {
      const pod = staticPods.find(({ node }: Json) => node === name);
      return pod && operandOf(operandFrom({ ...pod, phase: pod.phase ?? 'Running' }, NAMESPACE, name), NOW);
    });
    assert.equal(minReadyWaitMs(operands, minReadySeconds * 1000, NOW) / 1000, waitSeconds);
  },

  'installer.conditions'({ latestAvailableRevision, nodes }, { conditions }) {
    checkConditions(rolloutConditions(nodesOf(nodes), latestAvailableRevision), conditions);
  },

  async 'installer.requiredResources'(given, expected) {
    const memory = new MemoryKube();
    const kube = intercepted(memory, (verb, resource, name) => {
      for (const { get, object, name: named, error } of given.faults ?? []) {
        const target = String(get ?? object ?? named).replace(/^\w+ /, '');
        if (verb === 'get' && `${resource.plural}/${name}`.endsWith(target)) throw errorOf(error);
      }
    });
    const cluster = new TestCluster({ kube });
    const { namespace, configMaps = [], secrets = [], certConfigMaps = [], certSecrets = [] } = given;
    await cluster.setOperator({ latestAvailableRevision: given.revision });
    await cluster.put(...(given.objects ?? []).map((object: Json) => objectOf(object, namespace)));
    const config = {
      ...CONFIG,
      operandNamespace: namespace,
      revisioned: { configMaps, secrets },
      unrevisioned: { configMaps: certConfigMaps, secrets: certSecrets, directory: 'certs' },
    };
    const error = await attempt(() => cluster.run(installerReconcile({ ...cluster.parts, config })));
    checkError(error, expected.error);
    if (expected.event !== undefined) {
      checkEvent(cluster.events.find(({ reason }) => reason === 'RequiredInstallerResourcesMissing'), expected.event);
    }
    if (typeof expected.error === 'string' && expected.error.startsWith('missing required')) {
      assert.ok(error instanceof MissingResources);
    }
  },

  async 'installer.podArgs'(given, expected) {
    let args: Json;
    const error = await attempt(() => {
      args = installerArguments(configOf(given), {
        node: readNodeStatus(given.nodeStatus),
        spec: defined({ logLevel: given.logLevel }),
        hasStartupMonitor: given.startupMonitorEnabled ?? false,
      });
    });
    checkError(error, expected.error);
    if (expected.args !== undefined) assert.deepEqual(args, expected.args);
  },

  async 'installer.pod'(given, expected) {
    const world = await World.of(given);
    for (let pass = 1; pass <= given.syncCount; pass++) {
      assert.equal(await world.pass(), undefined);
      const wanted = expected.podsCreatedAfterSync?.[pass - 1];
      if (wanted !== undefined) assert.equal(world.installers.length, wanted, `pass ${pass}`);
    }
    const [pod] = world.installers;
    const [container] = pod?.spec?.containers ?? [];
    const found: Json = { ...pod?.metadata, ...pod?.spec, image: container?.image, command: container?.command, args: container?.args };
    for (const [field, value] of Object.entries(expected.pod)) assert.deepEqual(found[field], value, field);
  },

  async 'installer.sequence'(given, expected) {
    pausesAreOver(given);
    const world = await World.of(given);
    for (const [index, step] of given.steps.entries()) {
      const where = `step ${index + 1} ${step.do}`;
      await world.step(step);
      const nodes = nodesOf((await world.cluster.status()).nodeStatuses);
      const [node] = nodes;
      for (const [field, value] of Object.entries<Json>(step.expect ?? {})) {
        if (field === 'installerPods') assert.equal(world.installers.length, value, where);
        else if (field === 'podName') assert.equal(world.installers.at(-1)?.metadata?.name, value, where);
        else if (field === 'argsContain') {
          const args = world.installers.at(-1)?.spec?.containers[0]?.args ?? [];
          for (const arg of [value].flat()) assert.ok(args.includes(arg), `${where}: ${args.join(' ')}`);
        } else if (field === 'conditions') checkConditions((await world.cluster.status()).conditions, value);
        else if (field === 'events') for (const event of value) checkEvent(world.cluster.events.findLast(({ reason }) => reason === (event.reason ?? event)), event);
        else assert.deepEqual((node as Json)[field], value, `${where}: ${field}`);
      }
    }
    const { nodeStatuses } = await world.cluster.status();
    assert.equal(nodesOf(nodeStatuses)[0]?.currentRevision, expected.finalCurrentRevision);
  },

  async 'installer.staleCache'({ syncCount, cachedResourceVersionPerSync, liveResourceVersionAfterFirstWrite }, { statusWritesAfterSync }) {
    assert.equal(liveResourceVersionAfterFirstWrite, cachedResourceVersionPerSync[0] + 1);
    // Each pass that is not held back finds one more thing to write: a target, then what became of it.
    const world = await World.of({ latestAvailableRevision: 1, nodes: [{ nodeName: 'test-node', currentRevision: 0 }] });
    const versions: Json[] = [await world.cluster.operator.readLive()];
    let writes = 0;
    let pass = 0;
    const kube = intercepted(world.cluster.kube, verb => {
      if (verb === 'updateStatus') writes++;
    });
    const cache = { get: () => versions[cachedResourceVersionPerSync[pass] - 1] ?? versions.at(-1) };
    const operator = new StaticPodOperator({ kube, resource: OPERATORS, clock: world.cluster.clock, cache });
    const reconcile = installerReconcile({ ...world.cluster.parts, config: world.config, operator });
    world.onInstaller = pod => world.finishInstaller(pod, false);
    for (; pass < syncCount; pass++) {
      await world.cluster.run(reconcile);
      if (writes > versions.length - 1) versions.push(await world.cluster.operator.readLive());
      assert.equal(writes, statusWritesAfterSync[pass], `pass ${pass + 1}`);
    }
  },

  'installer.staticPodState'({ pod }, expected) {
    const operand = operandOf(operandFrom(pod, NAMESPACE, 'operand'), NOW);
    for (const field of ['state', 'revision', 'reason'] as const) if (expected[field] !== undefined) assert.equal(operand[field], expected[field]);
    if (expected.errors !== undefined) assert.deepEqual(operand.errors, expected.errors);
    if (expected.time !== undefined) assert.equal(formatRfc3339(operand.since), expected.time);
  },

  async 'installer.revisionOfPod'({ podName }, expected) {
    let revision: number | undefined;
    const error = await attempt(() => (revision = revisionOfInstallerPod(podName)));
    checkError(error, expected.error);
    if (expected.revision !== undefined) assert.equal(revision, expected.revision);
  },
};

/** A cluster with an installer controller, whose installer pods and operands the case moves by hand. */
class World {
  readonly cluster: TestCluster;
  readonly config: StaticPodOperatorConfig;
  readonly installers: Pod[] = [];
  onInstaller: (pod: Pod) => Promise<void> = async () => {};
  readonly #reconcile: Reconcile;
  readonly #memory: MemoryKube;

  private constructor(given: Json) {
    this.#memory = new MemoryKube();
    let statusWrites = 0;
    const hooked = intercepted(this.#memory, (verb, resource, name) => {
      if (verb !== 'updateStatus' || resource !== OPERATORS) return;
      statusWrites++;
      for (const fault of given.faults ?? []) if (fault.statusWrite === statusWrites) throw errorOf(`${fault.error} ${name}`);
    });
    const kube = {
      ...hooked,
      create: async (resource: Json, object: Json, options: Json) => {
        const created = await hooked.create(resource, object, options);
        if (resource === PODS && object.metadata.labels?.app === 'installer') {
          this.installers.push(object);
          await this.onInstaller(object);
        }
        return created;
      },
    };
    this.cluster = new TestCluster({ kube: kube as never, now: given.now ? new Date(given.now) : NOW });
    this.config = configOf(given);
    this.#reconcile = installerReconcile({ ...this.cluster.parts, config: this.config });
  }

  static async of(given: Json): Promise<World> {
    const world = new World(given);
    const { cluster, config } = world;
    const { latestAvailableRevision, nodes } = given;
    await cluster.setOperator({ latestAvailableRevision, nodeStatuses: nodes }, defined({ logLevel: given.logLevel }));
    const present = new Set((given.objects ?? []).map(({ name }: Json) => name));
    const revisions = [latestAvailableRevision, ...nodes.map(({ targetRevision }: Json) => targetRevision ?? 0)];
    for (const revision of new Set<number>(revisions.filter(revision => revision > 0))) {
      for (const { name } of [{ name: 'revision-status' }, ...config.revisioned.configMaps]) present.add(`${name}-${revision}`);
      for (const { name } of config.revisioned.secrets) {
        await cluster.kube.create(SECRETS, { metadata: { namespace: NAMESPACE, name: `${name}-${revision}` } });
      }
    }
    for (const name of present) {
      if (config.revisioned.secrets.some(secret => name === `${secret.name}-${latestAvailableRevision}`)) continue;
      await cluster.kube.create(CONFIG_MAPS, { metadata: { namespace: NAMESPACE, name: name as string } });
    }
    for (const pod of given.staticPods ?? []) await world.setOperand(pod.node, { readyConditionAgeSeconds: 7200, ...pod });
    return world;
  }

  async pass(): Promise<Error | undefined> {
    return attempt(() => this.cluster.run(this.#reconcile));
  }

  async passResult(): Promise<Json> {
    return this.cluster.run(this.#reconcile);
  }

  /** Longer than any pause. */
  passTime(): Promise<void> {
    return this.cluster.clock.advance(hours(3));
  }

  async node(name: string): Promise<NodeStatus> {
    return nodesOf((await this.cluster.status()).nodeStatuses).find(({ nodeName }) => nodeName === name) as NodeStatus;
  }

  async step(step: Json): Promise<void> {
    const latest = this.installers.at(-1);
    const [first] = nodesOf((await this.cluster.status()).nodeStatuses);
    const nodeName = first?.nodeName ?? '';
    switch (step.do) {
      case 'sync': {
        // Pauses are off in these cases unless a step sets one: then no time passes.
        const pauses = [step.installerBackoffSeconds, step.fallbackBackoffSeconds, step.backoffSeconds];
        if (!pauses.some(pause => pause > 0)) await this.passTime();
        assert.equal(await this.pass(), undefined);
        return;
      }
      case 'installerSucceeds':
        return this.finishInstaller(latest as Pod, true);
      case 'installerFails':
        return this.finishInstaller(latest as Pod, false, step.message);
      case 'deleteInstallerPod':
        await this.#memory.delete(PODS, keyOf(latest as Pod));
        this.installers.pop();
        return;
      case 'staticPodAppears':
        return this.setOperand(nodeName, { phase: 'Running', ready: false, ...step, revision: String(step.revision) });
      case 'staticPodReady':
        return this.setOperand(nodeName, { ready: true });
      case 'fallbackPodAppears': {
        const revision = String(step.revision ?? step.fallbackRevision ?? first?.currentRevision);
        const failed = String(step.forRevision ?? step.fallbackForRevision ?? step.failedRevision ?? first?.targetRevision);
        const prefix = 'startup-monitor.static-pods.openshift.io/fallback-';
        const annotations = {
          [`${prefix}for-revision`]: failed,
          ...(step.reason && { [`${prefix}reason`]: step.reason }),
          ...(step.message && { [`${prefix}message`]: step.message }),
          ...step.annotations,
        };
        const creationTimestamp = formatRfc3339(this.cluster.clock.now());
        return this.setOperand(nodeName, { phase: 'Running', ready: true, revision, annotations, creationTimestamp });
      }
      case 'startupMonitorMarksCurrent': {
        const revision = step.revision ?? first?.targetRevision;
        await this.cluster.operator.update(status => ({ ...status, nodeStatuses: [{ nodeName, currentRevision: revision }] }));
        return;
      }
      default:
        throw new assert.AssertionError({ message: `a step nobody knows: ${step.do}` });
    }
  }

  async finishInstaller(pod: Pod, succeeds: boolean, message = 'killed by OOM'): Promise<void> {
    const stored = await this.#memory.get(PODS, keyOf(pod));
    const terminated = { exitCode: succeeds ? 0 : 1, ...(succeeds ? {} : { message }) };
    const status = { phase: succeeds ? 'Succeeded' : 'Failed', containerStatuses: [{ name: 'installer', state: { terminated } }] };
    await this.#memory.update(PODS, { ...stored, status: status as never });
  }

  async setOperand(nodeName: string, given: Json): Promise<void> {
    const name = `${this.config.staticPodName}-${nodeName}`;
    const existing = await this.#memory.get(PODS, { namespace: NAMESPACE, name }).catch(() => undefined);
    const before: Json = existing && { revision: existing.metadata?.labels?.revision, phase: existing.status?.phase };
    const pod = operandFrom({ readyConditionAgeSeconds: 7200, ...before, ...given }, NAMESPACE, name);
    if (existing === undefined) await this.#memory.create(PODS, pod);
    else await this.#memory.update(PODS, pod);
  }
}

function configOf(given: Json): StaticPodOperatorConfig {
  const { configMaps = [{ name: 'test-config' }], secrets = [{ name: 'test-secret' }] } = given;
  const { certDir, certConfigMaps = [], certSecrets = [] } = given;
  return {
    ...CONFIG,
    operandNamespace: given.namespace ?? NAMESPACE,
    staticPodName: given.staticPodName ?? STATIC_POD,
    revisioned: { configMaps, secrets },
    ...(certDir && { unrevisioned: { directory: certDir, configMaps: certConfigMaps, secrets: certSecrets } }),
    installer: { command: given.command ?? ['/bin/true'], image: given.image ?? 'image', minReadyMs: (given.minReadySeconds ?? 0) * 1000 },
    startupMonitor: () => given.startupMonitorEnabled ?? false,
  };
}

function operandInState({ state, revision }: Json): Operand {
  return { state, revision, reason: '', errors: [], since: NOW, readySince: state === 'ready' ? NOW : undefined };
}

function installerFrom({ name, phase, message, containers = [] }: Json): Pod {
  const containerStatuses = containers.map((container: Json) => ({
    name: container.name,
    state: { terminated: { exitCode: 1, message: container.terminatedMessage } },
  }));
  return {
    metadata: { namespace: NAMESPACE, name },
    status: { phase, ...defined({ message }), containerStatuses },
  };
}

function partsOf(pod: Pod): Record<string, string | undefined> {
  const match = /^installer-(\d+)-(?:retry-(\d+)-)?(.*)$/.exec(pod.metadata?.name ?? '');
  return { revision: match?.[1], retry: match?.[2], node: match?.[3] };
}

function keyOf({ metadata }: Pod) {
  return { namespace: metadata?.namespace, name: metadata?.name ?? '' };
}

/** The clock of these cases stands still: whoever has to pause would never go on. */
function pausesAreOver({ installerBackoffSeconds = 0, fallbackBackoffSeconds = 0 }: Json): void {
  assert.deepEqual([installerBackoffSeconds, fallbackBackoffSeconds], [0, 0]);
}
