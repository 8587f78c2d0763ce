import { randomInt } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Pod } from 'kubernetes-types/core/v1.d.ts';
import { type Engine, startEngine } from '../../src/api/api.ts';
import { createLog, type Log } from '../../src/controller/log.ts';
import { isSameData } from '../../src/etcd/aggregate.ts';
import { GatewayClient } from '../../src/etcd/client/gateway.ts';
import { materialFromCluster } from '../../src/etcd/client/material.ts';
import type { EtcdGateway } from '../../src/etcd/client/members.ts';
import { foundingPlan } from '../../src/etcd/founding.ts';
import { CONFIG_NAMESPACE, ETCD_NAMESPACE } from '../../src/etcd/names.ts';
import type { EtcdOperator } from '../../src/etcd/operator.ts';
import { type EtcdProgram, etcdProgram } from '../../src/etcd/program.ts';
import { CLUSTER, ETCDS } from '../../src/etcd/resources.ts';
import { defineResources, OPERATOR_NAMESPACES } from '../../src/etcd/testing.ts';
import { seconds } from '../../src/kube/duration.ts';
import { eventsTo, type RecordedEvent } from '../../src/kube/events.ts';
import { getIfPresent } from '../../src/kube/get.ts';
import { Informer } from '../../src/kube/informer.ts';
import type { Kube } from '../../src/kube/port.ts';
import { CONFIG_MAPS, NAMESPACES, NODES, PODS, SECRETS } from '../../src/kube/resource.ts';
import { formatRfc3339 } from '../../src/kube/time.ts';
import { eventuallyDespiteErrors } from '../tools/eventually.ts';
import { LocalNode } from './node.ts';

const LIMITS = { dialMs: seconds(2), requestMs: seconds(4) };

/** A cluster with a real etcd: the API in process, the operator's own controllers, and nodes that run what the manifests say. */
export class RealCluster {
  readonly engine: Engine;
  readonly kube: Kube;
  readonly nodes: LocalNode[];
  readonly operator: EtcdOperator;
  readonly gateway: EtcdGateway;
  readonly events: RecordedEvent[] = [];
  readonly lines: string[] = [];
  readonly #stop = new AbortController();
  readonly #directory: string;
  readonly #running: Promise<unknown>[] = [];
  /** What installers do on the nodes. */
  readonly #installing: Promise<void>[] = [];
  readonly #installed = new Set<string>();
  readonly #binary: string;
  readonly #network: string;
  /** Called when a member has been brought to a revision and serves, before anybody is told. */
  onServing: (node: LocalNode) => Promise<void> = async () => {};
  readonly #log: Log;
  readonly #program: EtcdProgram;

