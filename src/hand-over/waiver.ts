import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { floorToMs, parseRfc3339 } from '../kube/time.ts';
import { WAIVED } from './names.ts';

/** A waiver is for a node as it was: it ends when the node becomes ready, or stops being so; from then on it is counted again (HO-7). */
export function isWaived({ metadata, status }: Node): boolean {
  const since = parseRfc3339(metadata?.annotations?.[WAIVED] ?? '');
  if (since === undefined) return false;
  const ready = status?.conditions?.find(({ type }) => type === 'Ready');
  const changed = parseRfc3339(ready?.lastTransitionTime ?? '');
  return changed === undefined || floorToMs(changed) <= floorToMs(since);
}
