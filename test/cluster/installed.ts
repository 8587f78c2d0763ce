import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { silentLog } from '../../src/controller/log.ts';
import { systemClock } from '../../src/kube/clock.ts';
import { listAll } from '../../src/kube/list.ts';
import { PODS } from '../../src/kube/resource.ts';
import { Heartbeat } from '../../src/local/heartbeat.ts';
import { eventuallyDespiteErrors as eventually, PATIENCE_MS } from '../tools/eventually.ts';
import { findKubectl } from '../tools/kubectl.ts';
import { type Binaries, findBinaries } from './binaries.ts';
import { type ControlPlane, startControlPlane } from './control-plane.ts';

const run = promisify(execFile);
export const MANIFESTS: string = join(import.meta.dirname, '..', '..', 'manifests');
const MAIN = join(import.meta.dirname, '..', '..', 'src', 'cli', 'main.ts');
const KUBECTL_LIMIT_MS = PATIENCE_MS;
const MOST_OUTPUT_BYTES = 1 << 26;
const NODE_ADDRESS = '127.9.9.10';
const LAST_LOG_BYTES = 4_000;

export type Kubectl = (args: readonly string[], input?: string) => Promise<string>;

export interface Needs {
  readonly binaries: Binaries;
  readonly kubectl: string;
}

/** What the suites need of this machine, or why they cannot be run here. */
export async function findNeeds(): Promise<Needs | { readonly missing: string }> {
  const binaries = findBinaries(['etcd', 'kube-apiserver', 'kube-controller-manager']);
  if ('missing' in binaries) return binaries;
  const kubectl = await findKubectl();
  if ('missing' in kubectl) return kubectl;
  return { binaries, kubectl: kubectl.program };
}

/** Whom a component is to the API, and which command it runs. */
export interface Component {
  readonly command: string;
  readonly namespace: string;
  /** Label of the pods of its Deployment, where it has one. */
  readonly podLabel?: string | undefined;
}

const ROLE_LABELS = {
  master: { 'node-role.kubernetes.io/master': '', 'node-role.kubernetes.io/control-plane': '' },
  worker: { 'node-role.kubernetes.io/worker': '' },
} as const;
const MCO = 'openshift-machine-config-operator';

/** The components that lead, in the order of their folders. */
export const LEADING: readonly Component[] = [
  {
    command: 'kube-apiserver-operator',
    namespace: 'openshift-kube-apiserver-operator',
    podLabel: 'app=kube-apiserver-operator',
  },
  { command: 'etcd-operator', namespace: 'openshift-etcd-operator', podLabel: 'app=etcd-operator' },
  { command: 'machine-config-operator', namespace: MCO, podLabel: 'k8s-app=machine-config-operator' },
  { command: 'machine-config-controller', namespace: MCO, podLabel: 'k8s-app=machine-config-controller' },
];

export interface InstalledOptions {
  /** The program that is run as a component; the sources when absent. */
  readonly program?: string | undefined;
}

/** Everything of `manifests/` on a real control plane without kubelets; processes of this machine are the pods. */
export class Installed {
  readonly cluster: ControlPlane;
  readonly kubectl: Kubectl;
  readonly #program: string;
  readonly #processes: ComponentProcess[] = [];
  readonly #heartbeats: Heartbeat[] = [];

  private constructor(cluster: ControlPlane, kubectl: Kubectl, program: string) {
    this.cluster = cluster;
    this.kubectl = kubectl;
    this.#program = program;
  }

  /** Starts a control plane and applies the manifests to it, as a user would. */
  static async start(
    { binaries, kubectl: tool }: Needs,
    { program = MAIN }: InstalledOptions = {},
  ): Promise<Installed> {
    const cluster = await startControlPlane(binaries, { audit: true });
    const kubectl: Kubectl = async (args, input) => {
      const child = run(tool, ['--kubeconfig', cluster.kubeconfig, ...args], {
        timeout: KUBECTL_LIMIT_MS,
        maxBuffer: MOST_OUTPUT_BYTES,
      });
      child.child.stdin?.end(input);
      return (await child).stdout;
    };
    const installed = new Installed(cluster, kubectl, program);
    try {
      await kubectl(['apply', '-f', '-'], MONITORING_DEFINITIONS);
      await kubectl(['wait', '--for=condition=Established', '--timeout=10m', 'crd', '--all']);
      await kubectl(['apply', '-k', MANIFESTS]);
      return installed;
    } catch (error) {
      await installed.stop();
      throw error;
    }
  }

  get auditLog(): string {
    const { auditLog } = this.cluster;
    if (auditLog === undefined) throw new Error('this control plane keeps no audit log');
    return auditLog;
  }

