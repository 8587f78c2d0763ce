import { addMs, floorToMs, formatGoTime, type Instant, instantOf, isAfter, parseRfc3339 } from '../kube/time.ts';
import { type Annotations, NOT_AFTER, NOT_BEFORE } from './annotations.ts';

/** What to do with an object at one moment, and which rule of spec 10 says so. */
export type Decision = Keep | Regenerate | Fail;

/** The object is good. The answer is a different one from `until` on, by `nextRule`, unless something changes first. */
export interface Keep {
  readonly action: 'keep';
  readonly until: Date;
  readonly nextRule: string;
  readonly nextReason: string;
}

export interface Regenerate {
  readonly action: 'regenerate';
  readonly rule: string;
  readonly reason: string;
}

/** Neither keeping nor replacing is right: a person has to look. */
export interface Fail {
  readonly action: 'fail';
  readonly rule: string;
  readonly error: string;
}

/** The two time annotations of a signer or target. */
export interface Validity {
  readonly notBefore: Instant;
  readonly notAfter: Instant;
}

/** A moment after which an object is due, and the reason then given. */
export interface Deadline {
  readonly rule: string;
  readonly at: Instant;
  readonly reason: string;
}

/** Longest piece of a foreign text that is repeated in a reason. */
const LONGEST_QUOTE = 4096;

export function regenerate(rule: string, reason: string): Regenerate {
  return { action: 'regenerate', rule, reason };
}

/** Reads the time annotations, or says why they force a regeneration (spec 10, D-0 to D-4). */
export function readValidity(annotations: Annotations | undefined): Validity | Regenerate {
  if (annotations === undefined) return regenerate('D-0', "secret doesn't exist");
  const notAfterText = annotations[NOT_AFTER];
  if (!notAfterText) return regenerate('D-1', 'missing notAfter');
  const notAfter = parseRfc3339(notAfterText);
  if (notAfter === undefined) return regenerate('D-2', `bad expiry: ${quote(notAfterText)}`);
  const notBeforeText = annotations[NOT_BEFORE];
  if (!notBeforeText) return regenerate('D-3', 'missing notBefore');
  const notBefore = parseRfc3339(notBeforeText);
  if (notBefore === undefined) return regenerate('D-4', `bad expiry: ${quote(notBeforeText)}`);
  return { notBefore, notAfter };
}

/** Whether it is the time annotations, missing or unreadable, that ask for a new certificate (D-1 to D-4). */
export function isRequest(decision: Decision): decision is Regenerate {
  return decision.action === 'regenerate' && /^D-[1-4]$/.test(decision.rule);
}

export function expiry(rule: string, { notAfter }: Validity): Deadline {
  return { rule, at: notAfter, reason: 'already expired' };
}

/** 80 % of the validity, exact to the nanosecond. */
export function latestPossibleTime(rule: string, { notBefore, notAfter }: Validity): Deadline {
  const fifth = (notAfter.nanos - notBefore.nanos) / 5n;
  const at = { ...notAfter, nanos: notAfter.nanos - fifth };
  return { rule, at, reason: `past its latest possible time ${formatGoTime(at)}` };
}

/** The refresh time; `notEarlierThan` holds it back without changing what the reason says. */
export function refreshTime(rule: string, validity: Validity, refreshMs: number, notEarlierThan?: Instant): Deadline {
  const refresh = addMs(validity.notBefore, refreshMs);
  const at = notEarlierThan !== undefined && isAfter(notEarlierThan, refresh) ? notEarlierThan : refresh;
  return { rule, at, reason: `past its refresh time ${formatGoTime(refresh)}` };
}

/** Regenerates by the first deadline that has passed (strictly), else keeps until the earliest one. */
export function decideByDeadlines(deadlines: readonly [Deadline, ...Deadline[]], now: Date): Keep | Regenerate {
  const passed = deadlines.find(({ at }) => isAfter(instantOf(now), at));
  if (passed !== undefined) return regenerate(passed.rule, passed.reason);
  const next = deadlines.reduce((earliest, other) => (isAfter(earliest.at, other.at) ? other : earliest));
  // Rules fire strictly after their moment, so the answer changes one millisecond later.
  const until = new Date(floorToMs(next.at).getTime() + 1);
  return { action: 'keep', until, nextRule: next.rule, nextReason: next.reason };
}

/** Quotes a text found in an object; a very long one is cut, because it ends up in events and conditions. */
export function quote(text: string): string {
  if (text.length <= LONGEST_QUOTE) return JSON.stringify(text);
  return `${JSON.stringify(text.slice(0, LONGEST_QUOTE))} (cut from ${text.length} characters)`;
}
