import { minutes } from '../../kube/duration.ts';
import { goQuote } from '../../kube/go-quote.ts';
import type { MachineConfig, MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import {
  GENERATED_BY_CONTROLLER_VERSION,
  OS_IMAGE_URL_OVERRIDDEN,
  RELEASE_IMAGE_VERSION,
  REQUIRED_FOR_UPGRADE_LABEL,
} from '../../machine-config-api/names.ts';
import { conditionIs } from '../conditions.ts';

/** What the pools an upgrade needs should have reached. */
export interface ExpectedConfiguration {
  readonly controllerHash: string;
  readonly releaseVersion: string;
  readonly osImageUrl: string;
}

export type RequiredPools =
  | { readonly verdict: 'done' }
  /** Not there yet; looked at again whenever a pool changes. */
  | { readonly verdict: 'waiting'; readonly reason: string }
  /** Will not get there by itself. */
  | { readonly verdict: 'failed'; readonly reason: string };

const TIME_PER_MACHINE_MS = minutes(10);

/** How long the required pools may take: ten minutes a machine (spec 50, RQ-1). */
export function requiredPoolsLimitMs(pools: readonly MachineConfigPool[]): number {
  return (
    pools.filter(isRequired).reduce((sum, { status }) => sum + (status?.machineCount ?? 0), 0) * TIME_PER_MACHINE_MS
  );
}

/** Whether the pools an upgrade needs have reached what they should (spec 50, RQ-3 to RQ-5). */
export function requiredPools(
  pools: readonly MachineConfigPool[],
  problemOf: (pool: MachineConfigPool) => string | undefined,
): RequiredPools {
  for (const pool of pools) {
    const { name = '', generation = 0 } = pool.metadata ?? {};
    const { conditions, observedGeneration = 0 } = pool.status ?? {};
    if (conditionIs(conditions, 'Degraded', 'True')) {
      return { verdict: 'waiting', reason: `MachineConfigPool ${name} is degraded: ${countsOf(pool)}` };
    }
    if (!isRequired(pool)) continue;
    const problem = problemOf(pool);
    const isUpdated = conditionIs(conditions, 'Updated', 'True');
    if (problem === undefined && generation <= observedGeneration && isUpdated) continue;
    if (pool.spec?.paused === true) {
      return {
        verdict: 'failed',
        reason: `required MachineConfigPool ${name} is paused and cannot sync until it is unpaused`,
      };
    }
    const reason = problem ?? `not ready: ${countsOf(pool)}`;
    return {
      verdict: 'waiting',
      reason: `MachineConfigPool ${name} has not progressed to latest configuration: ${reason}`,
    };
  }
  return { verdict: 'done' };
}

/** Why a pool's configuration is not the one this release made, undefined if it is (spec 50, RQ-4). */
export function configurationProblem(
  pool: MachineConfigPool,
  configOf: (name: string) => MachineConfig | undefined,
  expected: ExpectedConfiguration,
): string | undefined {
  const poolName = pool.metadata?.name ?? '';
  const { name = '', source = [] } = pool.status?.configuration ?? {};
  if (!pool.spec?.configuration?.name) return `configuration spec for pool ${poolName} is empty: ${poolSummary(pool)}`;
  if (name === '') return `configuration status for pool ${poolName} is empty: ${poolSummary(pool)}`;
  if (source.length === 0) {
    return `list of MachineConfigs that were used to generate configuration for pool ${poolName} is empty: ${poolSummary(pool)}`;
  }
  for (const each of [name, ...source.map(reference => reference.name ?? '')]) {
    const config = configOf(each);
    if (config === undefined) return `machineconfig ${each} not found`;
    const made = config.metadata?.annotations?.[GENERATED_BY_CONTROLLER_VERSION];
    if (made === undefined && each === name) {
      return `${each} must be created by controller version ${expected.controllerHash}: ${poolSummary(pool)}`;
    }
    if (made !== undefined && made !== expected.controllerHash) {
      return `controller version mismatch for ${each} expected ${expected.controllerHash} has ${made}: ${poolSummary(pool)}`;
    }
  }
  return releaseProblem(poolName, configOf(name) ?? {}, expected);
}

function releaseProblem(
  poolName: string,
  rendered: MachineConfig,
  expected: ExpectedConfiguration,
): string | undefined {
  const { name = '', annotations = {} } = rendered.metadata ?? {};
  const url = rendered.spec?.osImageURL ?? '';
  if (url !== expected.osImageUrl && annotations[OS_IMAGE_URL_OVERRIDDEN] === undefined) {
    return `osImageURL mismatch for ${poolName} in ${name} expected: ${expected.osImageUrl} got: ${url}`;
  }
  const release = annotations[RELEASE_IMAGE_VERSION];
  if (release === expected.releaseVersion) return undefined;
  return `release image version mismatch for ${poolName} in ${name} expected: ${expected.releaseVersion} got: ${release ?? 'none'}`;
}

/** One line about a pool, for the ClusterOperator (spec 50, CO-2). */
export function poolSummary({ spec, status = {} }: MachineConfigPool): string {
  const { conditions = [], machineCount = 0, readyMachineCount = 0, updatedMachineCount = 0 } = status;
  const of = (type: string) => conditions.find(condition => condition.type === type && condition.status === 'True');
  const quoted = (text: string | undefined) => goQuote(text ?? '');
  const render = of('RenderDegraded');
  if (render !== undefined)
    return `pool is degraded because rendering fails with ${quoted(render.reason)}: ${quoted(render.message)}`;
  const node = of('NodeDegraded');
  if (node !== undefined)
    return `pool is degraded because nodes fail with ${quoted(node.reason)}: ${quoted(node.message)}`;
  if (of('Updated')) return `all ${machineCount} nodes are at latest configuration ${status.configuration?.name ?? ''}`;
  if (of('Updating')) {
    const target = spec?.configuration?.name ?? '';
    return `${updatedMachineCount} (ready ${readyMachineCount}) out of ${machineCount} nodes are updating to latest configuration ${target}`;
  }
  return '<unknown>';
}

function isRequired({ metadata }: MachineConfigPool): boolean {
  return metadata?.labels?.[REQUIRED_FOR_UPGRADE_LABEL] !== undefined;
}

function countsOf({ status = {} }: MachineConfigPool): string {
  const {
    machineCount = 0,
    readyMachineCount = 0,
    updatedMachineCount = 0,
    unavailableMachineCount = 0,
    degradedMachineCount = 0,
  } = status;
  return `total ${machineCount}, ready ${readyMachineCount}, updated ${updatedMachineCount}, unavailable ${unavailableMachineCount}, degraded ${degradedMachineCount}`;
}