  /** Keeps a Node alive, as its kubelet would. */
  async node(name: string, role: 'master' | 'worker'): Promise<void> {
    const heartbeat = new Heartbeat({
      name,
      // Nobody listens there. Not 127.0.0.1, which operators take for the node they look from.
      address: NODE_ADDRESS,
      labels: { ...ROLE_LABELS[role], 'kubernetes.io/os': 'linux', 'kubernetes.io/hostname': name },
      annotations: {},
      kube: this.cluster.kube,
      clock: systemClock,
      log: silentLog,
    });
    this.#heartbeats.push(heartbeat);
    heartbeat.start();
    await heartbeat.registered;
  }

  /** A kubeconfig with a token of a ServiceAccount. */
  async accountKubeconfig(namespace: string, name: string): Promise<string> {
    const token = await this.kubectl(['create', 'token', name, '-n', namespace, '--duration=1h']);
    return this.cluster.kubeconfigWithToken(`${namespace}-${name}`, token.trim());
  }

  /** Starts a component as its own ServiceAccount; as one of its pods, where it has any. */
  async startComponent(component: Component, args: readonly string[] = [], replica = 0): Promise<ComponentProcess> {
    const { command, namespace, podLabel } = component;
    const kubeconfig = await this.accountKubeconfig(namespace, command);
    const podName = podLabel === undefined ? undefined : await this.#podOf(namespace, podLabel, replica);
    return this.startProcess(
      `${command}-${replica}`,
      [command, '--kubeconfig', kubeconfig, ...args],
      podName === undefined ? {} : { POD_NAME: podName },
    );
  }

  startProcess(name: string, args: readonly string[], env: Readonly<Record<string, string>> = {}): ComponentProcess {
    const log = `${name}-${this.#processes.length}.log`;
    const started = new ComponentProcess(join(this.cluster.dir, log), [this.#program, ...args], env);
    this.#processes.push(started);
    return started;
  }

  /** A directory of its own, gone with the control plane. */
  directory(name: string): string {
    const path = join(this.cluster.dir, name);
    mkdirSync(path, { recursive: true });
    return path;
  }

  file(name: string, content: string): string {
    const path = join(this.cluster.dir, name);
    writeFileSync(path, content, { mode: 0o600 });
    return path;
  }

  async stop(): Promise<void> {
    await Promise.all(this.#processes.map(started => started.kill('SIGKILL')));
    await Promise.all(this.#heartbeats.map(heartbeat => heartbeat.stop()));
    await this.cluster.stop();
  }

  async #podOf(namespace: string, labelSelector: string, index: number): Promise<string> {
    const pods = await eventually(`pods ${labelSelector}`, async () => {
      const { items } = await listAll(this.cluster.kube, PODS, { namespace, labelSelector });
      return items.length > index ? items : undefined;
    });
    return pods.map(({ metadata }) => metadata?.name ?? '').sort()[index] ?? '';
  }
}

/** A process of ours with its log. */
export class ComponentProcess {
  readonly #log: string;
  readonly #child: ChildProcess;
  readonly exited: Promise<number | null>;

  constructor(log: string, args: readonly string[], env: Readonly<Record<string, string>>) {
    this.#log = log;
    const file = openSync(log, 'a', 0o600);
    this.#child = spawn(process.execPath, args, {
      stdio: ['ignore', file, file],
      env: { ...process.env, NODE_TEST_CONTEXT: undefined, POD_NAME: undefined, ...env },
    });
    closeSync(file);
    this.exited = new Promise(resolve => this.#child.once('exit', code => resolve(code)));
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  get log(): string {
    return readFileSync(this.#log, 'utf8');
  }

  get isRunning(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** Sends the signal and waits for the end. */
  async kill(signal: 'SIGTERM' | 'SIGKILL'): Promise<number | null> {
    if (this.isRunning) this.#child.kill(signal);
    return this.exited;
  }

  /** Waits until the log holds a text. */
  async says(text: string): Promise<void> {
    await eventually(`"${text}" in the log of ${this.#log}:\n${this.log.slice(-LAST_LOG_BYTES)}`, async () => {
      if (this.log.includes(text)) return true;
      if (!this.isRunning) throw new Error(`it ended:\n${this.log.slice(-LAST_LOG_BYTES)}`);
      return undefined;
    });
  }
}

/** Waits for a value. What `look` throws is told when the patience is over. */

/** As much of the Prometheus Operator's definitions as it takes to store objects of its kinds. */
export const MONITORING_DEFINITIONS: string = ['PrometheusRule', 'PodMonitor']
  .map(kind => {
    const singular = kind.toLowerCase();
    const plural = `${singular}s`;
    const group = 'monitoring.coreos.com';
    const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
    return JSON.stringify({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: `${plural}.${group}` },
      spec: {
        group,
        scope: 'Namespaced',
        names: { kind, singular, plural },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    });
  })
  .join('\n');
