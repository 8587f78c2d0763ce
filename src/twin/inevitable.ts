import { minutes, seconds } from '../kube/duration.ts';
import type { Refusal } from './edges.ts';
import type { Excuses } from './excuses.ts';
import { durationText, OPERATORS } from './fault.ts';
import { Hindrances } from './hindrances.ts';
import { Signings, wasTheLastMoment } from './signings.ts';

/** Everybody who can work does what is due within this time. */
const NEEDS_MS = minutes(90);
/** A machine that is back is as it was before after this time. */
const COMES_UP_MS = minutes(15);

/**
 * What the faults of a life make inevitable. A refusal is, where those who could have prevented it never had the time to: from when it
 * was due until now there was no moment at which all of them could work for as long as it takes. And a signer that somebody does not know
 * may sign only when waiting any longer would have harmed everybody.
 */
export class Inevitable implements Excuses {
  readonly hindrances = new Hindrances();
  readonly signings = new Signings();
  /** How far clocks of those who sign have been ahead. */
  #aheadMs = 0;

  clockIs(byMs: number): void {
    this.#aheadMs = Math.max(this.#aheadMs, byMs);
  }

  whyRefused(refusal: Refusal, nowMs: number): string | undefined {
    const { beginsMs, endsMs } = refusal.shownFacts;
    if (beginsMs > nowMs) return this.#whyTooEarly(beginsMs - nowMs);
    if (endsMs < nowMs) return this.#whyEnded(refusal, nowMs);
    return this.#whyUnknown(refusal, nowMs);
  }

  isOff(node: string, nowMs: number): boolean {
    return this.hindrances.at(nowMs, COMES_UP_MS).some(({ who }) => who === node);
  }

  /** A certificate begins a second before it is made, by the clock of whoever made it. */
  #whyTooEarly(earlyMs: number): string | undefined {
    const isSo = this.#aheadMs > 0 && earlyMs <= this.#aheadMs + seconds(1);
    return isSo
      ? `the clock of whoever signed it was ahead by up to ${Math.round(this.#aheadMs / seconds(1))} s`
      : undefined;
  }

  /** Leaves are renewed when half of their life is over. */
  #whyEnded({ refused, shownFacts: { beginsMs, endsMs } }: Refusal, nowMs: number): string | undefined {
    return this.#whyNever([nodeOf(refused)], (beginsMs + endsMs) / 2, nowMs);
  }

  #whyUnknown({ refuser, shownFacts: { issuer, beginsMs } }: Refusal, nowMs: number): string | undefined {
    const first = this.signings.firstOf(issuer);
    if (first === undefined || !wasTheLastMoment(first)) return undefined;
    const [, bornSeconds] = /@(\d+)$/.exec(issuer) ?? [];
    const bornMs = bornSeconds === undefined ? beginsMs : seconds(Number(bornSeconds));
    return this.#whyNever([nodeOf(refuser)], bornMs, nowMs);
  }

  #whyNever(nodes: readonly string[], sinceMs: number, nowMs: number): string | undefined {
    const isParty = (who: string) =>
      who === 'the API' ||
      OPERATORS.some(operator => operator === who) ||
      nodes.some(node => who === node || who.endsWith(` on ${node}`));
    const [longest] = this.hindrances.keptApart(isParty, sinceMs, nowMs, NEEDS_MS) ?? [];
    return longest && `${longest.who} was hindered for ${durationText(longest.untilMs - longest.fromMs)}`;
  }
}

function nodeOf(side: string): string {
  return side.replace(/^.* on /, '');
}
