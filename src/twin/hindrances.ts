/** Somebody could not do his work, in this time: all that excuses rest on. */
export interface Hindrance {
  readonly who: string;
  readonly fromMs: number;
  readonly untilMs: number;
}

/** What was hindered, and when. */
export class Hindrances {
  readonly #all: Hindrance[] = [];

  add(hindrance: Hindrance): void {
    if (hindrance.untilMs > hindrance.fromMs) this.#all.push(hindrance);
  }

  /** Those that go on, or were over less than so long ago. */
  at(nowMs: number, afterMs = 0): Hindrance[] {
    return this.#all.filter(({ fromMs, untilMs }) => nowMs >= fromMs && nowMs <= untilMs + afterMs);
  }

  /**
   * Who kept these from ever working side by side for so long between two moments: everybody who was in the way, the longest first;
   * undefined: they had such a time, and were hindered by nobody.
   */
  keptApart(
    isOneOf: (who: string) => boolean,
    sinceMs: number,
    nowMs: number,
    neededMs: number,
  ): Hindrance[] | undefined {
    const inTheWay = this.#all
      .filter(({ who, fromMs, untilMs }) => isOneOf(who) && untilMs + neededMs > sinceMs && fromMs < nowMs)
      .toSorted((a, b) => a.fromMs - b.fromMs);
    let freeSinceMs = sinceMs;
    for (const { fromMs, untilMs } of inTheWay) {
      if (fromMs - freeSinceMs >= neededMs) return undefined;
      freeSinceMs = Math.max(freeSinceMs, untilMs);
    }
    if (nowMs - freeSinceMs >= neededMs || inTheWay.length === 0) return undefined;
    const lasted = ({ fromMs, untilMs }: Hindrance) => Math.min(untilMs, nowMs) - Math.max(fromMs, sinceMs);
    return inTheWay.toSorted((a, b) => lasted(b) - lasted(a));
  }
}
