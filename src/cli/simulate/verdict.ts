import { byConnection, type ConnectionRefusal } from '../../forecast/by-connection.ts';
import type { Refused } from '../../forecast/connections.ts';
import type { EndMeanwhile } from '../../forecast/ends-meanwhile.ts';
import type { Hibernation } from '../../forecast/hibernation.ts';
import type { Refusal } from '../../forecast/rehearse.ts';
import type { Standstill } from '../../forecast/simulate.ts';
import { days } from '../../kube/duration.ts';
import { secondsText, spanText } from '../output/time.ts';

/** The answer to a question about the future: a sentence for people, and what it says for machines. */
export interface Verdict {
  /** Absent: nothing could be checked. */
  readonly isSafe?: boolean | undefined;
  readonly answer: string;
  readonly firstToFail?: Refusal | undefined;
  /** How long operators may stand still from the beginning on, in seconds. */
  readonly standstillSeconds?: number | undefined;
  readonly lastSafeWakeUp?: string | undefined;
  /** What somebody has to do at the wake-up of the question. */
  readonly needsHand?: readonly string[] | undefined;
}

export interface Span {
  readonly from: Date;
  readonly to: Date;
}

const NOTHING = 'nothing can be said: no connection can be checked with what is here';

/** Whether what is going to happen is safe. `forced`: what is as if regenerated now. */
export function verdictOnRotation(
  refusals: readonly ConnectionRefusal[],
  { checked, span, forced }: { readonly checked: number; readonly span: Span; readonly forced: readonly string[] },
): Verdict {
  if (checked === 0) return { answer: NOTHING };
  const given = forced.length === 0 ? '' : `, with ${forced.join(' and ')} regenerated now`;
  const [first] = refusals;
  if (first === undefined) {
    const answer = `safe: nobody refuses anybody from ${secondsText(span.from)} to ${secondsText(span.to)}${given}`;
    return { isSafe: true, answer };
  }
  const until = first.until === undefined ? 'and goes on' : `until ${secondsText(first.until)}`;
  const others = refusals.length === 1 ? '' : `; ${refusals.length - 1} more below`;
  const answer = `not safe${given}: from ${secondsText(first.since)} ${until}, ${refusalText(first)}${others}`;
  return { isSafe: false, answer, firstToFail: first };
}

/** For how long nobody need rotate anything. `first`: who fails in a cluster in which nobody does. */
export function verdictOnStandstill(
  first: Refusal | undefined,
  {
    checked,
    span,
    stopped,
    fails,
  }: { readonly checked: number; readonly span: Span; readonly stopped: Standstill; readonly fails: boolean },
): Verdict {
  if (checked === 0) return { answer: NOTHING };
  if (first === undefined) {
    const answer = `safe: operators may stand still until ${secondsText(span.to)} and longer: nobody refuses anybody till then`;
    return { isSafe: true, answer };
  }
  const lastsMs = Date.parse(first.since) - span.from.getTime();
  const isSafe = !fails && stopped.until.getTime() < Date.parse(first.since);
  const how =
    lastsMs <= 0
      ? 'somebody is refused already'
      : `operators may stand still for ${spanText(lastsMs)} from ${secondsText(span.from)} on, until ${secondsText(first.since)}`;
  return {
    isSafe,
    answer: `${isSafe ? 'safe' : 'not safe'}: ${how}; first to fail: ${refusalText(first)}`,
    firstToFail: first,
    standstillSeconds: Math.max(0, Math.floor(lastsMs / 1000)),
  };
}

/** Whether a cluster that is switched off for a while comes back, and what it needs then. */
export function verdictOnHibernation(
  { isSafe, lastSafeWakeUp, firstToFail, atWakeUp, stuck, rehearsal }: Hibernation,
  {
    off,
    ends,
    kubelets,
  }: { readonly off: Standstill; readonly ends: readonly EndMeanwhile[]; readonly kubelets?: string | undefined },
): Verdict {
  const isChecked = rehearsal.checked > 0;
  if (!isChecked && ends.length === 0) return { answer: NOTHING };
  const ended = ends.filter(({ at }) => at <= off.until.toISOString());
  const needsHand = [
    ...handsFor(atWakeUp, stuck),
    ...(kubelets === undefined ? [] : [kubelets]),
    ...ended.map(endText),
  ];
  // Certificates outside of the objects decide where they are all there is, as in a control plane that kubeadm made.
  const isWell = isChecked ? isSafe : ended.length === 0;
  const last = isChecked ? lastSafeWakeUp : ends[0]?.at;
  const failing = firstToFail === undefined ? ends[0] && endText(ends[0]) : refusalText(firstToFail);
  const what = `off from ${secondsText(off.from)} to ${secondsText(off.until)}`;
  const limit = last === undefined ? '' : `the last safe wake-up ${wakeUpText(last, off)}`;
  const answer = isWell
    ? `safe: ${what}: nobody refuses anybody at the wake-up${limit && `; ${limit}`}`
    : `not safe: ${what}: ${limit === '' ? `no wake-up is safe:` : `${limit}; after it`} ${failing}`;
  return { isSafe: isWell, answer, firstToFail, lastSafeWakeUp: last, needsHand };
}

function handsFor(atWakeUp: readonly Refusal[], stuck: readonly Refusal[]): string[] {
  const [lost] = byConnection(stuck);
  if (lost !== undefined)
    return [
      `everything, since nobody can renew anything by himself: ${refusalText(lost)}; docs/operations.md, Disasters`,
    ];
  return byConnection(atWakeUp.filter(({ until }) => until === undefined)).map(
    refusal => `${refusalText(refusal)}: it does not end by itself`,
  );
}

function endText({ at, name, hand, atItsEnd }: EndMeanwhile): string {
  return `${name} ends at ${secondsText(at)}${atItsEnd === undefined ? '' : ` (${atItsEnd})`}: ${hand}`;
}

/** Who refuses whom and why, in one breath. */
function refusalText({ connection, refuser, refused, reason }: Refused): string {
  return `${refuser} refuses ${refused} (${connection}: ${(reason.split('\n', 1)[0] ?? '').split(', now is', 1)[0]})`;
}

/** Long times off are asked for in days: the last one that is safe from its beginning to its end. */
function wakeUpText(last: string, { from }: Standstill): string {
  const lastDayMs = Math.floor(Date.parse(last) / days(1)) * days(1) - days(1);
  if (lastDayMs < from.getTime()) return `is at ${secondsText(last)}`;
  return `day is ${new Date(lastDayMs).toISOString().slice(0, 10)} (all is well until ${secondsText(last)})`;
}
