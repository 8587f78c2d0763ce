import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { redactedText } from '../controller/redact.ts';
import { type Clock, sleep, systemClock } from '../kube/clock.ts';
import { isConflict } from '../kube/error.ts';
import type { Kube } from '../kube/port.ts';
import { NODES } from '../kube/resource.ts';
import {
  CURRENT_CONFIG,
  CURRENT_IMAGE,
  DAEMON_REASON,
  DAEMON_STATE,
  DESIRED_DRAIN,
  DESIRED_IMAGE,
} from '../machine-config-api/names.ts';

export type NodeState = 'Done' | 'Working' | 'Degraded' | 'Unreconcilable';

/** What becomes of the own Node's annotations (spec 60, 5.5). */
export type NodeOperation =
  | {
      readonly kind: 'done';
      readonly currentConfig: string;
      readonly currentImage?: string | undefined;
      readonly desiredImage?: string | undefined;
    }
  | { readonly kind: 'working' }
  | { readonly kind: 'degraded' | 'unreconcilable'; readonly reason: string }
  | { readonly kind: 'desired-drain'; readonly value: string }
  | {
      readonly kind: 'annotations';
      readonly set: Readonly<Record<string, string>>;
      readonly remove?: readonly string[] | undefined;
    };

export interface AnnotationChange {
  readonly set: Readonly<Record<string, string>>;
  readonly remove: readonly string[];
}

/** The longest reason that is written, in characters. */
export const LONGEST_REASON = 2000;
/** Writes that may wait for their turn; whoever comes then hears so and tries again later. */
export const MOST_WAITING = 25;
const CONFLICT_TRIES = 4;
const FIRST_PAUSE_MS = 10;
const PAUSE_FACTOR = 5;

export interface NodeWriterOptions {
  /** Acts as the node itself: the agent's own account may not write nodes (spec 60, 1.4). */
  readonly kube: Kube;
  readonly nodeName: string;
  readonly clock?: Clock | undefined;
  /** Told what the API answered, so that a cache knows of our own writes at once: `node => informer.remember(node)`. */
  readonly onWritten?: ((node: Node) => void) | undefined;
  /** Told of every state that was written, for `mcd_state`. */
  readonly onState?: ((state: NodeState, reason: string) => void) | undefined;
}

/**
 * The only writer of the own Node's annotations: one write at a time, in the order of the calls. A write names the values
 * themselves and never a difference to a cache, so none is left out because the cache was behind (D-14).
 */
export class NodeWriter {
  readonly #options: NodeWriterOptions;
  readonly #clock: Clock;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(options: NodeWriterOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  /** Carries one operation out and gives the node as it is then. */
  write(operation: NodeOperation): Promise<Node> {
    if (this.#waiting >= MOST_WAITING) {
      return Promise.reject(new Error(`expected at most ${MOST_WAITING} node writes to wait, found one more`));
    }
    this.#waiting++;
    const turn = this.#last.then(() => this.#carryOut(operation)).finally(() => this.#waiting--);
    this.#last = turn.catch(() => {});
    return turn;
  }

  annotate(set: Readonly<Record<string, string>>, remove: readonly string[] = []): Promise<Node> {
    return this.write({ kind: 'annotations', set, remove });
  }

  async #carryOut(operation: NodeOperation): Promise<Node> {
    for (let attempt = 1; ; attempt++) {
      try {
        const node = await (operation.kind === 'working' ? this.#startWorking() : this.#patch(changeOf(operation)));
        this.#options.onWritten?.(node);
        this.#report(operation, node);
        return node;
      } catch (error) {
        if (!isConflict(error) || attempt === CONFLICT_TRIES) throw error;
        await sleep(this.#clock, FIRST_PAUSE_MS * PAUSE_FACTOR ** (attempt - 1));
      }
    }
  }

  /** Looks at the live node: one that fails keeps saying so while it tries again (spec 60, 5.1.1). */
  async #startWorking(): Promise<Node> {
    const node = await this.#options.kube.get(NODES, { name: this.#options.nodeName });
    const { annotations, resourceVersion } = node.metadata ?? {};
    if (!mayStartWorking(annotations?.[DAEMON_STATE])) return node;
    return this.#patch(changeOf({ kind: 'working' }), resourceVersion);
  }

  #patch({ set, remove }: AnnotationChange, resourceVersion?: string): Promise<Node> {
    const annotations = { ...Object.fromEntries(remove.map(name => [name, null])), ...set };
    const metadata = { annotations, ...(resourceVersion !== undefined && { resourceVersion }) };
    const { kube, nodeName } = this.#options;
    return kube.patch(NODES, { name: nodeName }, { type: 'merge', body: { metadata } });
  }

  #report(operation: NodeOperation, { metadata }: Node): void {
    const { [DAEMON_STATE]: state, [DAEMON_REASON]: reason = '' } = changeOf(operation).set;
    const isWritten = state !== undefined && metadata?.annotations?.[DAEMON_STATE] === state;
    if (isWritten && operation.kind !== 'annotations') this.#options.onState?.(state as NodeState, reason);
  }
}

/** The annotations an operation sets and removes (spec 60, 5.5.5). */
export function changeOf(operation: NodeOperation): AnnotationChange {
  switch (operation.kind) {
    case 'done': {
      const { currentConfig, currentImage = '', desiredImage = '' } = operation;
      const images: Record<string, string> = { [CURRENT_IMAGE]: currentImage, [DESIRED_IMAGE]: desiredImage };
      return {
        set: {
          [DAEMON_STATE]: 'Done',
          [CURRENT_CONFIG]: currentConfig,
          [DAEMON_REASON]: '',
          ...(currentImage !== '' && { [CURRENT_IMAGE]: currentImage }),
        },
        remove: Object.keys(images).filter(name => images[name] === ''),
      };
    }
    case 'working':
      return { set: { [DAEMON_STATE]: 'Working' }, remove: [] };
    case 'degraded':
      return { set: { [DAEMON_STATE]: 'Degraded', [DAEMON_REASON]: shownReason(operation.reason) }, remove: [] };
    case 'unreconcilable':
      return { set: { [DAEMON_STATE]: 'Unreconcilable', [DAEMON_REASON]: shownReason(operation.reason) }, remove: [] };
    case 'desired-drain':
      return { set: { [DESIRED_DRAIN]: operation.value }, remove: [] };
    case 'annotations':
      return { set: operation.set, remove: operation.remove ?? [] };
  }
}

/** Whether the start of an update may be announced over this state (spec 60, 5.1). */
export function mayStartWorking(state: string | undefined): boolean {
  return state !== 'Degraded' && state !== 'Unreconcilable';
}

/** A reason as it may be shown to everybody who reads nodes: without keys and tokens, and not too long. */
export function shownReason(reason: string): string {
  const cut = redactedText(reason).slice(0, LONGEST_REASON);
  const last = cut.charCodeAt(cut.length - 1);
  const isHalfACharacter = last >= 0xd800 && last <= 0xdbff;
  return isHalfACharacter ? cut.slice(0, -1) : cut;
}
