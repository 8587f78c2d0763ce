/** The `Clock` port: the only way to learn the time or to wait. */
export interface Clock {
  now(): Date;
  /** Resolves at `at` or later. Rejects with the signal's reason when it aborts first. */
  until(at: Date, signal?: AbortSignal): Promise<void>;
  /** Milliseconds since some fixed moment, blind to corrections of the wall clock. Absent: only `now` is known. */
  monotonicMs?(): number;
  /** Resolves after a time that corrections of the wall clock neither lengthen nor shorten. */
  pause?(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** A pause before a look that finds something only where something else went wrong: a simulation may leave it out. Absent: `pause`. */
  lull?(milliseconds: number, signal?: AbortSignal): Promise<void>;
  /** From 0 up to but not including 1, to spread waits of many. Absent: the machine's own. */
  random?(): number;
}

/** Resolves after `milliseconds`. */
export function sleep(clock: Clock, milliseconds: number, signal?: AbortSignal): Promise<void> {
  if (clock.pause !== undefined) return clock.pause(milliseconds, signal);
  return clock.until(new Date(clock.now().getTime() + milliseconds), signal);
}

/** Resolves after `milliseconds`, or when a simulation has seen that nothing would be found then. */
export function lull(clock: Clock, milliseconds: number, signal?: AbortSignal): Promise<void> {
  return clock.lull === undefined ? sleep(clock, milliseconds, signal) : clock.lull(milliseconds, signal);
}

/** Where waits that are to differ between many get their numbers from. */
export function randomOf(clock: Clock): () => number {
  return clock.random === undefined ? Math.random : () => clock.random?.() ?? 0;
}

/** A moment to measure from, on both clocks of a machine: the wall clock jumps, the other one stops during suspend. */
export interface Mark {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

export function mark(clock: Clock): Mark {
  const wallMs = clock.now().getTime();
  return { wallMs, monotonicMs: clock.monotonicMs?.() ?? wallMs };
}

/** The time since `since` that may have passed at most: for giving something up in time. */
export function atMostSince(clock: Clock, since: Mark): number {
  const now = mark(clock);
  return Math.max(now.wallMs - since.wallMs, now.monotonicMs - since.monotonicMs);
}

/** The time since `since` that has passed for certain: for taking something over. */
export function atLeastSince(clock: Clock, since: Mark): number {
  const now = mark(clock);
  return Math.min(now.wallMs - since.wallMs, now.monotonicMs - since.monotonicMs);
}

/** `setTimeout` cannot wait longer than this; longer waits are cut into pieces. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** The machine's clock. A wait follows wall-clock jumps: it is re-measured at least every `LONGEST_CHECK_MS`. */
export const systemClock: Clock = {
  now: () => new Date(),
  monotonicMs: () => performance.now(),
  async until(at, signal) {
    for (;;) {
      signal?.throwIfAborted();
      const left = at.getTime() - Date.now();
      if (left <= 0) return;
      await oneTimer(Math.min(left, LONGEST_CHECK_MS), signal);
    }
  },
  async pause(milliseconds, signal) {
    const end = performance.now() + milliseconds;
    for (let left = milliseconds; left > 0; left = end - performance.now()) {
      signal?.throwIfAborted();
      await oneTimer(Math.min(left, LONGEST_TIMER_MS), signal);
    }
    signal?.throwIfAborted();
  },
};

const LONGEST_CHECK_MS = 60_000;

function oneTimer(milliseconds: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort);
      resolve();
    }, milliseconds);
    signal?.addEventListener('abort', onAbort, { once: true });
  });
}

/** A clock that stands still until `advanceTo` or `advance` moves it; waits due by then resolve in order of time. */
export class VirtualClock implements Clock {
  #now: number;
  #jumpedMs = 0;
  #waits: Wait[] = [];

  constructor(start: Date | string) {
    this.#now = new Date(start).getTime();
    if (Number.isNaN(this.#now)) throw new RangeError(`not a time: ${String(start)}`);
  }

  now(): Date {
    return new Date(this.#now);
  }

  monotonicMs(): number {
    return this.#now - this.#jumpedMs;
  }

  until(at: Date, signal?: AbortSignal): Promise<void> {
    return this.#wait({ at: at.getTime(), jumpsAlong: false, wake: () => {} }, signal);
  }

  pause(milliseconds: number, signal?: AbortSignal): Promise<void> {
    return this.#wait({ at: this.#now + Math.ceil(milliseconds), jumpsAlong: true, wake: () => {} }, signal);
  }

  #wait(wait: Wait, signal: AbortSignal | undefined): Promise<void> {
    if (signal?.aborted) return Promise.reject(signal.reason as Error);
    if (wait.at <= this.#now) return Promise.resolve();
    return new Promise((resolve, reject) => {
      const onAbort = () => {
        this.#waits = this.#waits.filter(other => other !== wait);
        reject(signal?.reason as Error);
      };
      wait.wake = () => {
        signal?.removeEventListener('abort', onAbort);
        resolve();
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      this.#waits.push(wait);
    });
  }

  /** When the earliest wait is due. */
  nextWait(): Date | undefined {
    const earliest = Math.min(...this.#waits.map(wait => wait.at));
    return Number.isFinite(earliest) ? new Date(earliest) : undefined;
  }

  advance(milliseconds: number): Promise<void> {
    return this.advanceTo(new Date(this.#now + milliseconds));
  }

  /** Stops at every due wait on the way and lets the code behind it run before going on. */
  async advanceTo(target: Date): Promise<void> {
    await settle();
    for (;;) {
      const next = this.nextWait();
      if (next === undefined || next > target) break;
      this.#now = Math.max(this.#now, next.getTime());
      const due = this.#waits.filter(wait => wait.at <= this.#now).sort((a, b) => a.at - b.at);
      this.#waits = this.#waits.filter(wait => wait.at > this.#now);
      for (const wait of due) {
        wait.wake();
        await settle();
      }
    }
    this.#now = Math.max(this.#now, target.getTime());
    await settle();
  }

  /** Moves the clock without waking anybody: a clock set back, or forward behind everybody's back. */
  jumpTo(time: Date): void {
    const jump = time.getTime() - this.#now;
    for (const wait of this.#waits) if (wait.jumpsAlong) wait.at += jump;
    this.#jumpedMs += jump;
    this.#now += jump;
  }
}

interface Wait {
  at: number;
  /** A pause of so many seconds, not an appointment on the wall clock. */
  readonly jumpsAlong: boolean;
  wake: () => void;
}

/** Lets everything that can run now, run. */
function settle(): Promise<void> {
  return new Promise(resolve => {
    setImmediate(resolve);
  });
}
