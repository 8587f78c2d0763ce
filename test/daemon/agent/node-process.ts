import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Api, startApi } from '../../../src/api/api.ts';
import { silentLog } from '../../../src/controller/log.ts';
import { applyConfig, finishUpdate } from '../../../src/daemon/apply/apply-config.ts';
import { localHost } from '../../../src/host/local.ts';
import type { Host } from '../../../src/host/port.ts';
import { systemClock } from '../../../src/kube/clock.ts';
import { eventsTo } from '../../../src/kube/events.ts';
import type { Kube } from '../../../src/kube/port.ts';
import { NAMESPACES, NODES } from '../../../src/kube/resource.ts';
import { machineConfigController } from '../../../src/machine-config/controller/controller.ts';
import { installDefinitions } from '../../../src/machine-config/testing.ts';
import { MACHINE_CONFIGS, type MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DAEMON_STATE, DESIRED_CONFIG, MCO_NAMESPACE } from '../../../src/machine-config-api/names.ts';
import { end } from '../../tools/child.ts';
import { eventually } from '../../tools/eventually.ts';
import { WORKER } from './scene.ts';

const PROGRAM = new URL('../../../src/cli/main.ts', import.meta.url).pathname;
const CONTROLLER_DELAY_MS = 20;

/** An API over the network with the real drain controller, below a directory of its own. */
export class ProcessCluster {
  readonly dir: string;
  readonly nodes: ProcessNode[] = [];
  #api: Api;
  #stopController: () => Promise<void>;

  private constructor(dir: string, api: Api) {
    this.dir = dir;
    this.#api = api;
    this.#stopController = startController(api);
  }

  static async start(): Promise<ProcessCluster> {
    const dir = mkdtempSync(join(tmpdir(), 'rotunda-daemon-'));
    const api = await startApi({ dir: join(dir, 'api') });
    await installDefinitions({ kube: api.kube, idle: () => api.engine.idle(), close: () => api.close() });
    await api.kube.create(NAMESPACES, { metadata: { name: MCO_NAMESPACE } });
    return new ProcessCluster(dir, api);
  }

  get api(): Api {
    return this.#api;
  }

  /** Takes the API away. Returns the way to bring it back, with all it had, at the same place. */
  async loseApi(): Promise<() => Promise<void>> {
    const { port } = new URL(this.#api.url);
    await this.#stopController();
    await this.#api.close();
    return async () => {
      this.#api = await startApi({ dir: join(this.dir, 'api'), port: Number(port) });
      this.#stopController = startController(this.#api);
    };
  }

  /** A node that is in a config; its agent does not run yet. */
  async node(name: string, first: MachineConfig): Promise<ProcessNode> {
    const root = join(this.dir, 'nodes', name);
    mkdirSync(root, { recursive: true });
    const host = localHost({ root });
    await host.files.write('/usr/lib/systemd/system/crio.service', Buffer.from('[Service]\n'));
    await host.accounts.addUser('core', []);
    await applyConfig(host, undefined, first, { skipCertificateWrite: false });
    await finishUpdate(host);
    await this.api.kube.create(MACHINE_CONFIGS, first);
    const config = first.metadata?.name ?? '';
    const annotations = { [CURRENT_CONFIG]: config, [DESIRED_CONFIG]: config, [DAEMON_STATE]: 'Done' };
    await this.api.kube.create(NODES, { metadata: { name, labels: WORKER, annotations } });
    const node = new ProcessNode(this, name, root, host);
    this.nodes.push(node);
    return node;
  }

  async close(): Promise<void> {
    await Promise.all(this.nodes.map(node => node.kill()));
    await this.#stopController();
    await this.#api.close();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

/** The real controllers; without pools only drains are asked of them. */
function startController({ kube }: Api): () => Promise<void> {
  const stop = new AbortController();
  const events = eventsTo('test', () => {});
  const version = { version: 'v1', hash: 'h' };
  const parts = { kube, clock: systemClock, events, log: silentLog, version, delayMs: CONTROLLER_DELAY_MS };
  const running = machineConfigController(parts).run(stop.signal);
  return async () => {
    stop.abort();
    await running;
  };
}

/** A node whose agent is a process: the real command. */
export class ProcessNode {
  readonly name: string;
  readonly root: string;
  readonly host: Host;
  readonly #cluster: ProcessCluster;
  #process: ChildProcess | undefined;
  #log = '';

  constructor(cluster: ProcessCluster, name: string, root: string, host: Host) {
    this.#cluster = cluster;
    this.name = name;
    this.root = root;
    this.host = host;
  }

  get kube(): Kube {
    return this.#cluster.api.kube;
  }

  /** What the agents of this node have logged. */
  get log(): string {
    return this.#log;
  }

  get pid(): number | undefined {
    return this.#process?.pid;
  }

  start({ program = PROGRAM, env = {} }: { program?: string; env?: Record<string, string> } = {}): void {
    const kubeconfig = join(this.#cluster.dir, 'kubeconfig');
    if (!existsSync(kubeconfig)) writeFileSync(kubeconfig, this.#cluster.api.kubeconfig, { mode: 0o600 });
    const args = [
      program,
      'machine-config-daemon',
      '--local',
      `--root=${this.root}`,
      `--node-name=${this.name}`,
      `--kubeconfig=${kubeconfig}`,
      '--no-kubelet-healthz-enabled',
      '--metrics-listen=127.0.0.1:0',
      '--health-listen=127.0.0.1:0',
    ];
    const started = spawn(process.execPath, args, {
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, ...env },
    });
    const keep = (part: Buffer) => {
      this.#log = (this.#log + part.toString()).slice(-LONGEST_LOG);
    };
    started.stdout.on('data', keep);
    started.stderr.on('data', keep);
    this.#process = started;
  }

  /** At once, as by kill -9, or as told. Resolves with the exit code when the process is gone. */
  async kill(signal: NodeJS.Signals = 'SIGKILL'): Promise<number | null> {
    return this.#process === undefined ? null : (await end(this.#process, signal)).code;
  }

  async target(wanted: MachineConfig): Promise<void> {
    await this.kube.create(MACHINE_CONFIGS, wanted).catch(() => {});
    const body = { metadata: { annotations: { [DESIRED_CONFIG]: wanted.metadata?.name ?? '' } } };
    await this.kube.patch(NODES, { name: this.name }, { type: 'merge', body });
  }

  async annotations(): Promise<Record<string, string>> {
    return (await this.kube.get(NODES, { name: this.name })).metadata?.annotations ?? {};
  }

  async isDone(wanted: MachineConfig): Promise<void> {
    await eventually(
      `${this.name} is done with ${wanted.metadata?.name}`,
      async () => {
        const annotations = await this.annotations();
        return annotations[CURRENT_CONFIG] === wanted.metadata?.name && annotations[DAEMON_STATE] === 'Done';
      },
      () => this.#log.slice(-3000),
    );
  }

  read(path: string): string {
    return readFileSync(join(this.root, path), 'utf8');
  }
}

const LONGEST_LOG = 1024 * 1024;
