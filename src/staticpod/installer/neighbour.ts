import type { Clock } from '../../kube/clock.ts';
import { minutes, seconds } from '../../kube/duration.ts';
import { getIfPresent } from '../../kube/get.ts';
import type { Kube } from '../../kube/port.ts';
import type { Neighbour } from '../config.ts';
import { isInTransition, type NodeStatus, readNodeStatus } from '../node-status.ts';

/** How soon the neighbour is looked at again. */
export const NEIGHBOUR_AGAIN_MS: number = seconds(1);
/** One that takes longer is stuck, and what it waits for may be us. */
const LONGEST_WAIT_MS = minutes(5);

export interface NeighbourOptions {
  readonly neighbour: Neighbour | undefined;
  readonly kube: Pick<Kube, 'get'>;
}

/**
 * Whether the neighbour replaces its pod on a node, or has said that it will. Both say so in their status before they look at each other,
 * so that one of them always sees the other, whatever they do at the same time.
 */
export class NeighbourWatch {
  readonly #options: NeighbourOptions;
  /** Since when it is on its way to a revision on a node, as far as we have seen. */
  readonly #since = new Map<string, { readonly targetRevision: number; readonly ms: number }>();

  constructor(options: NeighbourOptions) {
    this.#options = options;
  }

  get comesFirst(): boolean {
    return this.#options.neighbour?.comesFirst ?? false;
  }

  async isRestarting(nodeName: string, clock: Clock, signal: AbortSignal): Promise<boolean> {
    const { neighbour, kube } = this.#options;
    if (neighbour === undefined) return false;
    // A cache may not know yet what was said a moment ago.
    const found = await getIfPresent(kube, neighbour.operator, { name: 'cluster' }, { signal });
    const entry = (found?.status?.nodeStatuses ?? []).map(readNodeStatus).find(node => node.nodeName === nodeName);
    if (entry === undefined || !isAtWork(entry)) {
      this.#since.delete(nodeName);
      return false;
    }
    const nowMs = clock.now().getTime();
    const { targetRevision } = entry;
    const known = this.#since.get(nodeName);
    if (known?.targetRevision !== targetRevision) this.#since.set(nodeName, { targetRevision, ms: nowMs });
    return nowMs - (this.#since.get(nodeName)?.ms ?? nowMs) < LONGEST_WAIT_MS;
  }
}

/** After a failure it waits for another attempt. */
function isAtWork(node: NodeStatus): boolean {
  return isInTransition(node) && node.lastFailedRevision !== node.targetRevision;
}
