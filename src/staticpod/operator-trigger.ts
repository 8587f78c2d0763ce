import { isDeepStrictEqual } from 'node:util';
import { ONLY_KEY } from '../controller/reconcile.ts';
import { onTransition, type Source, type Trigger } from '../controller/trigger.ts';
import type { StaticPodOperatorResource } from './operator.ts';

/**
 * Asks for a pass when the operator resource changes in anything but its conditions: nobody decides by those, each of them is written
 * by one controller for people, and two dozen controllers would look again for every word of them.
 */
export function onSteering(source: Source<StaticPodOperatorResource>): Trigger {
  // All controllers of an operator hear of the same change, one after the other.
  let last: { readonly before: object; readonly after: object; readonly isSame: boolean } | undefined;
  return onTransition(source, (before, after) => {
    if (before === undefined || after === undefined) return [ONLY_KEY];
    if (last?.before !== before || last.after !== after) {
      last = { before, after, isSame: isDeepStrictEqual(steering(before), steering(after)) };
    }
    return last.isSame ? [] : [ONLY_KEY];
  });
}

function steering({ metadata, spec, status }: StaticPodOperatorResource): unknown[] {
  const { conditions: _conditions, ...rest } = status ?? {};
  const { uid, generation, labels, annotations, deletionTimestamp } = metadata ?? {};
  return [uid, generation, labels, annotations, deletionTimestamp, spec, rest];
}
