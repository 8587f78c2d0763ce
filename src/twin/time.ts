import type { Clock } from '../kube/clock.ts';
import { hours, minutes, seconds } from '../kube/duration.ts';
import { type Random, seededRandom } from './random.ts';

/** So long after the last change safety nets are still cast: every controller has looked once more, and found nothing. */
const CALM_AFTER_MS = seconds(65);

/** Who asks again this soon polls. */
const POLL_MS = minutes(1);
/** When nothing has changed for so long, whoever polls asks again only after as long as it has been so, and at the latest after `LONGEST_POLL_MS`. */
const POLLS_ARE_DULL_AFTER_MS = minutes(10);
const LONGEST_POLL_MS = hours(6);

export interface TimeOptions {
  readonly start: Date;
  readonly seed: string;
  /** Whether looks that would find nothing are left out; true unless told otherwise. */
  readonly leavesLullsOut?: boolean | undefined;
}

/**
 * The time of a twin: it stands still while anything can run, then jumps to the next thing that is due and wakes one waiter. In memory
 * everything that can run is a microtask, so that one turn of the event loop is enough to know that all is quiet.
 *
 * When nothing has changed for a while, lulls (`Clock.lull`) are left out: they wait for as long as nothing is due, as the timers of a
 * machine do that sleeps. Polls are thinned out then, until something changes.
 */
export class Time {
  readonly #waits = new Heap();
  readonly #lulls = new Heap();
  readonly #leavesLullsOut: boolean;
  readonly random: Random;
  #nowMs: number;
  #sequence = 0;
  /** Lulls are kept by when they would have been due without all that was left out. */
  #leftOutMs = 0;
  #changedMs: number;
  /** Polls that were put off: each would have been due by now but for that. */
  #putOff: Wait[] = [];
  /** How many waiters have been woken. */
  wakes = 0;

  constructor({ start, seed, leavesLullsOut = true }: TimeOptions) {
    this.#nowMs = this.#changedMs = start.getTime();
    this.#leavesLullsOut = leavesLullsOut;
    this.random = seededRandom(`${seed} time`);
  }

  get nowMs(): number {
    return this.#nowMs;
  }

