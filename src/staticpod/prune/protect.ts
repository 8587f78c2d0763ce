import type { NodeStatus } from '../node-status.ts';

export interface PruneLimits {
  /** How many revisions are kept up to one that failed; -1 = all, 0 = the default. */
  readonly failed: number;
  /** How many are kept up to one that runs. */
  readonly succeeded: number;
}

const DEFAULT_LIMIT = 5;
const UNLIMITED = -1;

/**
 * The revisions to keep, in ascending order, out of those up to the published one. Undefined: nothing is to be pruned
 * (spec 30, 14.1).
 */
export function protectedRevisions(
  nodes: readonly NodeStatus[],
  published: number,
  { failed, succeeded }: PruneLimits,
): number[] | undefined {
  if (nodes.length === 0) return undefined;
  const limits = { failed: failed || DEFAULT_LIMIT, succeeded: succeeded || DEFAULT_LIMIT };
  const largest =
    isUnlimited(limits.failed) || isUnlimited(limits.succeeded) ? UNLIMITED : Math.max(limits.failed, limits.succeeded);
  const oldest = Math.min(...nodes.map(({ currentRevision }) => currentRevision));
  const isLagging = oldest < published;
  if (isUnlimited(limits.succeeded) || (isLagging && isUnlimited(limits.failed))) return undefined;

  const kept = new Set<number>();
  const keep = (anchor: number, count: number) => {
    const first = isUnlimited(count) ? 1 : Math.max(1, anchor - count + 1);
    for (let revision = first; revision <= anchor; revision++) kept.add(revision);
  };
  if (isLagging) keep(published, largest);
  for (const { currentRevision, targetRevision, lastFailedRevision } of nodes) {
    keep(currentRevision, limits.succeeded);
    keep(targetRevision, largest);
    keep(lastFailedRevision, limits.failed);
  }
  const everything = Array.from({ length: published }, (_, index) => index + 1);
  if (everything.every(revision => kept.has(revision))) return undefined;
  return [...kept].sort((a, b) => a - b);
}

/** Any negative limit means all of them, up to where it is counted from (spec 30, T13). */
function isUnlimited(limit: number): boolean {
  return limit < 0;
}
