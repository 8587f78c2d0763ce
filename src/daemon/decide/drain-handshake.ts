import { hours, minutes, seconds } from '../../kube/duration.ts';
import {
  CONTROL_PLANE_TOPOLOGY,
  DESIRED_CONFIG,
  DESIRED_DRAIN,
  LAST_APPLIED_DRAIN,
} from '../../machine-config-api/names.ts';

type Annotations = Readonly<Record<string, string>>;

/** What an agent does about a drain it needs (spec 60, 10.1). */
export type DrainDecision =
  /** The only control-plane node has nowhere to send its pods. */
  | { readonly kind: 'skip'; readonly events: readonly ['Drain']; readonly message: string }
  /** Carried out for this very config before a restart or a time-out. */
  | { readonly kind: 'already-drained' }
  | { readonly kind: 'request'; readonly request: DrainRequest };

/** Annotations to set, events to emit, and how long to wait until `lastAppliedDrain` says the same. */
export interface DrainRequest {
  readonly annotations: Annotations;
  readonly events: readonly string[];
  readonly pollMs: number;
  readonly withinMs: number;
}

const SINGLE_REPLICA = 'SingleReplica';
/** For those who have no watch to wait on. */
const POLL_MS = seconds(10);
export const DRAIN_WITHIN_MS = hours(1);
export const UNCORDON_WITHIN_MS = minutes(10);

/** Whether and how a node asks for its drain. An unknown topology counts as highly available. */
export function decideDrain(node: Annotations): DrainDecision {
  if (node[CONTROL_PLANE_TOPOLOGY] === SINGLE_REPLICA) {
    return { kind: 'skip', events: ['Drain'], message: 'Drain not required, skipping' };
  }
  const value = `drain-${node[DESIRED_CONFIG] ?? ''}`;
  if (node[LAST_APPLIED_DRAIN] === value) return { kind: 'already-drained' };
  const annotations = { [DESIRED_DRAIN]: value };
  return {
    kind: 'request',
    request: { annotations, events: ['Cordon', 'Drain'], pollMs: POLL_MS, withinMs: DRAIN_WITHIN_MS },
  };
}

/** How a node that has reached a config asks to be uncordoned; also where it never was drained (spec 60, 10.4.4). */
export function uncordonRequest(config: string): DrainRequest {
  return {
    annotations: { [DESIRED_DRAIN]: `uncordon-${config}` },
    events: ['Uncordon'],
    pollMs: POLL_MS,
    withinMs: UNCORDON_WITHIN_MS,
  };
}

/** Whether the controller has done what was asked for last. Nothing was asked: done. */
export function isDrainApplied(node: Annotations): boolean {
  const desired = node[DESIRED_DRAIN] ?? '';
  return desired === '' || desired === node[LAST_APPLIED_DRAIN];
}

/** The error of a wait that was too long, with the event that tells of it (spec 60, 10.1.6 and 10.4.4). */
export function drainTimeout(
  verb: 'drain' | 'uncordon',
  node: string,
): { readonly event: string; readonly message: string } {
  const limit = verb === 'drain' ? '1 hour' : '10 minutes';
  return {
    event: verb === 'drain' ? 'FailedToDrain' : 'FailedToUncordon',
    message: `failed to ${verb} node: ${node} after ${limit}. Please see machine-config-controller logs for more information`,
  };
}
