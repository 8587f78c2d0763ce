import { startEngine } from '../../../src/api/api.ts';
import type { User } from '../../../src/api/auth/user.ts';
import { silentLog } from '../../../src/controller/log.ts';
import { createRegistry } from '../../../src/controller/metrics.ts';
import { applyConfig, finishUpdate } from '../../../src/daemon/apply/apply-config.ts';
import { machineConfigDaemon } from '../../../src/daemon/daemon.ts';
import { type MemoryHostOptions, memoryHost } from '../../../src/host/memory.ts';
import type { Host } from '../../../src/host/port.ts';
import { minutes } from '../../../src/kube/duration.ts';
import type { Kube } from '../../../src/kube/port.ts';
import { EVENTS, NODES } from '../../../src/kube/resource.ts';
import { TestCluster } from '../../../src/machine-config/testing.ts';
import type { IgnitionConfig } from '../../../src/machine-config-api/ignition/types.ts';
import { MACHINE_CONFIGS, type MachineConfig } from '../../../src/machine-config-api/machine-config.ts';
import {
  CURRENT_CONFIG,
  DAEMON_REASON,
  DAEMON_STATE,
  DESIRED_CONFIG,
  DESIRED_DRAIN,
  LAST_APPLIED_DRAIN,
} from '../../../src/machine-config-api/names.ts';

export const WORKER = { 'node-role.kubernetes.io/worker': '' };
/** Longer than any pause between two attempts. */
const PATIENCE_MS = minutes(30);

/** A machine of a test: its disk in memory, with a kubelet, a container runtime and somebody to log in. */
export async function machine(options: MemoryHostOptions = {}): Promise<Host & { readonly asked: string[] }> {
  const host = memoryHost(options);
  for (const unit of ['crio', 'kubelet', 'chronyd']) {
    await host.files.write(
      `/usr/lib/systemd/system/${unit}.service`,
      Buffer.from('[Install]\nWantedBy=multi-user.target\n'),
    );
  }
  await host.accounts.addUser('core', []);
  return host;
}

/** A config with these files, by path. */
export function config(
  name: string,
  files: Readonly<Record<string, string>>,
  rest: Partial<IgnitionConfig> = {},
): MachineConfig {
  return {
    metadata: { name },
    spec: {
      config: {
        ignition: { version: '3.4.0' },
        ...rest,
        storage: {
          ...rest.storage,
          files: Object.entries(files).map(([path, text]) => ({
            path,
            mode: 0o644,
            overwrite: true,
            contents: { source: `data:,${encodeURIComponent(text)}` },
          })),
        },
      },
    },
  };
}

/** One agent at work, and how to end it. */
export interface RunningAgent {
  readonly host: Host & { readonly asked: string[] };
  readonly registry: ReturnType<typeof createRegistry>;
  /** Ends it as SIGTERM does. */
  stop(): Promise<void>;
}

/** A cluster with the real drain controller, on which agents run; time is virtual. */
export class Scene {
  readonly cluster: TestCluster;
  readonly #agents = new Set<RunningAgent>();
  /** Everything that agents asked of the drain controller. */
  readonly drains: string[] = [];

  private constructor(cluster: TestCluster) {
    this.cluster = cluster;
  }

  static async create(): Promise<Scene> {
    return Scene.on(await TestCluster.create(clock => startEngine({ clock })));
  }

  /** The same on a cluster of which the test wants more. */
  static on(cluster: TestCluster): Scene {
    cluster.startController();
    return new Scene(cluster);
  }

  get kube(): Kube {
    return this.cluster.kube;
  }

  /** What Ignition does at the first boot: the machine is in that config. */
  async install(host: Host, installed: MachineConfig): Promise<void> {
    await applyConfig(host, undefined, installed, { skipCertificateWrite: false });
    await finishUpdate(host);
  }

  /** A node that runs a config, with its agent. */
  async start(name: string, first: MachineConfig, host?: Host & { readonly asked: string[] }): Promise<RunningAgent> {
    const own = host ?? (await machine());
    await this.create(first);
    await this.install(own, first);
    own.asked.length = 0;
    await this.cluster.addNode(name, WORKER, first.metadata?.name);
    const agent = this.run(name, own);
    await this.isDone(name, first.metadata?.name ?? '');
    return agent;
  }

