import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import { MACHINE_CONFIGS, type MachineConfig } from '../../machine-config-api/machine-config.ts';
import type { AgentMetrics } from './metrics.ts';

/** Configs kept in memory: the one to leave and the one to reach. */
const MOST_KEPT = 2;

/**
 * The rendered configs of the cluster by name. They are named after their content and never change, so they are asked for when they
 * are needed instead of being watched: a node needs two of them during an update, and none at rest.
 */
export class ConfigSource {
  readonly #kube: Kube;
  readonly #metrics: Pick<AgentMetrics, 'missingConfigs'>;
  readonly #kept = new Map<string, MachineConfig>();
  /** Names the cluster had when it was last asked; remembered longer than the configs. */
  readonly #seen = new Set<string>();

  constructor(kube: Kube, metrics: Pick<AgentMetrics, 'missingConfigs'>) {
    this.#kube = kube;
    this.#metrics = metrics;
  }

  /** Undefined when the cluster has none of that name. */
  async get(name: string): Promise<MachineConfig | undefined> {
    const config = this.#kept.get(name) ?? (await getIfPresent(this.#kube, MACHINE_CONFIGS, { name }));
    this.#kept.delete(name);
    if (config === undefined) this.#seen.delete(name);
    else {
      this.#seen.add(name);
      this.#kept.set(name, config);
      for (const [oldest] of this.#kept) if (this.#kept.size > MOST_KEPT) this.#kept.delete(oldest);
    }
    return config;
  }

  /**
   * Which of these there are: those seen before are not asked for again, and one that is stored on this disk is at hand whether the
   * cluster still has it or not. Counts those that are missing (D-27).
   */
  async among(
    names: readonly (string | undefined)[],
    stored?: { readonly config: MachineConfig },
  ): Promise<(name: string) => boolean> {
    const atHand = stored?.config.metadata?.name;
    const asked = new Set(names.filter(name => name !== undefined && name !== ''));
    const missing: string[] = [];
    for (const name of asked) {
      if (name === undefined || name === atHand || this.#seen.has(name)) continue;
      if ((await this.get(name)) === undefined) missing.push(name);
    }
    this.#metrics.missingConfigs(missing);
    return name => asked.has(name) && !missing.includes(name);
  }

  /** At rest nothing needs to be kept. */
  forget(): void {
    this.#kept.clear();
  }
}
