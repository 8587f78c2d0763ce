import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { Condition } from '../../controller/condition.ts';
import { goQuote } from '../../kube/go-quote.ts';
import type { ControllerConfig } from '../../machine-config-api/controller-config.ts';
import type { MachineConfigPool, MachineConfigPoolStatus } from '../../machine-config-api/machine-config.ts';
import { DAEMON_REASON, DESIRED_CONFIG } from '../../machine-config-api/names.ts';
import { conditionIs, placeCondition } from '../conditions.ts';
import { KUBELET_CA_BUNDLE } from '../controller-config/certificates.ts';
import { isDegraded, isDoneAt, isReady, isUnavailable } from './node-state.ts';

/** Reasons of nodes that are named in a condition; a pool may have thousands. */
const MOST_REASONS = 20;

/**
 * What a pool says of its machines (spec 50, 4.4 and 8.6). `nodes` are its own; `problems` is what is wrong with the pool itself.
 */
export function poolStatus(
  pool: MachineConfigPool,
  nodes: readonly Node[],
  controllerConfig: ControllerConfig | undefined,
  now: Date,
  problems: readonly string[] = [],
): MachineConfigPoolStatus {
  const updated = nodes.filter(node => isDoneAt(node, pool));
  const ready = updated.filter(isReady);
  const unavailable = nodes.filter(node => isUnavailable(node)).length;
  const degraded = nodes.filter(node => !!node.metadata?.annotations?.[DESIRED_CONFIG] && isDegraded(node));
  const allUpdated = updated.length === nodes.length && ready.length === nodes.length && unavailable === 0;
  const before = pool.status ?? {};
  let conditions = before.conditions ?? [];
  for (const condition of conditionsOf(pool, allUpdated, degraded, problems)) {
    conditions = placeCondition(conditions, condition, now, 'with-message');
  }
  return {
    ...before,
    observedGeneration: pool.metadata?.generation ?? 0,
    machineCount: nodes.length,
    updatedMachineCount: updated.length,
    readyMachineCount: ready.length,
    unavailableMachineCount: unavailable,
    degradedMachineCount: degraded.length,
    certExpirys: certificateExpiries(controllerConfig),
    configuration: (allUpdated ? pool.spec?.configuration : before.configuration) ?? {},
    conditions,
  };
}

function conditionsOf(
  pool: MachineConfigPool,
  allUpdated: boolean,
  degraded: readonly Node[],
  problems: readonly string[],
): Condition[] {
  const target = `MachineConfig ${pool.spec?.configuration?.name ?? ''}`;
  const isNodeDegraded = degraded.length + problems.length > 0;
  const isDegradedPool = isNodeDegraded || conditionIs(pool.status?.conditions, 'RenderDegraded', 'True');
  return [
    {
      type: 'Updated',
      status: statusOf(allUpdated),
      message: allUpdated ? `All nodes are updated with ${target}` : '',
    },
    updatingCondition(pool, allUpdated, target),
    {
      type: 'NodeDegraded',
      status: statusOf(isNodeDegraded),
      reason:
        degraded.length > 0
          ? `${degraded.length} nodes are reporting degraded status on sync`
          : problems.length > 0
            ? 'InvalidPool'
            : '',
      message: limited([...problems, ...degradedReasons(degraded)]),
    },
    { type: 'Degraded', status: statusOf(isDegradedPool) },
  ];
}

function updatingCondition(pool: MachineConfigPool, allUpdated: boolean, target: string): Condition {
  if (allUpdated) return { type: 'Updating', status: 'False' };
  return pool.spec?.paused === true
    ? { type: 'Updating', status: 'False', message: `Pool is paused; will not update to ${target}` }
    : { type: 'Updating', status: 'True', message: `All nodes are updating to ${target}` };
}

function degradedReasons(degraded: readonly Node[]): string[] {
  return degraded.flatMap(({ metadata }) => {
    const reason = metadata?.annotations?.[DAEMON_REASON] ?? '';
    return reason === '' ? [] : [`Node ${metadata?.name ?? ''} is reporting: ${goQuote(reason)}`];
  });
}

function limited(reasons: readonly string[]): string {
  const more = reasons.length - MOST_REASONS;
  return [...reasons.slice(0, MOST_REASONS), ...(more > 0 ? [`and ${more} more`] : [])].join(', ');
}

/** When the certificates of the kubelet's client CA expire; the same in every pool (spec 50, 4.4). */
function certificateExpiries(controllerConfig: ControllerConfig | undefined) {
  return (controllerConfig?.status?.controllerCertificates ?? [])
    .filter(({ bundleFile }) => bundleFile === KUBELET_CA_BUNDLE)
    .map(({ bundleFile, subject, notAfter }) => ({
      bundle: bundleFile,
      subject,
      ...(notAfter && { expiry: notAfter }),
    }));
}

function statusOf(isTrue: boolean): 'True' | 'False' {
  return isTrue ? 'True' : 'False';
}
