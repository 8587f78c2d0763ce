import type { Event, Node, Secret } from 'kubernetes-types/core/v1.d.ts';
import { annotationsOf, dataText, TLS_CERT } from '../../certrotation/secret.ts';
import {
  BECAUSE,
  PRESENTERS,
  RECEIPTS,
  SHOWN,
  SINCE,
  TAKEN_BACK,
  TOOK,
  TURNED_ROUND,
  WAIVED,
} from '../../hand-over/names.ts';
import { notedReceipts } from '../../hand-over/receipt.ts';
import { certificatesIn } from '../../inventory/relations.ts';

/** What happened, and in which words. */
interface News {
  readonly what: string;
  readonly text: string;
}

/** What a change of a Secret says about the hand-over of a signer (spec 90). */
export function signerNews(before: Secret | undefined, after: Secret | undefined): News[] {
  const [old, current] = [before, after].map(secret => (secret === undefined ? {} : annotationsOf(secret))) as [
    Record<string, string>,
    Record<string, string>,
  ];
  const name = nameOf(after ?? before);
  const news: News[] = [];
  const tell = (what: string, text: string) => news.push({ what, text });
  if (current[SINCE] !== undefined && old[SINCE] === undefined) {
    tell('HandOverBegan', `"${name}" is made known, and signs nothing yet: ${current[BECAUSE] ?? ''}`);
  }
  for (const [note, what] of [
    [RECEIPTS, 'has loaded'],
    [PRESENTERS, 'shows'],
  ] as const) {
    if (current[note] !== old[note]) news.push(...receiptNews(`${what} "${name}"`, old[note], current[note]));
  }
  if (before !== undefined && current[SHOWN] !== undefined && current[SHOWN] !== old[SHOWN]) {
    tell('HandOverShown', `everybody shows what "${name}" has signed`);
  }
  if (current[TAKEN_BACK] !== undefined && old[TAKEN_BACK] === undefined) {
    tell('HandOverTakenBack', `somebody took "${name}" back`);
  }
  if (old[SINCE] !== undefined && after === undefined) {
    const why = old[TAKEN_BACK] === undefined ? 'it signs, or is not wanted any more' : 'it was taken back';
    tell('HandOverEnded', `"${name}" waits no longer: ${why}`);
  }
  if (before !== undefined && current[TOOK] !== undefined && nameOf(before) !== name) {
    tell('SignerInUseChanged', `"${name}" signs from now on; its hand-over took ${current[TOOK]}`);
  }
  if (current[TURNED_ROUND] !== undefined && old[TURNED_ROUND] === undefined) {
    tell('HandOverTurnedRound', `somebody wants the signer before "${name}" back`);
  }
  return news;
}

/** Who has loaded or shows it since, and who is waited for. */
function receiptNews(does: string, before: string | undefined, after: string | undefined): News[] {
  const receipts = notedReceipts(after);
  if (receipts === undefined) return [];
  const had = new Set((notedReceipts(before) ?? []).flatMap(({ verifier, isLoaded }) => (isLoaded ? [verifier] : [])));
  const loaded = receipts.filter(({ verifier, isLoaded }) => isLoaded && !had.has(verifier));
  const missing = receipts.filter(({ isLoaded, isWaived }) => !isLoaded && !isWaived).map(({ verifier }) => verifier);
  const who = loaded.map(({ verifier, evidence }) => `${verifier} ${does} (${evidence})`);
  const waits = missing.length === 0 ? 'nobody is waited for' : `waiting for ${missing.join(', ')}`;
  return [{ what: 'HandOverReceipt', text: [...who, waits].join('; ') }];
}

/** Whether hand-overs wait for a node. */
export function waiverNews(before: Node, after: Node): News[] {
  const [old, current] = [annotationsOf(before)[WAIVED], annotationsOf(after)[WAIVED]];
  if (old === current) return [];
  return current === undefined
    ? [{ what: 'HandOverWaiverRemoved', text: 'hand-overs wait for it again' }]
    : [{ what: 'HandOverWaived', text: 'hand-overs do not wait for it' }];
}

/** The reason of the Event that says whom a hand-over has left behind: nothing else does. */
export const LEFT_BEHIND = 'HandOverLeavesBehind';

export function leftBehindNews(event: Event | undefined): News[] {
  return event?.reason === LEFT_BEHIND ? [{ what: LEFT_BEHIND, text: event.message ?? '' }] : [];
}

function nameOf(secret: Secret | undefined): string {
  const [certificate] = secret === undefined ? [] : certificatesIn(dataText(secret, TLS_CERT));
  return certificate?.subject.commonName ?? secret?.metadata?.name ?? '';
}
