import type { Log } from '../controller/log.ts';
import type { HandOverMode } from '../hand-over/sync.ts';
import type { EventRecorder } from '../kube/events.ts';
import type { Kube } from '../kube/port.ts';
import type { ObjectKey } from '../kube/resource.ts';
import type { KeyAlgorithm } from '../pki/keys.ts';
import type { Identity } from './cluster-api.ts';
import type { Leading } from './leading.ts';
import type { LocalNode } from './node.ts';
import type { Programs } from './programs.ts';

/** Something that makes up a cluster and can be waited for: an operator and its operand, a server. The list is in `parts.ts`. */
export interface ClusterPart {
  /** Of one word or with hyphens; people see it. */
  readonly name: string;
  /** Starts it; it works until `context.signal` aborts. Rejecting ends the start of the cluster. */
  start(context: PartContext): Promise<RunningPart>;
}

export interface RunningPart {
  /** Resolves after the abort, when nothing of it runs any more; rejects when it gave up before. */
  readonly ended: Promise<void>;
  /** How it is now. Whoever implements it calls `context.changed()` when the answer may be another one. */
  state(): PartState;
}

export interface PartState {
  readonly ready: boolean;
  /** One line: what it is, or what it waits for. */
  readonly text: string;
}

/** What is different from an operator that works as long as the cluster, with all rights. */
export interface LeadAs {
  readonly kube: Kube;
  readonly signal: AbortSignal;
}

/** Where a lease is. */
type Lease = ObjectKey & { readonly namespace: string };

/** What a part is given. */
export interface PartContext {
  readonly kube: Kube;
  readonly kubeconfigPath: string;
  /** Where the API is. */
  readonly url: string;
  /** The API in the hands of somebody else. */
  as(identity: Identity): Promise<Kube>;
  readonly nodes: readonly LocalNode[];
  readonly controlPlane: readonly LocalNode[];
  /** What pods on the nodes can run, and whether it is the real thing. */
  readonly programs: Programs;
  /** How long a day of rotation lasts. */
  readonly dayMs: number | undefined;
  readonly keyAlgorithm: KeyAlgorithm | undefined;
  readonly handOver: HandOverMode | undefined;
  /** How long operands must have been ready before the next node is touched. */
  readonly minReadyMs: number;
  readonly log: Log;
  /** A recorder of events about a namespace, for a component. */
  events(component: string, namespace: string): EventRecorder;
  /** Has an operator work as long as this cluster holds its lease: an operator of the same name in another process waits. */
  lead(
    lease: Lease,
    events: EventRecorder,
    work: (kube: Kube, signal: AbortSignal) => Promise<void>,
    as?: LeadAs,
  ): Leading;
  readonly signal: AbortSignal;
  /** Does something that may be done twice, again while the API is away. */
  patiently<T>(work: () => Promise<T>): Promise<T>;
  changed(): void;
}