  /** Starts the agent of a node that exists. */
  run(name: string, host: Host & { readonly asked: string[] }, kube = this.api(), nodeKube = kube): RunningAgent {
    const stop = new AbortController();
    const registry = createRegistry();
    const daemon = machineConfigDaemon({
      kube,
      nodeKube,
      host,
      nodeName: name,
      clock: this.cluster.clock,
      log: silentLog,
      registry,
    });
    const running = daemon.run(stop.signal);
    running.catch(() => {});
    const agent: RunningAgent = {
      host,
      registry,
      stop: async () => {
        this.#agents.delete(agent);
        stop.abort(new Error('the test ends the agent'));
        await this.#settle(running);
      },
    };
    this.#agents.add(agent);
    return agent;
  }

  /** The API in the hands of an agent. `before` may fail a call. */
  api(before: (verb: string) => void | Promise<void> = () => {}): Kube {
    return this.cluster.watched(async (verb, [resource, , patch]) => {
      await before(verb);
      if (verb !== 'patch' || resource !== NODES) return;
      const { metadata } = (patch as { body: { metadata?: { annotations?: Record<string, string> } } }).body;
      const asked = metadata?.annotations?.[DESIRED_DRAIN];
      if (asked !== undefined) this.drains.push(asked);
    });
  }

  async create(object: MachineConfig): Promise<void> {
    await this.kube.create(MACHINE_CONFIGS, object);
  }

  /** Targets a node as the node controller does. */
  async target(name: string, wanted: MachineConfig): Promise<void> {
    await this.create(wanted);
    await this.annotate(name, { [DESIRED_CONFIG]: wanted.metadata?.name ?? '' });
  }

  async annotate(name: string, annotations: Record<string, string | null>): Promise<void> {
    await this.kube.patch(NODES, { name }, { type: 'merge', body: { metadata: { annotations } } });
  }

  async annotations(name: string): Promise<Record<string, string>> {
    return (await this.kube.get(NODES, { name })).metadata?.annotations ?? {};
  }

  async isDone(name: string, wanted: string): Promise<void> {
    await this.until(`${name} is done with ${wanted}`, async () => {
      const annotations = await this.annotations(name);
      return annotations[CURRENT_CONFIG] === wanted && annotations[DAEMON_STATE] === 'Done';
    });
  }

  /** Waits for a state, and gives its reason. */
  async fails(name: string, state: 'Degraded' | 'Unreconcilable'): Promise<string> {
    await this.until(`${name} is ${state}`, async () => (await this.annotations(name))[DAEMON_STATE] === state);
    return (await this.annotations(name))[DAEMON_REASON] ?? '';
  }

  async until(what: string, isSo: () => boolean | Promise<boolean>, withinMs = PATIENCE_MS): Promise<void> {
    await this.cluster.until(what, isSo, withinMs);
  }

  /** The drain handshake of a node. */
  async handshake(name: string): Promise<{ desired: string | undefined; applied: string | undefined }> {
    const annotations = await this.annotations(name);
    return { desired: annotations[DESIRED_DRAIN], applied: annotations[LAST_APPLIED_DRAIN] };
  }

  /** Reasons of the events about a node, in the order they were written. */
  async events(name: string): Promise<{ reason: string; message: string; namespace: string }[]> {
    const { items } = await this.kube.list(EVENTS);
    return items
      .filter(
        ({ involvedObject, source }) =>
          involvedObject.name === name && source?.component?.startsWith('machineconfigdaemon'),
      )
      .sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
      .map(({ reason = '', message = '', metadata }) => ({ reason, message, namespace: metadata.namespace ?? '' }));
  }

  /** How often each reason was told of a node. */
  async told(name: string): Promise<Map<string, number>> {
    const { items } = await this.kube.list(EVENTS);
    const counts = new Map<string, number>();
    for (const { involvedObject, source, reason = '', count = 1 } of items) {
      if (involvedObject.name !== name || !source?.component?.startsWith('machineconfigdaemon')) continue;
      counts.set(reason, (counts.get(reason) ?? 0) + count);
    }
    return counts;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#agents].map(agent => agent.stop()));
    await this.cluster.stop();
  }

  /** Whoever is in the middle of a pause may finish it. */
  async #settle(running: Promise<void>): Promise<void> {
    let isOver = false;
    const over = running.finally(() => (isOver = true));
    over.catch(() => {});
    while (!isOver) {
      await this.cluster.quiet();
      const next = this.cluster.clock.nextWait();
      if (!isOver && next !== undefined) await this.cluster.clock.advanceTo(next);
    }
    await over;
  }
}

/** Somebody who is a node, as the API sees it. */
export function nodeUser(name: string): User {
  return { name: `system:node:${name}`, uid: '', groups: ['system:nodes', 'system:authenticated'], extra: {} };
}
