import type { CustomResourceDefinition } from 'kubernetes-types/apiextensions/v1.d.ts';
import { runAll } from '../controller/controller.ts';
import { silentLog } from '../controller/log.ts';
import { VirtualClock } from '../kube/clock.ts';
import { minutes, seconds } from '../kube/duration.ts';
import { ConnectionError } from '../kube/error.ts';
import { recordingEvents } from '../kube/events.ts';
import type { Kube } from '../kube/port.ts';
import { CONFIG_MAPS, CUSTOM_RESOURCE_DEFINITIONS, NAMESPACES, NODES, PODS, SECRETS } from '../kube/resource.ts';
import { formatRfc3339 } from '../kube/time.ts';
import { informersOf, staticPodCaches } from './caches.ts';
import type { StaticPodOperatorConfig } from './config.ts';
import { staticPodControllers } from './controllers.ts';
import { readNodeStatus } from './node-status.ts';
import type { StaticPodOperatorStatus } from './operator.ts';
import { SimulatedKubelets } from './simulated-kubelets.ts';
import { CONFIG, configMap, intercepted, NAMESPACE, NOW, OPERATORS, secret } from './testing.ts';

/** An API in process. */
export interface SimulatedApi {
  readonly kube: Kube;
  /** Resolves when the API itself has nothing to do any more: garbage is collected, definitions are served. */
  idle(): Promise<void>;
  close(): Promise<void>;
}

const NODE_NAMES = ['m0', 'm1', 'm2'];
/** A test that is not done by then never will be. */
const LONGEST_MS = minutes(240);

/**
 * A three-node control plane in virtual time: an API, all controllers of an operator, and in place of the kubelets something
 * that does to pods what they would do.
 */
export class Simulation {
  readonly api: SimulatedApi;
  readonly clock: VirtualClock;
  readonly kube: Kube;
  readonly config: StaticPodOperatorConfig;
  readonly kubelets: SimulatedKubelets;
  readonly #recorder = recordingEvents();
  writes = 0;
  /** What happens at the write of that number; undefined once it has happened. */
  trouble: { readonly at: number; readonly kind: 'death' | 'lost answer' } | undefined;
  #stopOperator: () => Promise<void> = async () => {};
  #calls = 0;
  #inFlight = 0;

  private constructor(api: SimulatedApi, clock: VirtualClock, config: Partial<StaticPodOperatorConfig>) {
    this.api = api;
    this.clock = clock;
    this.kube = api.kube;
    this.config = { ...CONFIG, ...config };
    this.kubelets = new SimulatedKubelets(api.kube, clock, NODE_NAMES.length);
  }

