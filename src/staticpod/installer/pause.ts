import { minutes, seconds } from '../../kube/duration.ts';
import type { NodeStatus } from '../node-status.ts';
import { type Operand, timeOf } from './operand.ts';

const INSTALLER_BACKOFF = { firstMs: seconds(10), factor: 1.5, longestMs: minutes(10) };
const FALLBACK_BACKOFF = { firstMs: minutes(10), factor: 2, longestMs: minutes(120) };

/** The pause after so many failed installers of one revision (spec 30, 9.6.2). */
export function installerBackoffMs(failures: number): number {
  return backoffMs(INSTALLER_BACKOFF, failures);
}

/** The pause after so many fallbacks from one revision. */
export function fallbackBackoffMs(fallbacks: number): number {
  return backoffMs(FALLBACK_BACKOFF, fallbacks);
}

function backoffMs({ firstMs, factor, longestMs }: typeof INSTALLER_BACKOFF, count: number): number {
  return Math.min(longestMs, firstMs * factor ** count);
}

/**
 * When the revision a node has failed at may be tried again: not before that time has passed. Undefined: there is nothing
 * to wait for.
 */
export function retryAfter(node: NodeStatus): Date | undefined {
  const failed = timeOf(node.lastFailedTime);
  if (node.lastFailedRevision !== node.targetRevision || failed === undefined) return undefined;
  const pauseMs =
    node.lastFailedReason === 'OperandFailedFallback'
      ? fallbackBackoffMs(node.lastFallbackCount)
      : installerBackoffMs(node.lastFailedCount);
  return new Date(failed.getTime() + pauseMs);
}

/** No operand is taken to have been ready for longer. */
const LONGEST_READY_MS = seconds(600);

/** How long to wait until every operand that is ready has been so for long enough (spec 30, 9.5). */
export function minReadyWaitMs(operands: readonly (Operand | undefined)[], minReadyMs: number, now: Date): number {
  if (minReadyMs === 0) return 0;
  const times = operands.map(operand => operand?.readySince).filter(since => since !== undefined);
  const shortestMs = Math.min(LONGEST_READY_MS, ...times.map(since => now.getTime() - since.getTime()));
  return shortestMs > minReadyMs ? 0 : minReadyMs - shortestMs;
}
