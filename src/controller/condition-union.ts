import { minutes } from '../kube/duration.ts';
import type { Condition } from './condition.ts';

/** How long a condition must have been bad before it counts, in milliseconds. */
export type Inertia = (condition: Condition) => number;

const DEFAULT_INERTIA_MS = minutes(2);

/** Inertia by type: the first pattern that matches counts, else the default (spec 30, 20.7). */
export function inertiaOf(
  overrides: readonly { readonly match: RegExp; readonly ms: number }[] = [],
  defaultMs = DEFAULT_INERTIA_MS,
): Inertia {
  return ({ type }) => overrides.find(({ match }) => match.test(type))?.ms ?? defaultMs;
}

/**
 * One condition for all whose type ends with `type` (spec 30, 20.6). `good` is the status of a healthy cluster. With
 * inertia, what has only just gone bad shows in the message while the status is still good.
 */
export function unionOfConditions(
  type: string,
  good: 'True' | 'False',
  conditions: readonly Condition[],
  now: Date,
  inertia?: Inertia,
): Condition {
  const matching = conditions.filter(condition => condition.type.endsWith(type));
  if (matching.length === 0) return { type, status: 'Unknown', reason: 'NoData', message: '' };
  const bad = matching
    .filter(({ status }) => status !== good)
    .sort((a, b) => (a.type < b.type ? -1 : a.type > b.type ? 1 : 0));
  const isElder = (condition: Condition) =>
    inertia === undefined || transitionMs(condition) < now.getTime() - inertia(condition);
  if (!bad.some(isElder)) {
    return { type, status: good, reason: 'AsExpected', message: unionMessage(matching) || 'All is well' };
  }
  const opposite = good === 'True' ? 'False' : 'True';
  const status = bad.some(condition => condition.status === opposite) ? opposite : 'Unknown';
  return { type, status, reason: unionReason(type, bad), message: unionMessage(bad) };
}

/** When a bad condition that is still too young will count: the moment the union changes by itself. */
export function nextUnionChange(
  type: string,
  good: 'True' | 'False',
  conditions: readonly Condition[],
  now: Date,
  inertia: Inertia,
): Date | undefined {
  const times = conditions
    .filter(condition => condition.type.endsWith(type) && condition.status !== good)
    // Strictly older than the inertia, and times are whole seconds: one millisecond later it is.
    .map(condition => transitionMs(condition) + inertia(condition) + 1)
    .filter(time => time > now.getTime());
  return times.length === 0 ? undefined : new Date(Math.min(...times));
}

/** A condition that never said when it changed has been so for ever. */
function transitionMs({ lastTransitionTime }: Condition): number {
  const time = Date.parse(lastTransitionTime ?? '');
  return Number.isNaN(time) ? Number.NEGATIVE_INFINITY : time;
}

function unionMessage(conditions: readonly Condition[]): string {
  return conditions
    .filter(({ message }) => (message ?? '') !== '')
    .flatMap(({ type, message = '' }) => [...new Set(message.split('\n'))].map(line => `${type}: ${line}`))
    .join('\n');
}

function unionReason(type: string, conditions: readonly Condition[]): string {
  return conditions
    .map(condition => {
      const prefix = condition.type.slice(0, condition.type.length - type.length);
      return (condition.reason ?? '') === '' ? prefix : `${prefix}_${condition.reason}`;
    })
    .sort()
    .join('::');
}
