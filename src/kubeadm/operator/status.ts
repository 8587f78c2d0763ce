import type { Receipt } from '../../hand-over/receipt.ts';
import type { SignerName } from '../chains.ts';
import type { ClusterStatus, FamilyStatus, RoundStatus, Waiting } from '../cluster-record.ts';
import type { AccountPlan } from './account-hand-over.ts';
import { sinceOf } from './carry-out.ts';
import { isInRound, type NodeSight } from './cluster.ts';
import { nextDue } from './due.ts';
import type { FamilyState } from './families.ts';
import type { FamilyPlan } from './hand-over.ts';

export interface StatusQuestion {
  readonly before: ClusterStatus | undefined;
  readonly now: Date;
  readonly adopted: boolean;
  readonly differences?: readonly string[] | undefined;
  /** What is waited for before anything can be looked after. */
  readonly waitsFor?: string | undefined;
  readonly waiting?: readonly Omit<Waiting, 'since'>[] | undefined;
  readonly plans?: ReadonlyMap<SignerName, FamilyPlan> | undefined;
  readonly families?: readonly FamilyState[] | undefined;
  readonly nodes?: readonly NodeSight[] | undefined;
  readonly refresh?: number | undefined;
  /** Of the keys of service accounts; absent: nobody asked for other ones. */
  readonly account?: AccountSight | undefined;
  /** A round that is asked for now. */
  readonly round?: RoundStatus | undefined;
}

export interface AccountSight extends Pick<AccountPlan, 'phase' | 'because' | 'waitingFor' | 'againAt'> {
  readonly since: string | undefined;
}

/** What the operator says of itself: of what goes on as before, since when it does. */
export function statusFrom(question: StatusQuestion): ClusterStatus {
  const { before, now, adopted, differences = [], nodes = [] } = question;
  const serviceAccount = accountOf(question);
  const round = question.round ?? roundOf(before, nodes);
  const waitingFor = waitingSince([...(question.waiting ?? []), ...verifiersWaitedFor(question)], before, now);
  const families = familiesOf(question);
  return {
    adopted,
    differences,
    message: messageOf(question, round, waitingFor, { ...families, ...(serviceAccount && { sa: serviceAccount }) }),
    ...(round !== undefined && { round }),
    waitingFor,
    families,
    ...(serviceAccount !== undefined && { serviceAccount }),
  };
}

/** The same with since when each of them is waited for. */
export function waitingSince(
  waiting: readonly Omit<Waiting, 'since'>[],
  before: ClusterStatus | undefined,
  now: Date,
): readonly Waiting[] {
  return waiting.map(({ who, why }) => ({
    who,
    why,
    since: before?.waitingFor.find(known => known.who === who)?.since ?? now.toISOString(),
  }));
}

/** A round goes on until its node is done. */
function roundOf(before: ClusterStatus | undefined, nodes: readonly NodeSight[]): RoundStatus | undefined {
  const round = before?.round;
  const node = round && nodes.find(({ name }) => name === round.node);
  return node !== undefined && isInRound(node) && node.wanted?.round === round?.round ? round : undefined;
}

function verifiersWaitedFor({ plans, account, waiting = [] }: StatusQuestion): readonly Omit<Waiting, 'since'>[] {
  const known = new Set(waiting.map(({ who }) => who));
  const receipts = [...(plans ?? [])].flatMap(([, { decision }]) => decision.waitingFor);
  return [...receipts, ...(account?.waitingFor ?? [])].flatMap(({ verifier, evidence }) =>
    known.has(verifier) ? [] : [{ who: verifier, why: evidence }],
  );
}

function familiesOf({ plans, families = [], before, now }: StatusQuestion): ClusterStatus['families'] {
  return Object.fromEntries(
    families.flatMap(({ name, objects }): [SignerName, FamilyStatus][] => {
      const plan = plans?.get(name);
      if (plan === undefined) return [];
      const { phase, because, decision } = plan;
      const noted = sinceOf(objects.next)?.toISOString();
      const since = sinceWhen(phase, noted, before?.families[name], now);
      return [[name, { phase, because, ...since, ...namesOf(decision.waitingFor) }]];
    }),
  );
}

function namesOf(receipts: readonly Receipt[]): Pick<FamilyStatus, 'waitingFor'> {
  return receipts.length === 0 ? {} : { waitingFor: receipts.map(({ verifier }) => verifier) };
}

/** Since the next one is known; where there is none, since the phase is what it is. */
function sinceWhen(
  phase: string,
  noted: string | undefined,
  before: FamilyStatus | undefined,
  now: Date,
): Pick<FamilyStatus, 'since'> {
  if (noted !== undefined) return { since: noted };
  if (phase === 'Steady') return {};
  return { since: (before?.phase === phase ? before.since : undefined) ?? now.toISOString() };
}

function accountOf({ account, before, now }: StatusQuestion): FamilyStatus | undefined {
  if (account === undefined) return undefined;
  const { phase, because, since, waitingFor, againAt } = account;
  // In this phase nothing else is a matter of time.
  const leavesAt = phase === 'Retiring' ? againAt?.toISOString() : undefined;
  return {
    phase,
    because,
    ...sinceWhen(phase, since, before?.serviceAccount, now),
    ...namesOf(waitingFor),
    ...(leavesAt !== undefined && { leavesAt }),
  };
}

function messageOf(
  { adopted, differences = [], waitsFor, nodes = [], families: states = [], refresh = 1, now }: StatusQuestion,
  round: RoundStatus | undefined,
  waitingFor: readonly Waiting[],
  families: Readonly<Record<string, FamilyStatus>>,
): string {
  if (!adopted && differences.length > 0) return `nothing is changed: ${differences[0]}`;
  if (waitsFor !== undefined) return `waiting: ${waitsFor}`;
  if (round !== undefined) return `node/${round.node} is at work: ${round.because}`;
  const [first] = waitingFor;
  if (first !== undefined) return `waiting for ${first.who}: ${first.why}`;
  const moving = Object.entries(families).find(([, { phase }]) => phase !== 'Steady' && phase !== 'Retiring');
  if (moving !== undefined) return `${moving[0]} is handed over (${moving[1].phase}): ${moving[1].because}`;
  if (differences[0] !== undefined) return differences[0];
  if (!adopted) return 'the nodes have not been compared yet';
  const sights = states.map(({ name, current, question }) => ({
    name,
    current,
    trusted: question.bundle,
    leaves: 'follow' as const,
  }));
  const times = nodes.flatMap(node => nextDue(node, { families: sights, refresh }) ?? []);
  const next = times.length === 0 ? undefined : new Date(Math.min(...times.map(time => time.getTime())));
  if (next === undefined) return 'everything that agents report is as it has to be';
  const when = next <= now ? 'now' : `at ${next.toISOString()}`;
  return `everything that agents report is as it has to be; the next leaf is due ${when}`;
}
