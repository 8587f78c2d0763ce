import { CertificateWriter } from '../daemon/certificates/controller.ts';
import { RestartTurn } from '../daemon/certificates/restart-turn.ts';
import { NodeWriter } from '../daemon/node-writer.ts';
import { OPERATOR_LEASE as ETCD_LEASE } from '../etcd/names.ts';
import { profileLater } from '../etcd/profile.ts';
import type { HandOverMode } from '../hand-over/sync.ts';
import { observed } from '../host/memory.ts';
import { seconds } from '../kube/duration.ts';
import type { RecordedEvent } from '../kube/events.ts';
import { PODS } from '../kube/resource.ts';
import { OPERATOR_LEASE as KUBE_APISERVER_LEASE } from '../kube-apiserver/namespaces.ts';
import { runKubeApiserverOperator } from '../kube-apiserver/operator.ts';
import type { Keys } from '../pki/keys.ts';
import type { TrustGraph } from '../trust/graph.ts';
import { Api } from './api.ts';
import { Component, type ComponentWorld, type Tools, type Work } from './component.ts';
import { runControllerManager } from './controller-manager.ts';
import { Edges, type Look } from './edges.ts';
import { EtcdCluster, type EtcdOptions } from './etcd.ts';
import { etcdClients } from './etcd-client.ts';
import { runEtcdOperator } from './etcd-operator.ts';
import { twinTrust } from './graph.ts';
import { Handshakes } from './handshakes.ts';
import { type ApiNames, type Given, provideInputs, TWIN_NAMES } from './inputs.ts';
import { twinKeys } from './keys.ts';
import { kubeApiserverOn } from './kube-apiserver.ts';
import { Kubelet } from './kubelet.ts';
import { asLeader } from './leader.ts';
import { runCertificatePath } from './machine-config.ts';
import { machineConfigComponents, wholeAgentOf } from './machines.ts';
import { runManagersOperator } from './managers.ts';
import { Materials } from './material.ts';
import { Network } from './network.ts';
import { TwinNode } from './node.ts';
import { publishedIn } from './published.ts';
import { Time } from './time.ts';
import { Volumes } from './volumes.ts';

export interface ClusterOptions {
  readonly seed: string;
  readonly start?: Date | undefined;
  readonly controlPlane?: number | undefined;
  readonly workers?: number | undefined;
  /** In place of the numbers above. */
  readonly machines?: readonly Machine[] | undefined;
  readonly names?: ApiNames | undefined;
  readonly handOver?: HandOverMode | undefined;
  /** How long a day of etcd's certificates lasts, whose signers live five years of them; a day unless told otherwise. */
  readonly etcdDayMs?: number | undefined;
  /** How many processes of each operator there are; one unless told otherwise. */
  readonly operatorInstances?: number | undefined;
  /** Whether `cert-regeneration-controller` runs beside each kube-apiserver; true unless told otherwise. */
  readonly regenerates?: boolean | undefined;
  /**
   * Whether the real machine-config operator, controllers and agents configure the nodes, with drains and reboots; else only the
   * certificates come to them, which costs less.
   */
  readonly updatesNodes?: boolean | undefined;
  readonly leavesLullsOut?: boolean | undefined;
  /** What is put in the place of a real part, to see whether the twin would notice: only tests do that. */
  readonly broken?: Broken | undefined;
  /** Told of everything that happens, in order. */
  readonly tell?: ((atMs: number, what: string) => void) | undefined;
}

/** A machine that a cluster has from the beginning on. */
export interface Machine {
  readonly name: string;
  readonly address: string;
  readonly isControlPlane: boolean;
}

/** Ways to put a known gap back. */
export interface Broken {
  /** Between the operator and the API. */
  readonly operatorTools?: ((tools: Tools) => Tools) | undefined;
}

export const START: Date = new Date('2026-01-01T00:00:00Z');

/** What a machine needs to end, and to begin again. */
const SHUTDOWN_MS = seconds(2);
const BOOT_MS = seconds(90);

/** The component that rotates. */
export const OPERATOR = 'kube-apiserver-operator';
export const ETCD_OPERATOR = 'etcd-operator';
const PROGRAM = {
  flavor: 'openshift',
  image: 'operand:1',
  operatorImage: 'operator:1',
  operatorCommand: ['rotunda'],
  version: '1.0.0',
} as const;

/** A cluster in memory: its machines, everything that runs on them, and the time that they share. */
export class Cluster {
  readonly time: Time;
  readonly api: Api;
  readonly keys: Keys;
  readonly nodes: readonly TwinNode[];
  readonly kubelets: readonly Kubelet[];
  readonly #components: readonly Component[];
  readonly #materials = new Materials();
  readonly #edges: Edges;
  readonly #graph: TrustGraph;
  readonly etcd: EtcdCluster;
  readonly #options: ClusterOptions;
  readonly volumes: Volumes;
  /** Grows with everything that may change what somebody shows or checks with. */
  #version = 0;
  #lookedAt = -1;
  #look: Look = { refusals: [], checked: 0, untilMs: 0 };
  #diskVersions: number[] = [];

