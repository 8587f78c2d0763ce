import type { NodeStatus } from '../node-status.ts';

export interface PruneLimits {
  /** How many revisions are kept up to one that failed; -1 = all, 0 = the default. */
  readonly failed: number;
  /** How many are kept up to one that runs. */
  readonly succeeded: number;
}

const DEFAULT_LIMIT = 5;
const UNLIMITED = -1;
/** The pruner is told them one by one, in an argument of at most 128 KiB; where there are more, nothing is pruned. */
const MOST_PROTECTED = 10_000;

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

  const windows: Range[] = [];
  const keep = (anchor: number, count: number) => {
    const first = isUnlimited(count) ? 1 : Math.max(1, anchor - count + 1);
    if (first <= anchor) windows.push({ first, last: anchor });
  };
  if (isLagging) keep(published, largest);
  for (const { currentRevision, targetRevision, lastFailedRevision } of nodes) {
    keep(currentRevision, limits.succeeded);
    keep(targetRevision, largest);
    keep(lastFailedRevision, limits.failed);
  }
  const kept = joined(windows);
  const [start] = kept;
  const isEverything = published <= 0 || (start?.first === 1 && start.last >= published);
  const count = kept.reduce((sum, { first, last }) => sum + last - first + 1, 0);
  return isEverything || count > MOST_PROTECTED ? undefined : kept.flatMap(numbersOf);
}

interface Range {
  readonly first: number;
  readonly last: number;
}

/** The ranges in ascending order, those that overlap or touch as one. */
function joined(ranges: readonly Range[]): Range[] {
  const result: Range[] = [];
  for (const range of [...ranges].sort((a, b) => a.first - b.first)) {
    const before = result.at(-1);
    if (before === undefined || range.first > before.last + 1) result.push(range);
    else result[result.length - 1] = { first: before.first, last: Math.max(before.last, range.last) };
  }
  return result;
}

function numbersOf({ first, last }: Range): number[] {
  return Array.from({ length: last - first + 1 }, (_, index) => first + index);
}

/** Any negative limit means all of them, up to where it is counted from (spec 30, T13). */
function isUnlimited(limit: number): boolean {
  return limit < 0;
}
