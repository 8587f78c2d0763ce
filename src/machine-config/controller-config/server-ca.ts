import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { CURRENT_CONFIG, LAST_OBSERVED_SERVER_CA, SERVER_CA_DIGEST } from '../../machine-config-api/names.ts';
import { serverCaDigest as digestOf } from '../../machine-config-api/server-ca-digest.ts';

export { digestOf };

/**
 * Who waits for nodes to have a new server CA. `receipts`: whoever signs with it, until they say that they have loaded it (spec 90), so nodes
 * hear of it at once. `clock`: nobody; nodes hear of it when it has not changed for a minute, as in 4.16 (spec 50, CC-7).
 */
export type HandOver = 'receipts' | 'clock';

export const SETTLE_MS: number = minutes(1);
/** Signers often change together, and each change restarts kubelets: those of so long are one. Nothing is unsafe without this pause. */
export const GATHER_MS: number = seconds(5);

export interface ServerCaState {
  /** The CA that clients verify the API server with; undefined where it is missing or has no key. */
  readonly serverCa: Buffer | undefined;
  /** `kubeconfig-data`: undefined where it is missing; `bundle` undefined where it has no key. */
  readonly kubeconfigData: { readonly bundle: Buffer | undefined } | undefined;
  readonly handOver: HandOver;
  /** Since when the server CA is what it is, and since when it is another than that of nodes. */
  readonly stableSince: Date;
  readonly differsSince: Date;
  /** The annotations of ControllerConfig that were written last. */
  readonly announced: { readonly rotate: string | undefined; readonly digest: string | undefined };
  /** Whether a node has not yet taken over the bundle of that digest. */
  readonly isAnyNodeBehind: (digest: string) => boolean;
}

export interface ServerCaDecision {
  /** What becomes of `kubeconfig-data`. */
  readonly write: 'none' | 'create' | 'patch';
  readonly bundle?: Buffer;
  /** The CA has changed, and may change again: look once more then. */
  readonly settlesAt?: Date;
  /** The value of `service-ca-rotate`. */
  readonly rotate: 'true' | 'false';
  /** What nodes should have. */
  readonly digest?: string;
}

/**
 * Whether nodes should take over a new server CA (spec 50, CC-6 to CC-8, with its defects mended): a `kubeconfig-data` without
 * its key is repaired, waiting for the CA to settle blocks nothing, and the flag stays up until every node has the bundle, so
 * that one that was down still learns of it.
 */
export function decideServerCa(state: ServerCaState, now: Date): ServerCaDecision {
  const { serverCa, kubeconfigData } = state;
  const stored = kubeconfigData?.bundle;
  if (serverCa === undefined) return { write: 'none', ...announcement(state, stored) };
  if (kubeconfigData === undefined)
    return { write: 'create', bundle: serverCa, rotate: 'true', digest: digestOf(serverCa) };
  if (stored?.equals(serverCa)) return { write: 'none', ...announcement(state, stored) };
  const settlesAt = settlingEnd(state);
  if (stored !== undefined && now < settlesAt) return { write: 'none', settlesAt, ...announcement(state, stored) };
  return { write: 'patch', bundle: serverCa, rotate: 'true', digest: digestOf(serverCa) };
}

/** A minute begins again with each change; the pause does not, so that changes without end do not put it off without end. */
function settlingEnd({ handOver, stableSince, differsSince }: ServerCaState): Date {
  const isByClock = handOver === 'clock';
  return new Date((isByClock ? stableSince : differsSince).getTime() + (isByClock ? SETTLE_MS : GATHER_MS));
}

/** Up while it was never announced, or while somebody is behind. A cluster that comes from 4.16 has no digest: nothing is new. */
function announcement(
  { announced, isAnyNodeBehind }: ServerCaState,
  stored: Buffer | undefined,
): Pick<ServerCaDecision, 'rotate' | 'digest'> {
  if (stored === undefined) return { rotate: 'false' };
  const digest = digestOf(stored);
  const isNew = announced.digest !== undefined && announced.digest !== digest;
  const isOpen = announced.rotate === 'true' && announced.digest === digest && isAnyNodeBehind(digest);
  return { rotate: isNew || isOpen ? 'true' : 'false', digest };
}

/**
 * Whether a node with an agent has not taken over the bundle. Agents of ours say which bundle they have; others only that they
 * have seen the flag.
 */
export function isNodeBehind({ metadata }: Node, digest: string): boolean {
  const annotations = metadata?.annotations ?? {};
  if (!annotations[CURRENT_CONFIG]) return false;
  const taken = annotations[SERVER_CA_DIGEST];
  return taken === undefined ? annotations[LAST_OBSERVED_SERVER_CA] !== 'true' : taken !== digest;
}