  constructor(options: ClusterOptions) {
    const { seed, start = START, names = TWIN_NAMES } = options;
    this.#options = options;
    this.time = new Time({ start, seed, leavesLullsOut: options.leavesLullsOut });
    this.keys = twinKeys(seed);
    this.api = new Api(this.time);
    this.nodes = (options.machines ?? machinesOf(options)).map(
      ({ name, address, isControlPlane }) =>
        new TwinNode(this.time, name, address, isControlPlane, () => this.changed()),
    );
    const world: ComponentWorld = {
      time: this.time,
      api: this.api,
      onEvent: (by, event) => this.#onEvent(by, event),
      tell: what => {
        this.changed();
        this.tell(what);
      },
    };
    this.volumes = new Volumes(this.time, this.api, this.nodes);
    const etcdProfile = profileLater(options.etcdDayMs);
    this.#graph = twinTrust(etcdProfile);
    const network = new Network({
      time: this.time,
      nodes: () => this.nodes,
      graph: () => this.#graph,
      materials: this.#materials,
      isLoadBalancer: host => host === names.internal || host === names.external,
    });
    this.#edges = new Edges({
      materials: this.#materials,
      handshakes: new Handshakes(),
      nodes: () => this.nodes,
      hostOf: place => (place.includes('external') ? names.external : names.internal),
      published: publishedIn(this.api),
    });
    const members: EtcdOptions = {
      world,
      nodes: () => this.nodes,
      whyNot: (edge, client, server) =>
        this.#edges.whyNot(this.#graph, { edge, client, server, nowMs: this.time.nowMs }),
    };
    this.etcd = new EtcdCluster(members);
    this.api.whyAway = () => (this.etcd.isLost ? 'etcdserver: no leader' : undefined);
    this.kubelets = this.nodes.map(one => {
      if (!one.isControlPlane) return new Kubelet({ world, node: one, operands: {}, companions: [] });
      const regeneration = options.regenerates === false ? undefined : { keys: this.keys };
      const { operand, programs } = kubeApiserverOn({ world, node: one, regeneration });
      const operands = { 'kube-apiserver': operand, etcd: this.etcd.memberOn(one) };
      return new Kubelet({ world, node: one, operands, companions: programs });
    });
    const { operatorTools = (tools: Tools) => tools } = options.broken ?? {};
    this.#components = [
      ...this.#operator(OPERATOR, KUBE_APISERVER_LEASE, world, (tools, signal) =>
        runKubeApiserverOperator(
          {
            ...operatorTools(tools),
            keys: this.keys,
            program: PROGRAM,
            keyAlgorithm: 'P-256',
            handOver: options.handOver,
            servers: network,
          },
          signal,
        ),
      ),
      ...this.#operator(ETCD_OPERATOR, ETCD_LEASE, world, (tools, signal) =>
        runEtcdOperator(
          tools,
          { keys: this.keys, profile: etcdProfile, connect: etcdClients(this.etcd, members) },
          signal,
        ),
      ),
      ...(options.updatesNodes === true
        ? machineConfigComponents(world, this.keys)
        : [new Component(world, 'machine-config-operator', runCertificatePath)]),
      new Component(world, 'kube-controller-manager', runControllerManager),
      new Component(world, 'operators of managers', (tools, signal) =>
        runManagersOperator(
          tools,
          () => this.nodes,
          () => this.changed(),
          signal,
        ),
      ),
      ...this.nodes.map(one =>
        options.updatesNodes === true
          ? wholeAgentOf(world, {
              node: one,
              network,
              apiServerUrl: `https://${names.internal}:6443`,
              reboot: why => this.#reboot(one, why),
            })
          : agentOf(world, one, network),
      ),
    ];
    for (const one of this.nodes) {
      this.#beginPod(one);
      this.#beginAdministrator(one);
    }
  }

  /** As many processes as there are to be, of which one works at a time. */
  #operator(name: string, lease: typeof KUBE_APISERVER_LEASE | typeof ETCD_LEASE, world: ComponentWorld, work: Work) {
    const { operatorInstances = 1 } = this.#options;
    return Array.from(
      { length: operatorInstances },
      (_, index) => new Component(world, instanceName(name, index), asLeader(this.time, lease, work)),
    );
  }

  get components(): readonly Component[] {
    return [...this.#components, ...this.kubelets.flatMap(({ components }) => components)];
  }

  component(name: string): Component {
    const found = this.components.find(component => component.name === name);
    if (found === undefined) throw new RangeError(`there is no component ${name}`);
    return found;
  }

  /** The kubelet of that name, such as `kubelet on master-0`. */
  kubeletOf(name: string): Kubelet | undefined {
    return this.kubelets[this.nodes.findIndex(node => name === `kubelet on ${node.name}`)];
  }

  /** Everything that has to be there before, as far as it is not there yet, and everybody starts. */
  async begin(given: Pick<Given, 'kubeletSigner'> = {}): Promise<void> {
    const kube = this.api.connect('installer');
    const { names } = this.#options;
    await provideInputs(kube, this.nodes, this.keys, new Date(this.time.nowMs), {
      ...given,
      names,
      hasConfigs: this.#options.updatesNodes !== true,
    });
    for (const { name } of this.nodes) await kube.create(PODS, podWithRootCa(name));
    for (const kubelet of this.kubelets) kubelet.start();
    for (const component of this.#components) component.start();
  }

  /** A machine loses power; its agent with it. */
  powerOff(node: TwinNode): void {
    node.isOn = false;
    this.kubelets[this.nodes.indexOf(node)]?.powerOff();
    this.component(`agent on ${node.name}`).stop();
    for (const held of node.others.values()) held.isOver = true;
    node.others.clear();
    this.changed();
  }

  /** It comes back as it was: its disk has waited. */
  powerOn(node: TwinNode): void {
    node.isOn = true;
    this.#beginAdministrator(node);
    void this.volumes.mount(node).then(() => this.#beginPod(node));
    this.kubelets[this.nodes.indexOf(node)]?.powerOn();
    this.component(`agent on ${node.name}`).start();
    this.changed();
  }

  /** A machine goes down in good order, and is back after a while. */
  #reboot(node: TwinNode, why: string): void {
    this.tell(`${node.name} reboots: ${why}`);
    void this.time.after(SHUTDOWN_MS).then(async () => {
      if (!node.isOn) return;
      this.powerOff(node);
      await this.time.after(BOOT_MS);
      this.powerOn(node);
    });
  }

  #beginPod(node: TwinNode): void {
    if (!node.isOn || node.others.has('pod')) return;
    node.others.set('pod', node.begin());
    this.changed();
  }

  #beginAdministrator(node: TwinNode): void {
    if (node.isControlPlane) node.others.set('node administrator', node.begin());
  }

  end(): void {
    for (const kubelet of this.kubelets) kubelet.powerOff();
    for (const component of this.#components) component.stop();
  }

  /** Lets time go on; `onLook` is called whenever something has changed, with who refuses whom. */
  async goOn(target: Date, onLook: (look: Look) => void = () => {}): Promise<void> {
    while (this.time.nowMs < target.getTime()) {
      // A certificate that ends is a change nobody makes.
      const next = Math.min(target.getTime(), Math.max(this.#look.untilMs, this.time.nowMs + 1));
      await this.time.goOn(new Date(next), () => this.#lookAround(onLook));
    }
  }

  changed(): void {
    this.#version++;
  }

  get look(): Look {
    return this.#look;
  }

  tell(what: string): void {
    this.#options.tell?.(this.time.nowMs, what);
  }

  #lookAround(onLook: (look: Look) => void): void {
    this.volumes.look();
    for (const [index, node] of this.nodes.entries()) {
      if (this.#diskVersions[index] === node.disk.version) continue;
      this.#diskVersions[index] = node.disk.version;
      node.look();
      this.#version++;
    }
    if (this.#lookedAt === this.#version && this.time.nowMs < this.#look.untilMs) return;
    this.#lookedAt = this.#version;
    this.etcd.look();
    this.#look = this.#edges.look(this.#graph, this.time.nowMs);
    onLook(this.#look);
  }

  #onEvent(by: string, { reason, message }: RecordedEvent): void {
    this.tell(`${by}: ${reason}: ${message.split('\n')[0]}`);
  }
}

/** The first of several processes has the name of the operator, the others a number behind. */
export function instanceName(operator: string, index: number): string {
  return index === 0 ? operator : `${operator} (${index + 1})`;
}

function machinesOf({ controlPlane = 3, workers = 2 }: ClusterOptions): Machine[] {
  const machine = (name: string, index: number, isControlPlane: boolean) => ({
    name: `${name}-${index}`,
    address: `10.0.${isControlPlane ? 0 : 1}.${index + 1}`,
    isControlPlane,
  });
  return [
    ...Array.from({ length: controlPlane }, (_, index) => machine('master', index, true)),
    ...Array.from({ length: workers }, (_, index) => machine('worker', index, false)),
  ];
}

/** The real certificate writer of a node, on a disk in memory. */
function agentOf(world: ComponentWorld, node: TwinNode, network: Network): Component {
  return new Component(world, `agent on ${node.name}`, ({ kube, clock, events, log }, signal) => {
    const host = observed(node.host, () => signal.throwIfAborted());
    const nodeName = node.name;
    const writer = new CertificateWriter({
      kube,
      host,
      nodeName,
      nodeWriter: new NodeWriter({ kube, nodeName, clock }),
      clock,
      log,
      events,
      shakeHands: network.shakeHands,
      restartTurn: new RestartTurn({ kube, files: host.files, nodeName, clock, log }),
    });
    return writer.run(signal);
  });
}

/** Every node runs a pod that verifies the API server with what its namespace has. */
function podWithRootCa(nodeName: string) {
  return {
    metadata: { namespace: 'default', name: `app-${nodeName}` },
    spec: {
      nodeName,
      containers: [{ name: 'app' }],
      volumes: [{ name: 'token', projected: { sources: [{ configMap: { name: 'kube-root-ca.crt' } }] } }],
    },
  };
}
