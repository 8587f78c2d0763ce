/** One control-plane node in `status.nodeStatuses`, with every number present (spec 30, section 2). */
export interface NodeStatus {
  readonly nodeName: string;
  /** Tells a node from another one that got its name; empty when whoever made the entry did not say. */
  readonly nodeUID: string;
  /** The last revision that became ready on the node; 0 = never. */
  readonly currentRevision: number;
  /** The revision being rolled out; 0 = none. */
  readonly targetRevision: number;
  readonly lastFailedRevision: number;
  readonly lastFailedTime: string | undefined;
  readonly lastFailedReason: FailureReason | '';
  readonly lastFailedCount: number;
  readonly lastFallbackCount: number;
  readonly lastFailedRevisionErrors: readonly string[];
}

export type FailureReason = 'InstallerFailed' | 'OperandFailed' | 'OperandFailedFallback';

/** The same as it is stored: what is 0 or empty may be absent. */
export type StoredNodeStatus = { readonly nodeName: string } & {
  readonly [field in Exclude<keyof NodeStatus, 'nodeName'>]?: NodeStatus[field] | null | undefined;
};

const EMPTY = {
  nodeUID: '',
  currentRevision: 0,
  targetRevision: 0,
  lastFailedRevision: 0,
  lastFailedTime: undefined,
  lastFailedReason: '',
  lastFailedCount: 0,
  lastFallbackCount: 0,
  lastFailedRevisionErrors: [],
} as const;

export function readNodeStatus(stored: StoredNodeStatus): NodeStatus {
  const present = Object.entries(stored).filter(([, value]) => value !== null && value !== undefined);
  return { ...EMPTY, ...(Object.fromEntries(present) as unknown as NodeStatus) };
}

/** Without what is 0 or empty, except for the current revision, which the API wants to see. */
export function storedNodeStatus(node: NodeStatus): StoredNodeStatus {
  const { nodeName, currentRevision, ...rest } = node;
  const present = Object.entries(rest).filter(
    ([, value]) =>
      !(value === 0 || value === '' || value === undefined || (Array.isArray(value) && value.length === 0)),
  );
  return { nodeName, currentRevision, ...Object.fromEntries(present) };
}

/** Whether the node is on its way to another revision (spec 30, 9.3.4a). */
export function isInTransition({ currentRevision, targetRevision }: NodeStatus): boolean {
  return targetRevision > currentRevision;
}

/** What runs on each node, and what is about to. */
export function runningRevisions(
  nodeStatuses: readonly StoredNodeStatus[] = [],
): { readonly nodeName: string; readonly revision: number }[] {
  return nodeStatuses
    .map(readNodeStatus)
    .flatMap(({ nodeName, currentRevision, targetRevision }) =>
      [...new Set([currentRevision, targetRevision])]
        .filter(revision => revision > 0)
        .map(revision => ({ nodeName, revision })),
    );
}