  private constructor(engine: Engine, binary: string) {
    this.engine = engine;
    this.kube = engine.kube;
    this.#directory = mkdtempSync(join(tmpdir(), 'rotunda-etcd-'));
    // Addresses of its own for every cluster, so that ports need not be looked for.
    this.#network = `127.${randomInt(10, 250)}.${randomInt(1, 250)}`;
    this.#binary = binary;
    this.nodes = [0, 1, 2].map(index => this.#newNode(index));
    this.#log = createLog({ name: 'etcd-operator', destination: { write: line => void this.lines.push(line) } });
    const events = eventsTo('etcd-operator', event => void this.events.push(event));
    const operand = {
      image: 'etcd:test',
      operatorImage: 'rotunda:test',
      command: ['rotunda'],
      listenOn: 'node',
      withMetricsProxy: true,
      version: '1',
    } as const;
    this.#program = etcdProgram({
      kube: this.kube,
      events,
      log: this.#log,
      operand,
      keyAlgorithm: 'P-256',
      limits: LIMITS,
      memberCacheMs: seconds(2),
    });
    this.operator = this.#program.operator;
    this.gateway = this.#program.gateway;
  }

  static async start(binary: string): Promise<RealCluster> {
    const engine = await startEngine();
    const { kube } = engine;
    for (const name of OPERATOR_NAMESPACES) {
      if ((await getIfPresent(kube, NAMESPACES, { name })) === undefined)
        await kube.create(NAMESPACES, { metadata: { name } });
    }
    await defineResources(kube);
    await kube.create(ETCDS, { metadata: CLUSTER, spec: { managementState: 'Managed' } });
    const cluster = new RealCluster(engine, binary);
    for (const node of cluster.nodes) await cluster.#register(node);
    cluster.#running.push(cluster.#program.run(cluster.#stop.signal), cluster.#kubelets());
    return cluster;
  }

  /** A further control-plane node comes. */
  async addNode(index: number): Promise<LocalNode> {
    const node = this.#newNode(index);
    this.nodes.push(node);
    await this.#register(node);
    return node;
  }

  /** A node goes for good, with everything on it. */
  async removeNode(name: string): Promise<void> {
    const index = this.nodes.findIndex(node => node.name === name);
    const [node] = this.nodes.splice(index, 1);
    await this.kube.delete(NODES, { name });
    await node?.stop('SIGKILL');
    await this.kube.delete(PODS, { namespace: ETCD_NAMESPACE, name: `etcd-${name}` });
  }

  /** Starts a member that was stopped, and tells when it serves, as its kubelet does. */
  async revive(node: LocalNode): Promise<void> {
    node.start();
    await this.until(`the member on ${node.name}`, () => this.#isServing(node));
    await this.#mirror(node, true);
  }

  /** A member loses everything on its disk; its kubelet starts it again and again. */
  async loseDisk(node: LocalNode): Promise<void> {
    await node.loseData();
    await this.#mirror(node, false);
  }

  async close(): Promise<void> {
    this.#stop.abort(new Error('the test is over'));
    await Promise.allSettled(this.#running);
    // An installer that is at work would start a member that nobody ends.
    await Promise.all(this.#installing);
    await Promise.all(this.nodes.map(node => node.stop('SIGKILL')));
    await this.engine.close();
    rmSync(this.#directory, { recursive: true, force: true });
  }

  /** Waits for something to become true. */
  async until<T>(what: string, look: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
    return eventuallyDespiteErrors(what, look, () => this.#report());
  }

  /** The members are known to all, every node runs the latest revision, and it is this one or a later one. */
  async settled(atLeast = 1): Promise<number | undefined> {
    const { status = {} } = await this.kube.get(ETCDS, CLUSTER);
    const { latestAvailableRevision: latest = 0, nodeStatuses = [] } = status;
    const read = (name: string) => this.kube.get(CONFIG_MAPS, { namespace: ETCD_NAMESPACE, name });
    const endpoints = await read('etcd-endpoints');
    const published = await read(`etcd-endpoints-${latest}`);
    const isDone =
      foundingPlan(endpoints) === undefined &&
      isSameData(endpoints.data, published.data) &&
      nodeStatuses.length === this.nodes.length &&
      nodeStatuses.every(node => node.currentRevision === latest && !node.targetRevision);
    return isDone && latest >= atLeast ? latest : undefined;
  }

  /** The cluster has been founded: as many voters as nodes, all of them healthy, and nothing is under way. */
  async founded(): Promise<number> {
    return this.until('a vote for every node and a settled rollout', async () => {
      const revision = await this.settled();
      if (revision === undefined) return undefined;
      const health = await this.gateway.health();
      const areAllVoters = health.every(({ healthy, member }) => healthy && !member.isLearner);
      return health.length === this.nodes.length && areAllVoters ? revision : undefined;
    });
  }

  /** Takes the annotations of a Secret away that say how long it lives: the way to force a rotation. */
  async force(name: string): Promise<void> {
    const annotations = {
      'auth.openshift.io/certificate-not-after': null,
      'auth.openshift.io/certificate-not-before': null,
    };
    const change = { type: 'merge', body: { metadata: { annotations } } } as const;
    await this.kube.patch(SECRETS, { namespace: ETCD_NAMESPACE, name }, change);
  }

  /** Whether the wanted signer is the one in use. */
  async follows(name: string): Promise<boolean> {
    const [wanted, inUse] = await Promise.all(
      [ETCD_NAMESPACE, CONFIG_NAMESPACE].map(namespace => this.kube.get(SECRETS, { namespace, name })),
    );
    const isNew = wanted?.metadata?.annotations?.['auth.openshift.io/certificate-not-after'] !== undefined;
    return isNew && wanted?.data?.['tls.crt'] === inUse?.data?.['tls.crt'];
  }

  /** What the operator has said, from one line on. */
  said(from = 0): string[] {
    return this.lines.slice(from).map(line => (JSON.parse(line) as { msg: string }).msg);
  }

  #newNode(index: number): LocalNode {
    return new LocalNode(`master-${index}`, `${this.#network}.${index + 1}`, this.#directory, this.#binary);
  }

  async #register({ name, address }: LocalNode): Promise<void> {
    const labels = { 'node-role.kubernetes.io/master': '' };
    const node = await this.kube.create(NODES, { metadata: { name, labels } });
    const conditions = [{ type: 'Ready', status: 'True' }];
    await this.kube.updateStatus(NODES, {
      ...node,
      status: { addresses: [{ type: 'InternalIP', address }], conditions },
    });
  }

  async #report(): Promise<string> {
    const { status = {} } = await this.kube.get(ETCDS, CLUSTER);
    const bad = (status.conditions ?? []).filter(
      ({ type, status: value }) => type.endsWith('Degraded') && value === 'True',
    );
    return [
      JSON.stringify(status.nodeStatuses),
      ...bad.map(({ type, message }) => `${type}: ${message}`),
      ...this.events.slice(-10).map(({ reason, message }) => `${reason}: ${message}`),
      ...this.lines.slice(-5).map(line => line.slice(0, 300)),
      ...this.nodes.flatMap(node => node.log.slice(-6)),
    ].join('\n');
  }

  /** Does for each node what its kubelet and the installer pod do. */
  async #kubelets(): Promise<void> {
    const pods = new Informer(this.kube, PODS, { selection: { namespace: ETCD_NAMESPACE } }).start();
    const consider = (pod: Pod) => void this.#installing.push(this.#consider(pod));
    pods.subscribe({ add: consider, update: (_, pod) => consider(pod) });
    await untilAborted(this.#stop.signal);
    await pods.stop();
  }

  async #consider(pod: Pod): Promise<void> {
    const name = pod.metadata?.name ?? '';
    const node = this.nodes.find(({ name: nodeName }) => nodeName === pod.spec?.nodeName);
    const isInstaller = pod.metadata?.labels?.app === 'installer' && pod.status?.phase !== 'Succeeded';
    if (node === undefined || !isInstaller || this.#installed.has(name)) return;
    this.#installed.add(name);
    try {
      await this.#install(pod, node);
    } catch (error) {
      if (!this.#stop.signal.aborted) this.lines.push(`installer on ${node.name}: ${String(error)}`);
    }
  }

  async #install(pod: Pod, node: LocalNode): Promise<void> {
    const args = pod.spec?.containers[0]?.args ?? [];
    const values = (flag: string) =>
      args.filter(arg => arg.startsWith(`--${flag}=`)).map(arg => arg.slice(flag.length + 3));
    const revision = Number(values('revision')[0]);
    const manifest = await this.kube.get(CONFIG_MAPS, { namespace: ETCD_NAMESPACE, name: `etcd-pod-${revision}` });
    const inEtcd = (name: string) => ({ namespace: ETCD_NAMESPACE, name });
    const secrets = await Promise.all(values('cert-secrets').map(name => this.kube.get(SECRETS, inEtcd(name))));
    const configMaps = await Promise.all(
      values('cert-configmaps').map(name => this.kube.get(CONFIG_MAPS, inEtcd(name))),
    );
    node.install(manifest.data?.['pod.yaml'] ?? '', revision, { secrets, configMaps });
    await this.#setInstaller(pod, 'Succeeded');
    await node.stop();
    await this.#mirror(node, false);
    if (this.#stop.signal.aborted) return;
    node.start();
    for (let isReady = false; !isReady && !this.#stop.signal.aborted; ) {
      isReady = await this.#isServing(node);
      if (isReady) await this.onServing(node);
      await this.#mirror(node, isReady);
      if (!isReady) await new Promise(resolve => setTimeout(resolve, 200));
    }
  }

  async #setInstaller(pod: Pod, phase: string): Promise<void> {
    const current = await this.kube.get(PODS, { namespace: ETCD_NAMESPACE, name: pod.metadata?.name ?? '' });
    await this.kube.updateStatus(PODS, { ...current, status: { phase } });
  }

  async #isServing(node: LocalNode): Promise<boolean> {
    if (!node.isRunning) return false;
    const client = new GatewayClient([`https://${node.address}:2379`], await materialFromCluster(this.kube)(), LIMITS);
    try {
      await client.readHealthKey({ isLearner: false });
      return true;
    } catch {
      return false;
    } finally {
      client.close().catch(() => {});
    }
  }

  async #mirror(node: LocalNode, ready: boolean): Promise<void> {
    const key = { namespace: ETCD_NAMESPACE, name: `etcd-${node.name}` };
    const labels = { app: 'etcd', 'k8s-app': 'etcd', etcd: 'true', revision: String(node.revision) };
    const existing = await getIfPresent(this.kube, PODS, key);
    const pod =
      existing === undefined
        ? await this.kube.create(PODS, {
            metadata: { ...key, labels },
            spec: { nodeName: node.name, containers: [{ name: 'etcd', image: 'etcd:test' }] },
          })
        : await this.kube.update(PODS, { ...existing, metadata: { ...existing.metadata, labels } });
    const now = formatRfc3339(new Date());
    const before = pod.status?.conditions?.find(({ type }) => type === 'Ready');
    const status = ready ? 'True' : 'False';
    const lastTransitionTime = before?.status === status ? (before.lastTransitionTime ?? now) : now;
    const state = node.isRunning ? { running: { startedAt: now } } : { waiting: { reason: 'CrashLoopBackOff' } };
    await this.kube.updateStatus(PODS, {
      ...pod,
      status: {
        phase: 'Running',
        conditions: [{ type: 'Ready', status, lastTransitionTime }],
        containerStatuses: [{ name: 'etcd', image: 'etcd:test', imageID: '', ready, restartCount: node.starts, state }],
      },
    });
  }
}

function untilAborted(signal: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