  /** Something has changed: who looks after things by themselves may find something to do. */
  changed(): void {
    this.#changedMs = this.#nowMs;
    if (this.#putOff.length === 0) return;
    for (const wait of this.#putOff.splice(0)) {
      if (wait.isDropped || wait.isWoken) continue;
      this.#waits.drop(wait);
      const again = { ...wait, isDropped: false, atMs: this.#nowMs + seconds(1) };
      wait.moved = again;
      this.#waits.add(again);
    }
  }

  /** A clock that goes wrong by so much; every component may have its own. */
  clock(name: string, skewMs = 0): Clock {
    const random = seededRandom(`${name} ${this.random()}`);
    return {
      now: () => new Date(this.#nowMs + skewMs),
      monotonicMs: () => this.#nowMs,
      until: (at, signal) => this.#wait(this.#waits, at.getTime() - skewMs, signal),
      pause: (milliseconds, signal) => this.#wait(this.#waits, this.#nowMs + Math.ceil(milliseconds), signal),
      lull: (milliseconds, signal) =>
        this.#wait(this.#lulls, this.#nowMs - this.#leftOutMs + Math.ceil(milliseconds), signal),
      random,
    };
  }

  /**
   * A clock that stands still while lulls are left out. Leases are kept by it: whoever holds one and whoever waits for it sleep
   * together, and when they wake up neither has missed anything. Its time of day is only for people.
   */
  awakeClock(name: string, skewMs = 0): Clock {
    const random = seededRandom(`${name} ${this.random()}`);
    const awakeMs = () => this.#nowMs - this.#leftOutMs;
    const pause = (milliseconds: number, signal?: AbortSignal) =>
      this.#wait(this.#lulls, awakeMs() + Math.ceil(milliseconds), signal);
    return {
      now: () => new Date(awakeMs() + skewMs),
      monotonicMs: awakeMs,
      until: (at, signal) => pause(at.getTime() - skewMs - awakeMs(), signal),
      pause,
      random,
    };
  }

  /** Who looks after things by themselves goes on doing so for as long, whether anything changes or not. */
  async stayAwake(milliseconds: number): Promise<void> {
    for (let leftMs = milliseconds; leftMs > 0; leftMs -= CALM_AFTER_MS) {
      this.changed();
      await this.after(Math.min(leftMs, CALM_AFTER_MS));
    }
  }

  /** Resolves so much later. */
  after(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return this.#wait(this.#waits, this.#nowMs + Math.ceil(milliseconds), signal);
  }

  /** Lets the time go on to `target`; `look` is called whenever everything that could run has run. */
  async goOn(target: Date, look: () => void): Promise<void> {
    const targetMs = target.getTime();
    for (;;) {
      await quiet();
      look();
      const next = this.#next(targetMs);
      if (next === undefined) break;
      this.wakes++;
      next.wake();
    }
    this.#nowMs = Math.max(this.#nowMs, targetMs);
    await quiet();
    look();
  }

  /** Takes the next waiter out and moves the time there; undefined: nobody is due by then. */
  #next(targetMs: number): Wait | undefined {
    const wait = this.#waits.first();
    const lull = this.#lulls.first();
    const waitMs = wait?.atMs ?? Number.POSITIVE_INFINITY;
    const lullMs = lull === undefined ? Number.POSITIVE_INFINITY : lull.atMs + this.#leftOutMs;
    const isCalm = this.#leavesLullsOut && lullMs > this.#changedMs + CALM_AFTER_MS;
    if (waitMs <= lullMs || isCalm) {
      // Lulls go on from here as if no time had passed in which nothing was due.
      const resumesMs = Math.min(waitMs, targetMs);
      if (isCalm && resumesMs > lullMs) this.#leftOutMs += resumesMs - lullMs;
      if (wait === undefined || waitMs > targetMs) return undefined;
      this.#waits.take();
      this.#nowMs = Math.max(this.#nowMs, waitMs);
      return wait;
    }
    if (lull === undefined || lullMs > targetMs) return undefined;
    this.#lulls.take();
    this.#nowMs = Math.max(this.#nowMs, lullMs);
    return lull;
  }

  /** For how long a poll is put off. */
  #dullMs(atMs: number): number {
    const calmMs = this.#nowMs - this.#changedMs;
    const isDull = this.#leavesLullsOut && atMs - this.#nowMs <= POLL_MS && calmMs > POLLS_ARE_DULL_AFTER_MS;
    return isDull ? Math.min(calmMs, LONGEST_POLL_MS) : 0;
  }

  #wait(heap: Heap, atMs: number, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    if (heap === this.#waits && atMs <= this.#nowMs) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        heap.drop(wait.moved ?? wait);
        reject(signal?.reason as Error);
      };
      const wake = () => {
        wait.isWoken = true;
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      const dullMs = heap === this.#waits ? this.#dullMs(atMs) : 0;
      const wait: Wait = { atMs: atMs + dullMs, sequence: this.#sequence++, wake, isDropped: false, isWoken: false };
      if (dullMs > 0) this.#putOff = [...this.#putOff.filter(({ isWoken }) => !isWoken), wait];
      signal?.addEventListener('abort', onAbort, { once: true });
      heap.add(wait);
    });
  }
}

interface Wait {
  /** In its place, since something changed. */
  moved?: Wait;
  isWoken: boolean;
  readonly atMs: number;
  /** Of several that are due at one moment the one that came first is woken first. */
  readonly sequence: number;
  readonly wake: () => void;
  isDropped: boolean;
}

/** Waits in the order in which they are due. */
class Heap {
  readonly #waits: Wait[] = [];
  #dropped = 0;

  first(): Wait | undefined {
    while (this.#waits[0]?.isDropped === true) {
      this.take();
      this.#dropped--;
    }
    return this.#waits[0];
  }

  add(wait: Wait): void {
    const waits = this.#waits;
    let at = waits.push(wait) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (!isBefore(wait, waits[parent] as Wait)) break;
      waits[at] = waits[parent] as Wait;
      at = parent;
    }
    waits[at] = wait;
  }

  take(): void {
    const waits = this.#waits;
    const last = waits.pop();
    if (last === undefined || waits.length === 0) return;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= waits.length) break;
      if (child + 1 < waits.length && isBefore(waits[child + 1] as Wait, waits[child] as Wait)) child++;
      if (!isBefore(waits[child] as Wait, last)) break;
      waits[at] = waits[child] as Wait;
      at = child;
    }
    waits[at] = last;
  }

  drop(wait: Wait): void {
    wait.isDropped = true;
    // Those that nobody waits for any more must not outgrow the others.
    if (++this.#dropped * 2 <= this.#waits.length || this.#dropped < MOST_DROPPED) return;
    const kept = this.#waits.filter(({ isDropped }) => !isDropped);
    this.#waits.length = 0;
    this.#dropped = 0;
    for (const one of kept) this.add(one);
  }
}

const MOST_DROPPED = 1000;

function isBefore(a: Wait, b: Wait): boolean {
  return a.atMs === b.atMs ? a.sequence < b.sequence : a.atMs < b.atMs;
}

/** Lets everything that can run now, run. */
function quiet(): Promise<void> {
  return new Promise(resolve => {
    setImmediate(resolve);
  });
}
