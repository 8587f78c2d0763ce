import { days, minutes } from '../kube/duration.ts';
import { START } from './cluster.ts';
import type { Fault } from './fault.ts';
import { type Life, type LifeOptions, live } from './life.ts';

/** The shortest way to the same failure that was found. */
export interface Shrunk {
  readonly options: LifeOptions;
  readonly life: Life;
  /** How many lives were lived to find it. */
  readonly lives: number;
}

export interface ShrinkLimits {
  /** Whole lives. */
  readonly lives?: number | undefined;
  /** Days, of all these lives together. */
  readonly days?: number | undefined;
  readonly onLife?: ((lives: number, faults: number, days: number) => void) | undefined;
}

const MOST_LIVES = 150;
const MOST_DAYS = 4000;

/**
 * Looks for a shorter life in which the same rule is broken about the same thing: fewer faults, fewer nodes, an earlier end, shorter faults.
 * What is tried depends on what was found alone, so that it finds the same every time.
 */
export async function shrink(options: LifeOptions, life: Life, limits: ShrinkLimits = {}): Promise<Shrunk> {
  const search = new Search(limits, { options, life });
  await search.dropFaults();
  await search.fewerNodes();
  await search.earlier();
  await search.dropFaults();
  await search.shorterFaults();
  return { ...search.best, lives: search.lives };
}

class Search {
  readonly #limits: ShrinkLimits;
  best: { readonly options: LifeOptions; readonly life: Life };
  lives = 0;
  #days = 0;

  constructor(limits: ShrinkLimits, first: { readonly options: LifeOptions; readonly life: Life }) {
    this.#limits = limits;
    this.best = ended(first);
  }

  get #faults(): readonly Fault[] {
    return this.best.options.faults ?? [];
  }

  /** Whether the same is broken in a life with this instead; then that is the best one known. */
  async #holds(change: Partial<LifeOptions>): Promise<boolean> {
    const { lives = MOST_LIVES, days: mostDays = MOST_DAYS, onLife = () => {} } = this.#limits;
    if (this.lives >= lives || this.#days >= mostDays) return false;
    const options: LifeOptions = {
      ...this.best.options,
      ...change,
      stopsAtFirst: true,
      tell: undefined,
      onDay: undefined,
    };
    this.lives++;
    const life = await live(options);
    this.#days += Math.ceil(life.livedMs / days(1));
    onLife(this.lives, this.#faults.length, this.best.options.days);
    const [was, is] = [this.best.life.violations[0], life.violations[0]];
    if (is === undefined || is.rule !== was?.rule || is.about !== was.about) return false;
    this.best = ended({ options, life });
    return true;
  }

  /** Halves, quarters, ... of the faults are left out, as long as that works. */
  async dropFaults(): Promise<void> {
    if (this.#faults.length > 0 && (await this.#holds({ faults: [] }))) return;
    for (let parts = 2; this.#faults.length > 1; ) {
      const size = Math.ceil(this.#faults.length / parts);
      let isSmaller = false;
      for (let from = 0; from < this.#faults.length; from += size) {
        const faults = this.#faults.toSpliced(from, size);
        if (!(await this.#holds({ faults }))) continue;
        isSmaller = true;
        from -= size;
      }
      if (size === 1 && !isSmaller) break;
      parts = isSmaller ? Math.max(2, parts - 1) : Math.min(this.#faults.length, parts * 2);
    }
  }

  async fewerNodes(): Promise<void> {
    const { workers = 2, controlPlane = 3 } = this.best.options;
    for (const fewer of [0, 1]) if (fewer < workers && (await this.#holds({ workers: fewer }))) break;
    for (const fewer of [1, 2]) if (fewer < controlPlane && (await this.#holds({ controlPlane: fewer }))) break;
  }

  /** All faults some rounds of the rotation sooner. */
  async earlier(): Promise<void> {
    for (const round of [days(180), days(90), days(60), days(30), days(15)]) {
      const first = () => this.#faults[0]?.atMs ?? 0;
      while (first() > round) {
        const faults = this.#faults.map(fault => ({ ...fault, atMs: fault.atMs - round }));
        if (!(await this.#holds({ faults }))) break;
      }
    }
  }

  async shorterFaults(): Promise<void> {
    for (let at = 0; at < this.#faults.length; at++) {
      for (const share of [1 / 32, 1 / 8, 1 / 2]) {
        const fault = this.#faults[at];
        if (fault === undefined || !('forMs' in fault) || fault.forMs * share < minutes(1)) continue;
        const forMs = Math.round((fault.forMs * share) / minutes(1)) * minutes(1);
        if (await this.#holds({ faults: this.#faults.with(at, { ...fault, forMs }) })) break;
      }
    }
  }
}

/** Ends on the day on which it fails, without what comes after. */
function ended({ options, life }: { readonly options: LifeOptions; readonly life: Life }) {
  const atMs = life.violations[0]?.atMs ?? START.getTime() + life.livedMs;
  const sinceMs = atMs - START.getTime();
  const faults = (options.faults ?? []).filter(fault => fault.atMs <= sinceMs);
  return { options: { ...options, faults, days: Math.max(1, Math.ceil(sinceMs / days(1))) }, life };
}
