import type { Condition } from '../controller/condition.ts';
import type { Clock } from '../kube/clock.ts';
import { hours } from '../kube/duration.ts';
import type { EventRecorder } from '../kube/events.ts';
import { formatRfc3339 } from '../kube/time.ts';
import type { FamilyDecision, Phase } from './decide.ts';
import type { Receipt, Receipts } from './receipt.ts';

/**
 * On the operator's resource: whether a signer is being handed over, and for whom that waits. Its name ends in nothing that a
 * ClusterOperator sums up: a cluster whose node is off for a week makes no progress, and nothing in it is degraded.
 */
export const HAND_OVER_CONDITION = 'HandOverUnderWay';

/** Where one signer stands, as its last pass decided. */
export interface Standing {
  readonly signer: string;
  readonly phase: Phase;
  /** Since when somebody is waited for; undefined: nobody is. */
  readonly waitingSince: Date | undefined;
  readonly waitingFor: readonly string[];
  /** They are waited for because of what they show: those who verify have loaded everything. */
  readonly isForPresenters: boolean;
  readonly leftBehind: readonly string[];
  /** What verifiers said last, while anybody had to be asked. */
  readonly receipts: readonly Receipt[];
}

interface Remembered extends Standing {
  /** Begun in front of our eyes, and not told yet. */
  readonly isNew: boolean;
  /** Since when it waits for the same ones. */
  readonly unchangedSince: Date;
  readonly isTold: boolean;
}

/** After this time with the same ones missing, somebody should look (spec 90, HO-7). */
const STUCK_MS = hours(1);
/** More names than this are counted, not listed. */
const MOST_NAMES = 20;

/** What the passes over signers decided, for people: the condition, the events and the metrics come from here. */
export class HandOverReport {
  readonly #clock: Clock;
  readonly #events: EventRecorder;
  readonly #signers: ReadonlySet<string>;
  readonly #standings = new Map<string, Remembered>();
  readonly #heard = new Map<string, readonly Receipt[]>();
  /** Called when the condition may have changed. */
  onChange: () => void = () => {};

  constructor(
    signers: readonly string[],
    { clock, events }: { readonly clock: Clock; readonly events: EventRecorder },
  ) {
    this.#signers = new Set(signers);
    this.#clock = clock;
    this.#events = events;
  }

  /** The same receipts, and what they say is remembered. */
  listening(receipts: Receipts): Receipts {
    return {
      of: async (signer, ca) => {
        const found = await receipts.of(signer, ca);
        this.#heard.set(signer.name, found);
        return found;
      },
      shown: (signer, family) => receipts.shown(signer, family),
    };
  }

  decided(
    { signer: { name } }: { readonly signer: { readonly name: string } },
    decision: FamilyDecision,
    since: Date | undefined,
  ): void {
    const now = this.#clock.now();
    const before = this.#standings.get(name);
    const { phase, write } = decision;
    const waitingFor = decision.waitingFor.map(({ verifier }) => verifier);
    const isAsked = phase === 'Distributing' || phase === 'Signing';
    if (!isAsked) this.#heard.delete(name);
    const isBegun = before !== undefined && before.phase !== 'Distributing' && phase === 'Distributing';
    const isSame = before !== undefined && before.waitingFor.join() === waitingFor.join();
    const standing: Remembered = {
      signer: name,
      phase,
      waitingFor,
      waitingSince: waitingFor.length === 0 ? undefined : (since ?? before?.waitingSince ?? now),
      isForPresenters: waitingFor.length > 0 && phase === 'Signing' && decision.leaves === 'follow',
      leftBehind: decision.leftBehind.map(({ verifier }) => verifier),
      receipts: this.#heard.get(name) ?? [],
      isNew: write === 'begin' || isBegun || (before?.isNew ?? false),
      unchangedSince: isSame ? before.unchangedSince : now,
      isTold: isSame && before.isTold,
    };
    this.#standings.set(name, this.#tell(standing, decision, now));
    if (before === undefined || !isSame || before.phase !== phase) this.onChange();
  }

  standings(): readonly Standing[] {
    return [...this.#standings.values()];
  }

  /** Undefined until every signer has been looked at. */
  condition(): Condition | undefined {
    if ([...this.#signers].some(name => !this.#standings.has(name))) return undefined;
    const underWay = this.standings()
      .filter(({ phase }) => phase === 'Distributing' || phase === 'Signing')
      .toSorted((a, b) => (a.signer < b.signer ? -1 : 1));
    if (underWay.length === 0) {
      return {
        type: HAND_OVER_CONDITION,
        status: 'False',
        reason: 'AsExpected',
        message: 'no signer is being handed over',
      };
    }
    const waiting = underWay.filter(({ waitingFor }) => waitingFor.length > 0);
    const waits = waiting.every(({ isForPresenters }) => isForPresenters)
      ? 'WaitingForPresenters'
      : 'WaitingForVerifiers';
    const message = underWay.map(({ signer, phase, waitingFor, waitingSince }) =>
      waitingSince === undefined
        ? `${signer}: ${phase}`
        : `${signer}: ${phase} since ${formatRfc3339(waitingSince)}, waiting for ${listed(waitingFor)}`,
    );
    const reason = waiting.length > 0 ? waits : (underWay[0] as Standing).phase;
    return { type: HAND_OVER_CONDITION, status: 'True', reason, message: message.join('\n') };
  }

  #tell(standing: Remembered, { waitingFor }: FamilyDecision, now: Date): Remembered {
    const { signer, isNew, unchangedSince, isTold } = standing;
    if (waitingFor.length === 0) return standing.phase === 'Distributing' ? standing : { ...standing, isNew: false };
    const who = listed(waitingFor.map(({ verifier, evidence }) => `${verifier} (${evidence})`));
    if (isNew) this.#events.event('Normal', 'HandOverWaiting', `"${signer}" is handed over; waiting for ${who}`);
    const isStuck = now.getTime() - unchangedSince.getTime() >= STUCK_MS;
    if (isStuck && !isTold) {
      const text = `"${signer}" has waited for an hour for the same ones: ${who}; see rotunda get hand-overs`;
      this.#events.event('Warning', 'HandOverStuck', text);
    }
    return { ...standing, isNew: false, isTold: isTold || isStuck };
  }
}

function listed(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(', ');
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}
