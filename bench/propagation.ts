/**
 * How long does a new CA take from ControllerConfig to the disks of 200 nodes, and what do their agents cost when nothing happens?
 * The embedded API runs in a process of its own; the certificate writers of all nodes share this one, each with its own directory
 * and its own connections over HTTPS. A file counts when it has been renamed into place and its directory synced.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout } from 'node:timers/promises';
import { silentLog } from '../src/controller/log.ts';
import { CertificateWriter } from '../src/daemon/certificates/controller.ts';
import { KUBELET_CA } from '../src/daemon/certificates/paths.ts';
import { base64, ca, controllerConfig, installKubelet, kubeconfigData } from '../src/daemon/certificates/testing.ts';
import { NodeWriter } from '../src/daemon/node-writer.ts';
import { localHost } from '../src/host/local.ts';
import type { Host } from '../src/host/port.ts';
import { fixedAccess } from '../src/kube/access.ts';
import { HttpKube } from '../src/kube/client.ts';
import { systemClock } from '../src/kube/clock.ts';
import { minutes, seconds } from '../src/kube/duration.ts';
import { isNotFound } from '../src/kube/error.ts';
import { eventsTo } from '../src/kube/events.ts';
import { CONFIG_MAPS, NAMESPACES, NODES } from '../src/kube/resource.ts';
import { installDefinitions } from '../src/machine-config/testing.ts';
import { CONTROLLER_CONFIGS } from '../src/machine-config-api/controller-config.ts';
import {
  CONTROLLER_CONFIG_NAME,
  LAST_SYNCED_CONTROLLER_CONFIG,
  MCO_NAMESPACE,
} from '../src/machine-config-api/names.ts';
import { percentile } from './api/measure.ts';
import { ApiProcess } from './api/server.ts';

const AGENTS = 200;
const CHANGES = 10;
const IDLE_SECONDS = 60;
const LONGEST_WAIT_MS = minutes(1);

/** `npm run bench -- propagation [directory] [agents] [idle seconds]`: the directory decides which disk is measured. */
export async function bench([parent = tmpdir(), agents = AGENTS, idle = IDLE_SECONDS]: (
  | string
  | number
)[]): Promise<void> {
  const dir = mkdtempSync(join(String(parent), 'rotunda-bench-'));
  const api = await ApiProcess.start(join(dir, 'api'));
  const fleet = new Fleet(api, dir);
  console.log(`load of the machine before: ${loadavg()[0]?.toFixed(1)}`);
  try {
    await fleet.start(Number(agents));
    await fleet.changes();
    await fleet.idle(seconds(Number(idle)));
    await fleet.stop();
    await api.stop();
  } finally {
    api.kill();
    rmSync(dir, { recursive: true });
  }
}

class Fleet {
  readonly #api: ApiProcess;
  readonly #dir: string;
  readonly #kube: HttpKube;
  readonly #clients: HttpKube[] = [];
  readonly #running: Promise<void>[] = [];
  readonly #stop = new AbortController();
  /** When each node's file was last complete. */
  readonly #onDisk = new Map<string, number>();

  constructor(api: ApiProcess, dir: string) {
    this.#api = api;
    this.#dir = dir;
    this.#kube = this.#client();
  }

