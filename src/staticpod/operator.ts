import type { OperatorState } from '../controller/cluster-operator-status.ts';
import type { Condition } from '../controller/condition.ts';
import { setCondition } from '../controller/condition.ts';
import type { ManagementState } from '../controller/management-state.ts';
import { type StatusUpdate, updateStatus } from '../controller/status.ts';
import type { Lister } from '../kube/cache.ts';
import type { Clock } from '../kube/clock.ts';
import { isNotFound } from '../kube/error.ts';
import type { Kube } from '../kube/port.ts';
import type { KubeObject, Resource } from '../kube/resource.ts';
import { isOlder } from '../kube/resource-version.ts';
import type { StoredNodeStatus } from './node-status.ts';

/** The cluster-wide resource `cluster` an operator is steered with and reports to (spec 30, section 2). */
export interface StaticPodOperatorResource extends KubeObject {
  spec?: StaticPodOperatorSpec;
  status?: StaticPodOperatorStatus;
}

export interface StaticPodOperatorSpec {
  readonly managementState?: ManagementState;
  readonly logLevel?: string;
  readonly operatorLogLevel?: string;
  readonly forceRedeploymentReason?: string;
  readonly failedRevisionLimit?: number;
  readonly succeededRevisionLimit?: number;
  readonly unsupportedConfigOverrides?: unknown;
}

export interface StaticPodOperatorStatus {
  readonly latestAvailableRevision?: number;
  readonly nodeStatuses?: readonly StoredNodeStatus[];
  readonly conditions?: readonly Condition[];
}

export interface StaticPodOperatorOptions {
  readonly kube: Pick<Kube, 'get' | 'updateStatus'>;
  readonly resource: Resource<StaticPodOperatorResource>;
  readonly clock: Clock;
  /** Where `read` looks; the API itself when absent. */
  readonly cache?:
    | (Pick<Lister<StaticPodOperatorResource>, 'get'> & Partial<Lister<StaticPodOperatorResource>>)
    | undefined;
}

const KEY = { name: 'cluster' };

/** Reads the operator resource and changes its status; shared by all controllers of one operator. */
export class StaticPodOperator {
  readonly #options: StaticPodOperatorOptions;
  /** The version of our last write. */
  #written: string | undefined;

  constructor(options: StaticPodOperatorOptions) {
    this.#options = options;
  }

  get resource(): Resource<StaticPodOperatorResource> {
    return this.#options.resource;
  }

  async read(signal?: AbortSignal): Promise<StaticPodOperatorResource> {
    return this.#options.cache?.get(KEY) ?? this.readLive(signal);
  }

  /** What the ClusterOperator is told of it; undefined when there is no such resource (spec 30, 20.1). */
  async reported(versions: OperatorState['versions']): Promise<OperatorState | undefined> {
    try {
      const { spec, status } = await this.read();
      return { managementState: spec?.managementState, conditions: status?.conditions ?? [], versions };
    } catch (error) {
      if (isNotFound(error)) return undefined;
      throw error;
    }
  }

  readLive(signal?: AbortSignal): Promise<StaticPodOperatorResource> {
    return this.#options.kube.get(this.#options.resource, KEY, { signal });
  }

  /** Whether what was read is from before our own last write: acting on it would do things twice (spec 30, T10). */
  isBehind(operator: StaticPodOperatorResource): boolean {
    return isOlder(operator.metadata?.resourceVersion, this.#written);
  }

  /** Changes the status, again on conflict; `mutate` must depend on its argument only (spec 30, 5.2). */
  async update(
    mutate: (status: StaticPodOperatorStatus, operator: StaticPodOperatorResource) => StaticPodOperatorStatus,
    signal?: AbortSignal,
  ): Promise<StatusUpdate<StaticPodOperatorResource>> {
    const { kube, resource, clock, cache } = this.#options;
    const known = () => {
      const cached = cache?.get(KEY);
      return cached === undefined || this.isBehind(cached) ? undefined : cached;
    };
    const update = await updateStatus(
      kube,
      resource,
      KEY,
      operator => ({ ...operator, status: mutate(operator.status ?? {}, operator) }),
      { clock, cached: known, signal },
    );
    if (update.updated) {
      this.#written = update.object.metadata?.resourceVersion;
      cache?.remember?.(update.object);
    }
    return update;
  }

  /** Puts conditions in place; nothing is written when they are there already. */
  async setConditions(conditions: readonly Condition[], signal?: AbortSignal): Promise<void> {
    await this.update(status => withConditions(status, conditions, this.#options.clock.now()), signal);
  }
}

/** The status with these conditions in place. */
export function withConditions(
  status: StaticPodOperatorStatus,
  conditions: readonly Condition[],
  now: Date,
): StaticPodOperatorStatus {
  let result = status.conditions ?? [];
  for (const condition of conditions) result = setCondition(result, condition, now);
  return { ...status, conditions: result };
}
