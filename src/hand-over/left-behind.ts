import type { EventRecorder } from '../kube/events.ts';
import type { Receipt } from './receipt.ts';

/** Says whom a change leaves behind because waiting longer would have harmed everybody, and what brings them back (HO-7). */
export function tellLeftBehind(
  events: Pick<EventRecorder, 'event'>,
  { namespace, name }: { readonly namespace: string; readonly name: string },
  leftBehind: readonly Receipt[],
): void {
  if (leftBehind.length === 0) return;
  const who = leftBehind.map(({ verifier, evidence }) => `${verifier} (${evidence})`).join(', ');
  const message = `"${name}" in "${namespace}" changes without ${who}; they accept it again once they have loaded its CA`;
  events.event('Warning', 'HandOverLeavesBehind', message);
}
