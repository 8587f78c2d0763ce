import type { Condition } from '../../controller/condition.ts';
import type { PlanEvent } from '../../forecast/model.ts';
import type {
  BundleItem,
  CertificateFacts,
  CertificateItem,
  HandOverItem,
  ItemMetadata,
  NodeItem,
  PoolItem,
  RevisionItem,
} from '../../inventory/model.ts';
import type { ObjectRef } from '../../trust/object.ts';

/**
 * What the page and its server say to each other; plain data, no key material, times as RFC 3339 texts. The live model is a handful
 * of lists of items with names; what changes is sent item by item.
 */
export interface Sections {
  readonly certificates: CertificateItem;
  readonly bundles: BundleItem;
  readonly nodes: NodeItem;
  readonly revisions: RevisionItem;
  readonly pools: PoolItem;
  readonly handOvers: HandOverItem;
  readonly operators: OperatorItem;
  readonly pods: StaticPodItem;
  readonly events: EventItem;
  readonly changes: ChangeItem;
  readonly handshakes: HandshakeItem;
}

export type Section = keyof Sections;

export const SECTIONS: readonly Section[] = [
  'certificates',
  'bundles',
  'nodes',
  'revisions',
  'pools',
  'handOvers',
  'operators',
  'pods',
  'events',
  'changes',
  'handshakes',
];

/** An operator of the cluster and its conditions. */
export interface OperatorItem {
  readonly metadata: ItemMetadata;
  readonly conditions: readonly Condition[];
}

/** A static pod of the control plane, as its mirror shows it. */
export interface StaticPodItem {
  readonly metadata: ItemMetadata;
  readonly operand: string;
  readonly node: string;
  readonly phase: string;
  readonly ready: boolean;
  readonly revision?: number | undefined;
  readonly restarts: number;
  /** What runs there only stands in for the real program. */
  readonly standIn: boolean;
}

export interface EventItem {
  readonly metadata: ItemMetadata;
  readonly type: string;
  readonly reason: string;
  readonly message: string;
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
  readonly source: string;
  readonly about: string;
}

/** Something that happened while the console was watching. */
export interface ChangeItem {
  readonly metadata: ItemMetadata;
  readonly at: string;
  /** `CertificateChanged`, `BundleChanged`, ... */
  readonly what: string;
  /** `secret/<name>`, and its namespace. */
  readonly object: string;
  readonly namespace?: string | undefined;
  readonly text: string;
}

/** What became of the handshakes over one edge of the trust graph; spelt out here, so that the page needs nothing of the prober. */
export interface HandshakeItem {
  readonly metadata: ItemMetadata;
  readonly edge: string;
  readonly accepted: number;
  readonly refused: number;
  readonly unreachable: number;
  readonly skipped?: string | undefined;
  readonly lastAcceptedAt?: string | undefined;
  readonly refusals: readonly {
    readonly by: string;
    readonly reason: string;
    readonly from: string;
    readonly to: string;
    readonly lastAt: string;
  }[];
}

/** What is true of the cluster as a whole. */
export interface About {
  readonly server: string;
  /** How long a day of rotation lasts here. */
  readonly rotationDayMs: number;
  /** Whether handshakes are being tried. */
  readonly hasProber: boolean;
  /** What this user may not see, and what was left out. */
  readonly limits: readonly string[];
}

/** Everything there is. */
export interface Snapshot {
  readonly now: string;
  readonly about: About;
  readonly sections: { readonly [S in Section]: readonly Sections[S][] };
}

/** What became different since the last message. */
export interface Patch {
  readonly now: string;
  readonly about?: About | undefined;
  readonly set: { readonly [S in Section]?: readonly Sections[S][] };
  readonly gone: { readonly [S in Section]?: readonly string[] };
}

/** Whether connections are being refused at present, and not only at some time before. */
export function isRefusing({ lastAcceptedAt, refusals }: Pick<HandshakeItem, 'lastAcceptedAt' | 'refusals'>): boolean {
  const accepted = lastAcceptedAt === undefined ? 0 : Date.parse(lastAcceptedAt);
  // Some ways over an edge may be refused while others are accepted, all within one round.
  return refusals.some(({ lastAt }) => Date.parse(lastAt) > accepted - ROUND_MS);
}

/** Longer than a round over all edges takes. */
const ROUND_MS = 5000;

/** What names an item within its section. */
export function idOf({ metadata }: { readonly metadata: ItemMetadata }): string {
  return `${metadata.namespace ?? ''}/${metadata.name}`;
}

/** Who is logged in. */
export interface SessionInfo {
  readonly user: string;
  readonly groups: readonly string[];
  /** Sent back with everything that changes something. */
  readonly csrf: string;
  readonly expiresAt: string;
}

/** What one Secret or ConfigMap says, in detail. */
export interface ObjectDetail {
  readonly object: ObjectRef;
  readonly annotations: Readonly<Record<string, string>>;
  /** Every certificate of the file, the own one first. */
  readonly chain: readonly CertificateFacts[];
}

export type Action =
  | { readonly kind: 'regenerate'; readonly object: ObjectRef; readonly overrideGate?: boolean | undefined }
  | { readonly kind: 'pause' | 'resume'; readonly pool: string }
  /** Hand-overs of signers go on without a node, or wait for it again. */
  | { readonly kind: 'waive' | 'count'; readonly node: string }
  /** A hand-over ends, or is turned round. */
  | { readonly kind: 'take-back'; readonly object: ObjectRef };

/** What an action would do. Only what has been previewed can be done. */
export interface ActionPreview {
  readonly id: string;
  readonly title: string;
  /** Why it cannot be done. */
  readonly refusal?: string | undefined;
  /** Why it should wait, and that the user may go ahead all the same. */
  readonly gate?: string | undefined;
  readonly events: readonly PlanEvent[];
  readonly notes: readonly string[];
}

export interface ActionResult {
  readonly text: string;
}
