import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { hours, minutes } from '../../kube/duration.ts';
import { DESIRED_DRAIN, LAST_APPLIED_DRAIN } from '../../machine-config-api/names.ts';

/** What a node's agent asks for (spec 50, 9.1). */
export type DrainRequest =
  /** What was asked for is done. */
  | { readonly verb: 'nothing' }
  | { readonly verb: 'drain' | 'uncordon'; readonly request: string }
  | { readonly verb: 'unknown'; readonly error: string };

/** Reads the agent's request: `<verb>-<config>`, done when it equals what was applied last (spec 50, DR-1). */
export function drainRequest({ metadata }: Node): DrainRequest {
  const { [DESIRED_DRAIN]: desired = '', [LAST_APPLIED_DRAIN]: applied = '' } = metadata?.annotations ?? {};
  if (desired === applied) return { verb: 'nothing' };
  const [verb = ''] = desired.split('-');
  if (verb === 'drain' || verb === 'uncordon') return { verb, request: desired };
  return { verb: 'unknown', error: `node ${metadata?.name ?? ''}: non-recognized drain verb detected ${verb}` };
}

/** Whether a change of a node is a request: it is new, or what it asks for changed (spec 50, DR-2). */
export function isDrainEvent(before: Node | undefined, after: Node): boolean {
  if (before === undefined) return true;
  return before.metadata?.annotations?.[DESIRED_DRAIN] !== after.metadata?.annotations?.[DESIRED_DRAIN];
}

const RETRY_MS = minutes(1);
const SLOW_RETRY_MS = minutes(5);
const SLOW_AFTER_MS = minutes(10);
const ALARM_AFTER_MS = hours(1);

/** How long to wait after an attempt that failed (spec 50, 9.3). */
export function retryAfterMs(lastedMs: number): number {
  return lastedMs > SLOW_AFTER_MS ? SLOW_RETRY_MS : RETRY_MS;
}

/** Whether a drain has lasted so long that somebody should look: `mcc_drain_err` (spec 50, 9.3). */
export function isDrainOverdue(lastedMs: number): boolean {
  return lastedMs > ALARM_AFTER_MS;
}
