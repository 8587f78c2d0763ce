import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Access, changedAccess } from '../../src/kube/access.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import { nodeAddress } from '../../src/local/addresses.ts';
import { readClusterRecord } from '../../src/local/cluster-record.ts';
import { readRecord } from '../../src/local/container-record.ts';
import { isRunning } from '../../src/local/process.ts';
import { type LoadBalancer, startLoadBalancer } from '../../src/local/real/load-balancer.ts';
import { backendsOf } from '../../src/local/real/real-api.ts';

const MAIN = new URL('../../src/cli/main.ts', import.meta.url).pathname;
const LAST_WORDS = 3_000;

export const CONTROL_PLANE = ['master-0', 'master-1', 'master-2'] as const;
export type NodeName = (typeof CONTROL_PLANE)[number];

/** `rotunda up --real` in a process of its own, and a load balancer that outlives it. */
export class RealCluster {
  readonly dir: string = mkdtempSync(join(tmpdir(), 'rotunda-real-'));
  #balancer: LoadBalancer | undefined;
  #kube: HttpKube | undefined;
  #child: ChildProcess | undefined;
  #said = '';

  /** Resolves when it says that it is ready. */
  async start(dayMs: number): Promise<void> {
    const child = this.launch(dayMs);
    let text = '';
    for await (const chunk of child.stdout.setEncoding('utf8')) {
      text += chunk;
      if (text.includes('\n')) break;
    }
    if (!text.startsWith('ready')) throw new Error(`rotunda up --real ended before it was ready:\n${this.#said}`);
    child.stdout.resume();
    await this.connect();
  }

  /** Makes the way to the API that outlives the process of the cluster. */
  async connect(): Promise<void> {
    this.#balancer ??= await startLoadBalancer({ backends: backendsOf(this.dir, CONTROL_PLANE.length) });
    this.#kube ??= new HttpKube(this.balanced(await loadAccess({ path: this.kubeconfig })));
  }

  /** Starts it and does not wait for anything. */
  launch(dayMs: number) {
    const words = ['up', '--real', '--dir', this.dir, '--workers', '0', '--rotation-day', `${dayMs / 1000}s`];
    // Without a folder of binaries: `up --real` finds what the suite found.
    const child = spawn(process.execPath, [MAIN, ...words], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.#said = (this.#said + text).slice(-LAST_WORDS);
    });
    this.#child = child;
    return child;
  }

  async kill(signal: NodeJS.Signals): Promise<void> {
    const child = this.#child;
    if (child === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const ended = once(child, 'exit');
    child.kill(signal);
    await ended;
  }

  async stop(): Promise<void> {
    await this.#kube?.close();
    await this.#balancer?.close();
    await this.kill('SIGTERM');
    spawnSync(process.execPath, [MAIN, 'down', '--dir', this.dir]);
    rmSync(this.dir, { recursive: true, force: true, maxRetries: 5 });
  }

  get kubeconfig(): string {
    return join(this.dir, 'kubeconfig');
  }

  get kube(): HttpKube {
    if (this.#kube === undefined) throw new Error('the cluster has not been started');
    return this.#kube;
  }

  /** What it said last, for messages. */
  get said(): string {
    return this.#said;
  }

  /** The same access through the load balancer of the test, asking for `serverName` where one is given. */
  balanced(access: Access, serverName?: string): Access {
    const balancer = this.#balancer;
    if (balancer === undefined) throw new Error('the cluster has not been started');
    const server = new URL(`https://${balancer.host}:${balancer.port}`);
    return changedAccess(access, connection => ({
      ...connection,
      server,
      tls: { ...connection.tls, ...(serverName === undefined ? {} : { serverName }) },
    }));
  }

  addressOf(node: NodeName): string {
    return nodeAddress(this.dir, CONTROL_PLANE.indexOf(node));
  }

  /** A file of a node. */
  pathOn(node: NodeName, path: string): string {
    return join(this.dir, 'nodes', node, path);
  }

  read(node: NodeName, path: string): string {
    return readFileSync(this.pathOn(node, path), 'utf8');
  }

  /** Whether every part says that it is ready, and the process that says so runs. */
  isReady(): boolean {
    const found = readClusterRecord(this.dir);
    return found !== undefined && found.isRunning && found.record.parts.every(({ ready }) => ready);
  }

  /** How the parts that are not ready are. */
  unready(): string {
    const parts = readClusterRecord(this.dir)?.record.parts ?? [];
    return parts.flatMap(({ name, ready, text }) => (ready ? [] : [`${name}: ${text}`])).join('; ');
  }

  /** The process of a container of a node's pods. */
  processOf(node: NodeName, container: string): number | undefined {
    const pods = this.pathOn(node, 'var/lib/kubelet/pods');
    for (const uid of readdirSync(pods)) {
      const running = readRecord(join(pods, uid, 'containers', container, 'state.json'))?.running;
      if (running !== undefined && isRunning(running)) return running.pid;
    }
    return undefined;
  }
}
