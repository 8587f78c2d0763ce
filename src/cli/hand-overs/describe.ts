import type { CertificateItem, HandOverItem, ReceiptItem } from '../../inventory/model.ts';
import { secondsText, shortDuration } from '../output/time.ts';
import { PHASE_RULES, whatEndsTheWait } from './words.ts';

/** One line, or a heading with lines below it. */
export type Entry = readonly [label: string, value: string | readonly string[] | undefined];

/** Whether a hand-over is that of this signer, the one in use or the next. */
export function isOfSigner({ metadata, operator }: HandOverItem, { metadata: signer, role }: CertificateItem): boolean {
  // etcd keeps the one in use under the same name, elsewhere.
  const isPlace = operator === 'etcd' || metadata.namespace === signer.namespace;
  const isNext = metadata.namespace === signer.namespace && signer.name === `${metadata.name}-next`;
  return isNext || (role === 'signer' && isPlace && signer.name === metadata.name);
}

function answerText({ verifier, kind, isLoaded, isWaived, evidence }: ReceiptItem, done: string): string {
  const state = isLoaded ? done : isWaived ? 'waived' : 'MISSING';
  return `${state}  ${verifier} (${kind}: ${evidence})`;
}

/** Everything about one hand-over, for people. */
export function handOverEntries(item: HandOverItem, now: Date): Entry[] {
  const { phase, since, because, begunBecause, receipts, presenters, receiptsFrom, asks, notCounted } = item;
  const when =
    since === undefined ? '' : ` since ${secondsText(since)} (${shortDuration(now.getTime() - Date.parse(since))})`;
  const { rule, goesOn } = PHASE_RULES[phase];
  return [
    ['Hand-over', `${phase}${when}: ${because}`],
    ['Begun because', begunBecause],
    ['Goes on when', `${goesOn} (${rule})`],
    ['Signs', item.current],
    ['Signs next', item.next],
    ['Still trusted', item.retiring],
    ['Leaves', item.leaves.map(({ name, isOfCurrent }) => `${name}${isOfCurrent ? '' : ' (of an older signer)'}`)],
    ['Verifiers', receipts.map(receipt => answerText(receipt, 'loaded'))],
    ['Presenters', presenters.map(receipt => answerText(receipt, 'shown'))],
    ['Said to', receiptsFrom && (receiptsFrom === 'operator' ? 'its operator' : 'this command, from here')],
    ['Left behind', item.leftBehind],
    ['The wait ends', whatEndsTheWait(item)],
    ['Asks', asks.map(({ process, nodes, how }) => `${process} on ${nodes} nodes: ${how}`)],
    ['Not counted', notCounted.map(({ process, why }) => `${process}: ${why}`)],
  ];
}
