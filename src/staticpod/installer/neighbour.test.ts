import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { RetryRequest } from '../../controller/reconcile.ts';
import { MemoryKube } from '../../kube/memory.ts';
import { PODS, type Resource, resource } from '../../kube/resource.ts';
import type { StaticPodOperatorConfig } from '../config.ts';
import type { StoredNodeStatus } from '../node-status.ts';
import { StaticPodOperator, type StaticPodOperatorResource, type StaticPodOperatorStatus } from '../operator.ts';
import { CONFIG, configMap, intercepted, OPERATORS, operandPod, secret, storedNode, TestCluster } from '../testing.ts';
import { installerReconcile } from './controller.ts';

const ETCDS: Resource<StaticPodOperatorResource> = resource<StaticPodOperatorResource>(
  'operator.openshift.io/v1',
  'Etcd',
  'etcds',
  false,
);
const NODES = ['m0', 'm1', 'm2'];
const BEFORE = 3;
const WANTED = 4;
const PATIENCE_SECONDS = 300;

const SECOND: StaticPodOperatorConfig = { ...CONFIG, neighbour: { operator: ETCDS, comesFirst: false } };

describe('no node restarts two things at once (spec 90, HO-5)', () => {
  async function besideEtcd(etcd: Omit<StoredNodeStatus, 'nodeName'>, own: Omit<StoredNodeStatus, 'nodeName'> = {}) {
    const cluster = new TestCluster();
    await cluster.setOperator({
      latestAvailableRevision: WANTED,
      nodeStatuses: [storedNode('m0', { currentRevision: BEFORE, ...own })],
    });
    await cluster.put(configMap('revision-status-4'), configMap('test-pod-4'), secret('test-secret-4'));
    await cluster.put(operandPod('m0', BEFORE, true));
    const say = async (entry: Omit<StoredNodeStatus, 'nodeName'>) => {
      const found = await cluster.kube.get(ETCDS, { name: 'cluster' }).catch(() => undefined);
      const status: StaticPodOperatorStatus = { nodeStatuses: [storedNode('m0', { currentRevision: 7, ...entry })] };
      if (found === undefined) await cluster.kube.create(ETCDS, { metadata: { name: 'cluster' }, status });
      else await cluster.kube.updateStatus(ETCDS, { ...found, status });
    };
    await say(etcd);
    const controllers = (['second', 'first'] as const).map(place =>
      installerReconcile({
        ...cluster.parts,
        config: { ...CONFIG, neighbour: { operator: ETCDS, comesFirst: place === 'first' } },
      }),
    );
    const [second, first] = controllers as [(typeof controllers)[0], (typeof controllers)[0]];
    return {
      cluster,
      say,
      second: () => cluster.run(second),
      first: () => cluster.run(first),
      target: async () => (await cluster.status()).nodeStatuses?.[0]?.targetRevision,
      isInstalling: () => cluster.has(PODS, 'installer-4-m0'),
    };
  }

  test('a node where the neighbour is at work is left alone until it is done', async () => {
    const { second, target, say, isInstalling } = await besideEtcd({ targetRevision: 8 });
    const result = await second();
    assert.equal(await target(), undefined);
    assert.ok(result?.againAt !== undefined, 'somebody has to look again');
    await say({ currentRevision: 8 });
    await second();
    assert.equal(await target(), WANTED);
    await second();
    assert.ok(await isInstalling());
  });

  test('when both have said that they are about to, one takes it back and the other one waits for that', async () => {
    const own = { targetRevision: WANTED };
    const late = await besideEtcd({ targetRevision: 8 }, own);
    await late.second();
    assert.deepEqual([await late.target(), await late.isInstalling()], [undefined, false]);

    const early = await besideEtcd({ targetRevision: 8 }, own);
    await early.first();
    assert.deepEqual([await early.target(), await early.isInstalling()], [WANTED, false]);
    await early.say({});
    await early.first();
    assert.ok(await early.isInstalling());
  });

  test('what is down is brought back whatever the neighbour does', async () => {
    const { cluster, second, isInstalling } = await besideEtcd({ targetRevision: 8 }, { targetRevision: WANTED });
    await cluster.kube.update(PODS, operandPod('m0', BEFORE, false));
    await second();
    assert.ok(await isInstalling());
  });

  test('a neighbour that has failed, or takes for ever, is not waited for', async () => {
    const failed = await besideEtcd({ targetRevision: 8, lastFailedRevision: 8, lastFailedCount: 1 });
    await failed.second();
    assert.equal(await failed.target(), WANTED);

    const stuck = await besideEtcd({ targetRevision: 8 });
    const { clock } = stuck.cluster;
    await stuck.second();
    await clock.advanceTo(new Date(clock.now().getTime() + PATIENCE_SECONDS * 1000 - 1));
    await stuck.second();
    assert.equal(await stuck.target(), undefined);
    await clock.advanceTo(new Date(clock.now().getTime() + 1));
    await stuck.second();
    assert.equal(await stuck.target(), WANTED);
  });

  test('a cluster without such a neighbour goes on', async () => {
    const { cluster, second, target } = await besideEtcd({ targetRevision: 8 });
    await cluster.kube.delete(ETCDS, { name: 'cluster' });
    await second();
    assert.equal(await target(), WANTED);
  });

  test('however the steps of two operators fall, they replace no two pods of one node at once, and both get done', async () => {
    for (let seed = 1; seed <= 60; seed++) await sideBySide(seed);
  });
});

