import type { Node } from 'kubernetes-types/core/v1.d.ts';
import type { MachineConfigPool } from '../../machine-config-api/machine-config.ts';
import {
  CURRENT_CONFIG,
  CURRENT_IMAGE,
  DAEMON_STATE,
  DESIRED_CONFIG,
  DESIRED_DRAIN,
  DESIRED_IMAGE,
} from '../../machine-config-api/names.ts';

/** What a node needs to have of its conditions, where it has them (spec 50, ND-10). */
const READY_CONDITIONS: ReadonlyMap<string, string> = new Map([
  ['Ready', 'True'],
  ['DiskPressure', 'False'],
  ['NetworkUnavailable', 'False'],
]);
const FAILED_STATES = new Set(['Degraded', 'Unreconcilable']);

/** Why a node cannot take work, undefined if it can. A condition that is missing is fine (spec 50, ND-10). */
export function notReadyReason(node: Node): string | undefined {
  const { metadata, spec } = node;
  const isCordoned = spec?.unschedulable === true;
  return conditionProblem(node) ?? (isCordoned ? `node ${metadata?.name ?? ''} is reporting Unschedulable` : undefined);
}

function conditionProblem({ metadata, status }: Node): string | undefined {
  for (const { type, status: found } of status?.conditions ?? []) {
    const wanted = READY_CONDITIONS.get(type);
    if (wanted !== undefined && found !== wanted) return `node ${metadata?.name ?? ''} is reporting ${type}=${found}`;
  }
  return undefined;
}

export function isReady(node: Node): boolean {
  return notReadyReason(node) === undefined;
}

/** The node runs the config that it should run, and its agent has said so (spec 50, ND-11). */
function isDone(node: Node): boolean {
  const { [CURRENT_CONFIG]: current, [DESIRED_CONFIG]: desired, [DAEMON_STATE]: state } = annotationsOf(node);
  return !!current && current === desired && state === 'Done';
}

/** The agent gave up on the way from one config to another (spec 50, ND-12). */
export function isFailing(node: Node): boolean {
  const annotations = annotationsOf(node);
  return (annotations[CURRENT_CONFIG] ?? '') !== (annotations[DESIRED_CONFIG] ?? '') && isDegraded(node);
}

/** The agent reports failure, whatever it was doing. */
export function isDegraded(node: Node): boolean {
  return FAILED_STATES.has(annotationsOf(node)[DAEMON_STATE] ?? '');
}

/**
 * The node is not ready, or under way and not yet failing (spec 50, ND-13). Images count only where somebody builds them for the pool:
 * one that was left over would block the others for good.
 */
export function isUnavailable(node: Node, { isLayered = false }: { readonly isLayered?: boolean } = {}): boolean {
  const isOnItsWay = !isDone(node) || (isLayered && !isImageDone(node));
  return !isReady(node) || (isOnItsWay && !isFailing(node));
}

/**
 * The node's agent gave up a config that its pool no longer wants, and it counts as unavailable for that: only a new target helps it,
 * and costs nothing. Where it is cordoned, it was so by the drain that the agent had asked for.
 */
export function isStranded(node: Node, pool: MachineConfigPool): boolean {
  const isCordonedByOthers =
    node.spec?.unschedulable === true && !annotationsOf(node)[DESIRED_DRAIN]?.startsWith('drain-');
  const isReachable = conditionProblem(node) === undefined && !isCordonedByOthers;
  return isReachable && isDegraded(node) && isUnavailable(node) && !isTargeted(node, pool);
}

/** The node is done, and with what its pool is heading for. */
export function isDoneAt(node: Node, pool: MachineConfigPool): boolean {
  const annotations = annotationsOf(node);
  const image = poolImage(pool) ?? '';
  return (
    isDone(node) &&
    isImageDone(node) &&
    annotations[CURRENT_CONFIG] === (pool.spec?.configuration?.name ?? '') &&
    (annotations[CURRENT_IMAGE] ?? '') === image &&
    (annotations[DESIRED_IMAGE] ?? '') === image
  );
}

/** The node has been told to go where its pool is heading. */
export function isTargeted(node: Node, pool: MachineConfigPool): boolean {
  const annotations = annotationsOf(node);
  const isConfigWanted = (annotations[DESIRED_CONFIG] ?? '') === (pool.spec?.configuration?.name ?? '');
  return isConfigWanted && (annotations[DESIRED_IMAGE] ?? '') === (poolImage(pool) ?? '');
}

/** The annotations that target a node at its pool's config, null for one to remove; undefined when nothing is to change (ND-27). */
export function targetingPatch(node: Node, pool: MachineConfigPool): Record<string, string | null> | undefined {
  const annotations = annotationsOf(node);
  const [config, image] = [pool.spec?.configuration?.name ?? '', poolImage(pool)];
  const patch: Record<string, string | null> = {};
  if (annotations[DESIRED_CONFIG] !== config) patch[DESIRED_CONFIG] = config;
  if (image !== undefined && annotations[DESIRED_IMAGE] !== image) patch[DESIRED_IMAGE] = image;
  if (image === undefined && annotations[DESIRED_IMAGE] !== undefined) patch[DESIRED_IMAGE] = null;
  return Object.keys(patch).length === 0 ? undefined : patch;
}

const NEWEST_IMAGE = 'machineconfiguration.openshift.io/newestImageEquivalentConfig';

/** The OS image that was built for a pool. We build none; a pool that has one keeps it (spec 50, 8.7). 4.16 looks at labelled pools only. */
function poolImage({ metadata }: MachineConfigPool): string | undefined {
  return metadata?.labels === undefined ? undefined : metadata.annotations?.[NEWEST_IMAGE] || undefined;
}

/** Where no image is spoken of there is nothing to wait for. */
function isImageDone(node: Node): boolean {
  const { [CURRENT_IMAGE]: current, [DESIRED_IMAGE]: desired } = annotationsOf(node);
  if (current === undefined && desired === undefined) return true;
  return !!current && current === desired;
}

function annotationsOf({ metadata }: Node): Readonly<Record<string, string>> {
  return metadata?.annotations ?? {};
}
