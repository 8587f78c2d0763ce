import type { Secret } from 'kubernetes-types/core/v1.d.ts';
import type { HandOverItem } from '../../inventory/model.ts';
import { secondsText } from '../output/time.ts';
import type { Outcome } from './outcome.ts';
import { refOf } from './platform.ts';

/** The hand-over of the signer in this Secret; undefined: it is none that we know. */
export function handOverOf({ metadata }: Secret, handOvers: readonly HandOverItem[]): HandOverItem | undefined {
  return handOvers.find(
    ({ metadata: { namespace, name } }) => namespace === metadata?.namespace && name === metadata?.name,
  );
}

/** A second request would not start a second one (spec 90, HO-5). */
export function isBegun({ phase }: HandOverItem): boolean {
  return phase === 'Distributing';
}

/** The answer to a request in the middle: where it stands. */
export function alreadyBegun(secret: Secret, { since, because, next }: HandOverItem): Outcome {
  const when = since === undefined ? '' : ` since ${secondsText(since)}`;
  const text =
    next === undefined
      ? `is about to be handed over already: ${because}`
      : `is being handed over already: Distributing "${next}"${when}, ${because}`;
  return { object: refOf(secret), outcome: 'unchanged', isNoted: true, text };
}

/** What a request starts, and who has a say in it. */
export function whatBegins({ leaves, asks, notCounted, isByReceipts, operator }: HandOverItem): string[] {
  const lines = [
    leaves.some(({ isOfCurrent }) => !isOfCurrent)
      ? 'its leaves are still following the last one (Signing): the hand-over begins after them'
      : 'a hand-over begins (Distributing): the new one is made known, and signs nothing yet',
    asks.length === 0
      ? 'nobody who verifies can be asked: it signs at once'
      : `it signs when these have loaded it: ${[...new Set(asks.map(({ process, nodes }) => `${process} on ${nodes} nodes`))].join('; ')}`,
    ...(notCounted.length === 0
      ? []
      : [`not waited for: ${notCounted.map(({ process, why }) => `${process} (${why})`).join('; ')}`]),
  ];
  if (operator === 'machine-config-server')
    return [...lines, 'rotunda regenerate-machine-config-server-serving-cert carries it out'];
  if (isByReceipts) return lines;
  return [
    'its operator does not say that it hands over by receipts: it may let the new one sign by the clock,',
    'after a tenth of the refresh time of its leaves, whoever has loaded it',
  ];
}
