import assert from 'node:assert/strict';
import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { startEngine } from '../../src/api/api.ts';
import { minutes, seconds } from '../../src/kube/duration.ts';
import type { Kube, Patch } from '../../src/kube/port.ts';
import { NODES } from '../../src/kube/resource.ts';
import { customPool, fileConfig, TestCluster } from '../../src/machine-config/testing.ts';
import { MACHINE_CONFIG_POOLS, MACHINE_CONFIGS } from '../../src/machine-config-api/machine-config.ts';
import { CURRENT_CONFIG, DAEMON_STATE, DESIRED_CONFIG } from '../../src/machine-config-api/names.ts';

/** A number in [0, 1) that is the same in every run of a seed. */
export function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
}

interface Machine {
  readonly name: string;
  readonly pool: string;
  current: string;
  desired: string;
  isDone: boolean;
  isReady: boolean;
  /** When the world made it not ready, counted in writes. */
  wentAt: number;
}

export interface FleetOptions {
  readonly pools: readonly string[];
  readonly nodesPerPool: number;
  readonly maxUnavailable: string;
  readonly seed: number;
  /** Whether controllers hang now and then between two calls, as a busy process does. */
  readonly stalls?: boolean;
  /** How often a node turns not ready. */
  readonly troubleEverySeconds?: number;
}

/**
 * Many nodes whose agents take some time for an update and which now and then are not ready. Every write to a node goes through
 * here, and at each one that targets a node the limit of its pool is checked.
 */
export class Fleet {
  readonly cluster: TestCluster;
  readonly options: FleetOptions;
  readonly #machines = new Map<string, Machine>();
  readonly #random: () => number;
  /** Grows with every write. */
  #sequence = 0;
  targeted = 0;
  /** The most nodes that were on their way at once, by pool. */
  readonly peak = new Map<string, number>();
  readonly violations: string[] = [];

  private constructor(cluster: TestCluster, options: FleetOptions) {
    this.cluster = cluster;
    this.options = options;
    this.#random = seeded(options.seed);
  }

  /** A fleet that runs what its pools first render. */
  static async create(options: FleetOptions): Promise<Fleet> {
    const cluster = await TestCluster.create(clock => startEngine({ clock }));
    const fleet = new Fleet(cluster, options);
    for (const pool of options.pools) {
      if (pool !== 'worker') await cluster.kube.create(MACHINE_CONFIG_POOLS, customPool(pool, options.maxUnavailable));
    }
    cluster.startOperator();
    return fleet;
  }