  static async start(
    startApi: (clock: VirtualClock) => Promise<SimulatedApi>,
    config: Partial<StaticPodOperatorConfig> = {},
    spec: object = {},
  ): Promise<Simulation> {
    const clock = new VirtualClock(NOW);
    const api = await startApi(clock);
    const world = new Simulation(api, clock, config);
    const { kube } = api;
    await kube.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION);
    await api.idle();
    await kube.create(NAMESPACES, { metadata: { name: NAMESPACE } });
    await kube.create(OPERATORS, { metadata: { name: 'cluster' }, spec: { managementState: 'Managed', ...spec } });
    await kube.create(CONFIG_MAPS, configMap('test-pod', { 'pod.yaml': '{}' }));
    await kube.create(SECRETS, secret('test-secret', { key: 'initial' }));
    for (const name of NODE_NAMES) await world.addNode(name);
    world.kubelets.start();
    world.#startOperator();
    return world;
  }

  async stop(): Promise<void> {
    this.kubelets.stop();
    await this.#stopOperator();
    await this.api.close();
  }

  get events() {
    return this.#recorder.events;
  }

  #startOperator(): void {
    const process = new AbortController();
    const dead = () => new ConnectionError('CLOSED', 'this process is dead');
    const hooked = intercepted(this.kube, verb => {
      if (process.signal.aborted) throw dead();
      this.#calls++;
      if (verb === 'get' || verb === 'list') return;
      if (++this.writes === this.trouble?.at && this.trouble.kind === 'death') this.#die(process);
      if (process.signal.aborted) throw dead();
    });
    const kube = new Proxy(hooked, {
      get: (target, name: keyof Kube) => {
        if (name === 'watch') return target.watch;
        return async (...args: never[]) => {
          this.#inFlight++;
          try {
            const answer = await (target[name] as (...args: never[]) => Promise<unknown>)(...args);
            if (process.signal.aborted) throw dead();
            if (
              name !== 'get' &&
              name !== 'list' &&
              this.trouble?.kind === 'lost answer' &&
              this.writes >= this.trouble.at
            ) {
              this.trouble = undefined;
              throw new ConnectionError('ECONNRESET', 'the connection broke');
            }
            return answer;
          } finally {
            this.#inFlight--;
          }
        };
      },
    });
    const { clock, config } = this;
    const caches = staticPodCaches(config, kube, { clock });
    const controllers = staticPodControllers(config, { kube, caches, clock, events: this.#recorder, log: silentLog });
    for (const informer of informersOf(caches)) informer.start();
    const running = runAll(controllers, process.signal);
    this.#stopOperator = async () => {
      process.abort();
      await Promise.all([running, ...informersOf(caches).map(informer => informer.stop())]);
    };
  }

  #die(process: AbortController): void {
    this.trouble = undefined;
    process.abort();
    // Somebody starts it again a little later.
    void this.clock.until(new Date(this.clock.now().getTime() + seconds(2))).then(async () => {
      await this.#stopOperator();
      this.#startOperator();
    });
  }

  async addNode(name: string): Promise<void> {
    const metadata = { name, labels: { 'node-role.kubernetes.io/master': '' } };
    const node = await this.kube.create(NODES, { metadata });
    const condition = { type: 'Ready', status: 'True', lastTransitionTime: formatRfc3339(this.clock.now()) };
    await this.kube.updateStatus(NODES, { ...node, status: { conditions: [condition] } });
  }

  /** Changes a revisioned Secret; the word decides what becomes of operands that run with it. */
  async change(word: string): Promise<void> {
    const stored = await this.kube.get(SECRETS, { namespace: NAMESPACE, name: 'test-secret' });
    await this.kube.update(SECRETS, { ...stored, data: secret('', { key: word }).data as Record<string, string> });
  }

  async status(): Promise<StaticPodOperatorStatus> {
    return (await this.kube.get(OPERATORS, { name: 'cluster' })).status ?? {};
  }

  async nodes() {
    return ((await this.status()).nodeStatuses ?? []).map(readNodeStatus);
  }

  async condition(type: string) {
    return (await this.status()).conditions?.find(condition => condition.type === type);
  }

  async running(): Promise<Record<string, string | undefined>> {
    const { items } = await this.kube.list(PODS, { namespace: NAMESPACE, labelSelector: 'app=test-operand' });
    return Object.fromEntries(items.map(({ spec, metadata }) => [spec?.nodeName, metadata?.labels?.revision]));
  }

  async revisions(): Promise<number[]> {
    const { items } = await this.kube.list(CONFIG_MAPS, { namespace: NAMESPACE });
    const names = items.map(({ metadata }) => /^revision-status-(\d+)$/.exec(metadata?.name ?? '')?.[1]);
    return names
      .filter(name => name !== undefined)
      .map(Number)
      .sort((a, b) => a - b);
  }

  /** Until all nodes run a revision and the operator has said so. */
  async settled(revision: number): Promise<void> {
    await this.until(async () => {
      const { latestAvailableRevision, nodeStatuses = [] } = await this.status();
      return (
        latestAvailableRevision === revision &&
        nodeStatuses.length > 0 &&
        nodeStatuses.map(readNodeStatus).every(node => node.currentRevision === revision && node.targetRevision === 0)
      );
    }, `all nodes run revision ${revision}`);
  }

  async until(condition: () => Promise<boolean>, what: string): Promise<void> {
    const deadline = this.clock.now().getTime() + LONGEST_MS;
    for (;;) {
      await this.#quiet();
      if (await condition()) return;
      const next = this.clock.nextWait();
      if (next === undefined || next.getTime() > deadline) {
        throw new Error(`waited in vain until ${what}: ${JSON.stringify(await this.status(), undefined, 1)}`);
      }
      await this.clock.advanceTo(next);
    }
  }

  /** Lets everybody finish what can be done without the clock moving. */
  async #quiet(): Promise<void> {
    for (let calls = -1; calls !== this.#calls || this.#inFlight > 0; ) {
      calls = this.#calls;
      for (let tick = 0; tick < 4; tick++) await new Promise(resolve => setImmediate(resolve));
    }
  }

  /** What is left of the rollout when all is done. Times and names of attempts may differ from run to run. */
  async finalState(): Promise<object> {
    await this.api.idle();
    const { latestAvailableRevision } = await this.status();
    const { items } = await this.kube.list(SECRETS, { namespace: NAMESPACE });
    return {
      latestAvailableRevision,
      nodes: (await this.nodes()).map(({ nodeName, currentRevision, targetRevision }) => [
        nodeName,
        currentRevision,
        targetRevision,
      ]),
      running: await this.running(),
      revisions: await this.revisions(),
      secrets: items
        .filter(({ metadata }) => metadata?.name?.startsWith('test-secret'))
        .map(({ metadata, data }) => [metadata?.name, data]),
    };
  }
}

const ANYTHING = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const;
const DEFINITION = {
  metadata: { name: 'kubeapiservers.operator.openshift.io' },
  spec: {
    group: 'operator.openshift.io',
    scope: 'Cluster',
    names: {
      kind: 'KubeAPIServer',
      listKind: 'KubeAPIServerList',
      plural: 'kubeapiservers',
      singular: 'kubeapiserver',
    },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: { openAPIV3Schema: { type: 'object', properties: { spec: ANYTHING, status: ANYTHING } } },
      },
    ],
  },
} as unknown as CustomResourceDefinition;