/** Two operators over the same nodes, every call of which waits for a moment that the seed chooses. */
async function sideBySide(seed: number): Promise<void> {
  const random = randomFrom(seed);
  const memory = new MemoryKube();
  const parts = [
    operatorIn('kas', OPERATORS, { operator: ETCDS, comesFirst: false }),
    operatorIn('etcd', ETCDS, { operator: OPERATORS, comesFirst: true }),
  ] as const;
  const restarting = new Map<string, string>();
  const turns = async (most: number) => {
    for (let left = random(most); left > 0; left--) await new Promise(resolve => setImmediate(resolve));
  };
  const beginning = (name: string, nodeName: string) => {
    const other = restarting.get(nodeName);
    assert.equal(other, undefined, `seed ${seed}: ${name} restarts on ${nodeName} while ${other} does`);
    restarting.set(nodeName, name);
  };
  for (const { config } of parts) await furnish(memory, config);
  let busy = 0;
  /** As a kubelet does: the installer writes the manifest, the old pod goes, the new one becomes ready. */
  const kubelet = async ({ config }: (typeof parts)[number], pod: Pod) => {
    busy++;
    const nodeName = pod.spec?.nodeName ?? '';
    const { operandNamespace: namespace, staticPodName } = config;
    const operand = (isReady: boolean): Pod => {
      const made = operandPod(nodeName, WANTED, isReady);
      return { ...made, metadata: { ...made.metadata, namespace, name: `${staticPodName}-${nodeName}` } };
    };
    await turns(8);
    await memory.updateStatus(PODS, { ...pod, status: { phase: 'Succeeded' } });
    await turns(8);
    await memory.update(PODS, operand(false));
    await memory.updateStatus(PODS, operand(false));
    await turns(8);
    restarting.delete(nodeName);
    await memory.updateStatus(PODS, operand(true));
    busy--;
  };
  const kubelets: Promise<void>[] = [];
  const runs = parts.map(async part => {
    const { name, config } = part;
    const kube = intercepted(memory, async (verb, kind, _name, object) => {
      await turns(4);
      if (verb !== 'create' || kind !== PODS) return;
      beginning(name, (object as Pod).spec?.nodeName ?? '');
    });
    const cluster = new TestCluster({ kube });
    const operator = new StaticPodOperator({ kube, resource: config.operator, clock: cluster.clock });
    const reconcile = installerReconcile({ ...cluster.parts, config, operator });
    const seen = new Set<string>();
    for (let pass = 0; pass < 400; pass++) {
      await Promise.resolve(reconcile('key', cluster.context)).catch((error: unknown) => {
        if (!(error instanceof RetryRequest)) throw error;
      });
      const { items } = await memory.list(PODS, { namespace: config.operandNamespace });
      for (const pod of items.filter(({ metadata }) => metadata?.name?.startsWith('installer-'))) {
        const id = pod.metadata?.name ?? '';
        if (seen.has(id)) continue;
        seen.add(id);
        kubelets.push(kubelet(part, pod));
      }
      const { status } = await operator.readLive();
      if (status?.nodeStatuses?.every(({ currentRevision }) => currentRevision === WANTED)) return;
      await turns(4);
    }
    assert.fail(`seed ${seed}: ${name} was not done after 400 passes`);
  });
  await Promise.all(runs);
  await Promise.all(kubelets);
  assert.equal(busy, 0);
}

function operatorIn(
  name: string,
  operator: Resource<StaticPodOperatorResource>,
  neighbour: StaticPodOperatorConfig['neighbour'],
) {
  return { name, config: { ...SECOND, staticPodName: name, operandNamespace: `ns-${name}`, operator, neighbour } };
}

async function furnish(kube: MemoryKube, config: StaticPodOperatorConfig): Promise<void> {
  const { operandNamespace: namespace, staticPodName } = config;
  const there = <T extends { metadata?: object }>(object: T, name?: string): T => ({
    ...object,
    metadata: { ...object.metadata, namespace, ...(name === undefined ? {} : { name }) },
  });
  const status: StaticPodOperatorStatus = {
    latestAvailableRevision: WANTED,
    nodeStatuses: NODES.map(name => storedNode(name, { currentRevision: BEFORE })),
  };
  await kube.create(config.operator, { metadata: { name: 'cluster' }, spec: {}, status });
  const copies = new TestCluster({ kube });
  await copies.put(
    there(configMap('revision-status-4')),
    there(configMap('test-pod-4')),
    there(secret('test-secret-4')),
  );
  for (const node of NODES) await copies.put(there(operandPod(node, BEFORE, true), `${staticPodName}-${node}`));
}

/** Whole numbers below a bound, the same for the same seed. */
function randomFrom(seed: number): (bound: number) => number {
  let state = seed >>> 0;
  return bound => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
}