  /** Adds the nodes once the pools have a config. */
  async populate(): Promise<void> {
    const { cluster, options } = this;
    const configOf = async (pool: string) => (await cluster.pool(pool)).spec?.configuration?.name ?? '';
    await cluster.until(
      'all pools are rendered',
      async () => (await Promise.all(options.pools.map(configOf))).every(name => name !== ''),
      minutes(2),
    );
    await cluster.kube.patch(
      MACHINE_CONFIG_POOLS,
      { name: 'worker' },
      { type: 'merge', body: { spec: { maxUnavailable: options.maxUnavailable } } },
    );
    for (const pool of options.pools) {
      const config = await configOf(pool);
      for (let index = 0; index < options.nodesPerPool; index++) {
        const name = `${pool}-${String(index).padStart(4, '0')}`;
        const labels = {
          'node-role.kubernetes.io/worker': '',
          [`node-role.kubernetes.io/${pool}`]: '',
          'topology.kubernetes.io/zone': `z${index % 3}`,
        };
        await cluster.addNode(name, labels, config);
        this.#machines.set(name, {
          name,
          pool,
          current: config,
          desired: config,
          isDone: true,
          isReady: true,
          wentAt: 0,
        });
      }
    }
    await cluster.until('all pools are updated', () => this.isUpdated(), minutes(5));
  }

  /** The API in the hands of a controller. */
  controllerApi(): Kube {
    const { stalls = false } = this.options;
    let listedAt = 0;
    const kube = this.cluster.watched();
    return new Proxy(kube, {
      get: (target, name: keyof Kube) => {
        if (name === 'watch') return target.watch;
        return async (...args: never[]) => {
          const [resource, key, patch] = args as unknown[] as [unknown, { name: string }, Patch];
          const isOfRollout = resource === NODES || resource === MACHINE_CONFIG_POOLS;
          if (stalls && isOfRollout && this.#random() < 0.2) await this.#pause(1, 60);
          if (name === 'list' && resource === NODES) listedAt = ++this.#sequence;
          const answer = await (target[name] as (...args: never[]) => Promise<unknown>)(...args);
          if (name === 'patch' && resource === NODES) this.#written(key.name, patch, listedAt);
          return answer;
        };
      },
    });
  }

  #written(name: string, patch: Patch, listedAt: number): void {
    this.#sequence++;
    const annotations = (patch.body as { metadata?: Node['metadata'] }).metadata?.annotations ?? {};
    const desired = annotations[DESIRED_CONFIG];
    const machine = this.#machines.get(name);
    if (desired === undefined || machine === undefined) return;
    machine.desired = desired;
    machine.isDone = false;
    this.targeted++;
    this.#check(machine.pool, listedAt);
    void this.#update(machine);
  }

  /**
   * What became not ready after the controller had looked is nobody's fault. Where controllers stall it cannot be told what they
   * had seen, and then those count that they sent on their way.
   */
  #check(pool: string, listedAt: number): void {
    const own = [...this.#machines.values()].filter(machine => machine.pool === pool);
    const limit = Math.max(1, Math.floor((Number.parseInt(this.options.maxUnavailable, 10) * own.length) / 100));
    const underWay = own.filter(({ isDone }) => !isDone).length;
    const isToBlame = ({ isReady, wentAt }: Machine) => !isReady && wentAt < listedAt && !this.options.stalls;
    const unavailable = own.filter(machine => !machine.isDone || isToBlame(machine)).length;
    this.peak.set(pool, Math.max(this.peak.get(pool) ?? 0, underWay));
    if (unavailable > limit)
      this.violations.push(`${pool}: ${unavailable} unavailable, ${underWay} of them under way, limit ${limit}`);
  }

  /** The agent: works for a while, goes away for the reboot, and is done. */
  async #update(machine: Machine): Promise<void> {
    await this.#patch(machine, { [DAEMON_STATE]: 'Working' });
    await this.#pause(10, 40);
    if (this.#random() < 0.5) {
      await this.#setReady(machine, false);
      await this.#pause(10, 60);
      await this.#setReady(machine, true);
    }
    const { desired } = machine;
    await this.#patch(machine, { [CURRENT_CONFIG]: desired, [DAEMON_STATE]: 'Done' });
    machine.current = desired;
    machine.isDone = machine.desired === desired;
  }

  #pause(fromSeconds: number, toSeconds: number): Promise<void> {
    const ms = seconds(Math.round(fromSeconds + this.#random() * (toSeconds - fromSeconds)));
    return this.cluster.clock.until(new Date(this.cluster.clock.now().getTime() + ms));
  }

  async #patch(machine: Machine, annotations: Record<string, string>): Promise<void> {
    await this.cluster.kube.patch(
      NODES,
      { name: machine.name },
      { type: 'merge', body: { metadata: { annotations } } },
    );
  }

  async #setReady(machine: Machine, isReady: boolean): Promise<void> {
    machine.isReady = isReady;
    machine.wentAt = ++this.#sequence;
    const conditions = [{ type: 'Ready', status: isReady ? 'True' : 'False' }];
    await this.cluster.kube.patch(
      NODES,
      { name: machine.name },
      { type: 'merge', body: { status: { conditions } } },
      { subresource: 'status' },
    );
  }

  /** Nodes that turn not ready for a while, at random, as long as the signal lets them. */
  async disturb(signal: AbortSignal): Promise<void> {
    const machines = [...this.#machines.values()];
    const { clock } = this.cluster;
    while (!signal.aborted) {
      await clock
        .until(
          new Date(clock.now().getTime() + seconds((this.options.troubleEverySeconds ?? 8) * (0.5 + this.#random()))),
          signal,
        )
        .catch(() => {});
      const machine = machines[Math.floor(this.#random() * machines.length)];
      if (machine === undefined || signal.aborted || !machine.isReady || !machine.isDone) continue;
      await this.#setReady(machine, false);
      void this.#pause(20, 120).then(() => this.#setReady(machine, true));
    }
  }

  /** A change that every pool has to take over. */
  async change(text: string): Promise<void> {
    const config = fileConfig('99-worker-change', 'worker', '/etc/change', text);
    await this.cluster.kube.delete(MACHINE_CONFIGS, { name: '99-worker-change' }).catch(() => {});
    await this.cluster.kube.create(MACHINE_CONFIGS, config);
  }

  /** Whether every node runs what its pool is heading for, and the pools say so. */
  async isUpdated(): Promise<boolean> {
    for (const name of this.options.pools) {
      const { spec, status, metadata } = await this.cluster.pool(name);
      const isSaid = status?.conditions?.some(({ type, status: value }) => type === 'Updated' && value === 'True');
      const isCurrent =
        status?.observedGeneration === metadata?.generation &&
        status?.configuration?.name === spec?.configuration?.name;
      if (!isSaid || !isCurrent || status?.machineCount !== this.options.nodesPerPool) return false;
    }
    return true;
  }

  assertSafe(): void {
    assert.deepEqual(this.violations.slice(0, 5), []);
  }
}