  async start(agents: number): Promise<void> {
    const kube = this.#kube;
    const bundle = await ca('signer-0');
    await installDefinitions({ kube, idle: async () => {}, close: async () => {} });
    await kube.create(NAMESPACES, { metadata: { name: MCO_NAMESPACE } });
    await kube.create(CONFIG_MAPS, kubeconfigData(bundle));
    await until('the kind is known', () =>
      kube.create(CONTROLLER_CONFIGS, controllerConfig({ kubeAPIServerServingCAData: base64(bundle) })).then(
        () => true,
        (error: unknown) => {
          if (isNotFound(error)) return false;
          throw error;
        },
      ),
    );
    const begun = performance.now();
    for (let i = 0; i < agents; i++) await this.#addAgent(`worker-${i}`, bundle);
    await until('every node has its first file', async () => this.#onDisk.size === agents);
    await until('every node says so', () => this.#allAcknowledged());
    const tookMs = performance.now() - begun;
    console.log(`${agents} agents started, with file and acknowledgement: ${(tookMs / 1000).toFixed(1)} s`);
  }

  async #addAgent(name: string, bundle: string): Promise<void> {
    const root = join(this.#dir, 'nodes', name);
    mkdirSync(root, { recursive: true });
    const host = this.#noting(name, localHost({ root }));
    await installKubelet(host, bundle);
    const kube = this.#client();
    this.#clients.push(kube);
    await kube.create(NODES, { metadata: { name, labels: { 'node-role.kubernetes.io/worker': '' } } });
    const writer = new CertificateWriter({
      kube,
      host,
      nodeName: name,
      nodeWriter: new NodeWriter({ kube, nodeName: name }),
      clock: systemClock,
      log: silentLog,
      events: eventsTo('bench', () => {}),
    });
    this.#running.push(writer.run(this.#stop.signal));
  }

  /** The same host, which notes when the file was there. */
  #noting(name: string, host: Host): Host {
    const { write } = host.files;
    const files: Host['files'] = {
      ...host.files,
      write: async (path, content, options) => {
        await write(path, content, options);
        if (path === KUBELET_CA) this.#onDisk.set(name, performance.now());
      },
    };
    return { ...host, files };
  }

  async changes(): Promise<void> {
    const [each, last, acknowledged]: [number[], number[], number[]] = [[], [], []];
    const agents = this.#running.length;
    let bundle = await ca('signer-0');
    for (let change = 1; change <= CHANGES; change++) {
      bundle += await ca(`signer-${change}`);
      this.#onDisk.clear();
      const begun = performance.now();
      await this.#kube.patch(
        CONTROLLER_CONFIGS,
        { name: CONTROLLER_CONFIG_NAME },
        { type: 'merge', body: { spec: { kubeAPIServerServingCAData: base64(bundle) } } },
      );
      await until('the bundle is on every disk', async () => this.#onDisk.size === agents);
      const times = [...this.#onDisk.values()].map(at => at - begun);
      each.push(...times);
      last.push(Math.max(...times));
      await until('every node says so', () => this.#allAcknowledged());
      acknowledged.push(performance.now() - begun);
    }
    console.log(`change of ControllerConfig to file on disk, ${agents} nodes, ${CHANGES} changes:`);
    console.log(`  a node's file    ${text(each)}`);
    console.log(`  the last file    ${text(last)}`);
    console.log(`  acknowledged by all (asked about every 20 ms) ${text(acknowledged)}`);
  }

  async #allAcknowledged(): Promise<boolean> {
    const { metadata } = await this.#kube.get(CONTROLLER_CONFIGS, { name: CONTROLLER_CONFIG_NAME });
    const { items } = await this.#kube.list(NODES);
    return items.every(
      node => node.metadata?.annotations?.[LAST_SYNCED_CONTROLLER_CONFIG] === metadata?.resourceVersion,
    );
  }

  /** What goes over the wire, encrypted as it is, in both directions. Heartbeats of a real kubelet would come on top. */
  async idle(idleMs: number): Promise<void> {
    await setTimeout(seconds(2));
    const [before, cpu] = [transferredBytes(), process.cpuUsage()];
    await setTimeout(idleMs);
    const bytes = transferredBytes() - before;
    const { user, system } = process.cpuUsage(cpu);
    const perSecond = bytes / (idleMs / 1000);
    const agents = this.#running.length;
    console.log(
      `idle for ${idleMs / 1000} s: ${perSecond.toFixed(0)} bytes a second in all, ${(perSecond / agents).toFixed(1)} an agent; ` +
        `${(((user + system) / 1000 / idleMs) * 100).toFixed(2)} % of one core in all`,
    );
    const { rss } = process.memoryUsage();
    console.log(`memory of this process with ${agents} certificate writers: ${Math.round(rss / 2 ** 20)} MiB`);
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await Promise.all(this.#running);
    await Promise.all([this.#kube, ...this.#clients].map(client => client.close()));
  }

  #client(): HttpKube {
    const { server, tls } = this.#api.connection;
    return new HttpKube(fixedAccess(server, { tls }));
  }
}

/** Everything this process has read and written; at rest that is its connections. */
function transferredBytes(): number {
  const io = readFileSync('/proc/self/io', 'utf8');
  return ['rchar', 'wchar'].reduce((sum, name) => sum + Number(io.match(new RegExp(`${name}: (\\d+)`))?.[1] ?? 0), 0);
}

function text(timesMs: readonly number[]): string {
  const [p50, p99] = [50, 99].map(percent => percentile(timesMs, percent).toFixed(0));
  return `p50 ${p50} ms, p99 ${p99} ms, slowest ${Math.max(...timesMs).toFixed(0)} ms`;
}

async function until(what: string, isSo: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + LONGEST_WAIT_MS; !(await isSo()); await setTimeout(20)) {
    if (performance.now() > end) throw new Error(`not in time: ${what}`);
  }
}
