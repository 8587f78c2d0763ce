import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { POST_CONFIG_ACTION } from '../../machine-config-api/names.ts';
import { isDrainApplied } from './drain-handshake.ts';

export interface SyncGateInput {
  /** The node that something happened to. */
  readonly key: string;
  /** The node this agent is on. */
  readonly self: string;
  /** As it is in the cache; undefined where it is not. */
  readonly node: Node | undefined;
  /** A reboot was asked for by this process. */
  readonly isRebootQueued: boolean;
  /** The start-up flow has not succeeded yet. */
  readonly isBooting: boolean;
}

export interface SyncGate {
  readonly verdict: 'ignore' | 'first-run' | 'wait-for-drain' | 'continue';
  /** Why, for the log. */
  readonly reason: string;
  /** To be written before anything else: a reboot that was announced is over. */
  readonly annotations: Readonly<Record<string, string>>;
}

/** The value of `post-config-action` while a reboot is queued or running. */
export const REBOOTING = 'Rebooting';

/** Whether a node sync goes on, and with what (spec 60, 5.2, steps 1 to 7). */
export function decideSync({ key, self, node, isRebootQueued, isBooting }: SyncGateInput): SyncGate {
  if (key !== self) return ignored(`${key} is another node`);
  if (node === undefined) return ignored('the node is not known yet');
  if (node.metadata?.deletionTimestamp !== undefined) return ignored('the node is being deleted');
  if (isRebootQueued) return ignored('a reboot is queued');
  const present = node.metadata?.annotations ?? {};
  const annotations: Record<string, string> =
    present[POST_CONFIG_ACTION] === REBOOTING ? { [POST_CONFIG_ACTION]: '' } : {};
  if (isBooting) return { verdict: 'first-run', reason: 'the start-up flow is not over', annotations };
  if (!isDrainApplied(present)) {
    return { verdict: 'wait-for-drain', reason: 'A previously requested drain has not yet completed.', annotations };
  }
  return { verdict: 'continue', reason: '', annotations };
}

function ignored(reason: string): SyncGate {
  return { verdict: 'ignore', reason, annotations: {} };
}
