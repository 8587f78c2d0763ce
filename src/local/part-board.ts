import type { PartState, RunningPart } from './part.ts';

/** How one part of the cluster is. */
export interface PartReport extends PartState {
  readonly name: string;
}

export type ProgressListener = (parts: readonly PartReport[]) => void;

const LOOK_PAUSE_MS = 50;

/** Knows all parts that have been started, and tells when one of them has become another. */
export class PartBoard {
  readonly #parts: { readonly name: string; readonly part: RunningPart }[] = [];
  readonly #listeners = new Set<() => void>();
  readonly #onProgress: ProgressListener | undefined;
  #lastTold = '';
  #willLook = false;

  constructor(onProgress: ProgressListener | undefined) {
    this.#onProgress = onProgress;
  }

  /** Rejects as soon as one of them gives up. */
  get ended(): Promise<void> {
    return Promise.all(this.#parts.map(({ part }) => part.ended)).then(() => {});
  }

  /** Resolves when nothing of any of them runs any more, however they ended. */
  async allOver(): Promise<void> {
    await Promise.allSettled(this.#parts.map(({ part }) => part.ended));
  }

  add(name: string, part: RunningPart): void {
    this.#parts.push({ name, part });
    this.changed();
  }

  reports(): PartReport[] {
    return this.#parts.map(({ name, part }) => ({ name, ...part.state() }));
  }

  /** Changes come in swarms; one look at all of them is enough. */
  changed(): void {
    if (this.#willLook) return;
    this.#willLook = true;
    setTimeout(() => {
      this.#willLook = false;
      this.#look();
    }, LOOK_PAUSE_MS).unref();
  }

  #look(): void {
    const reports = this.reports();
    const text = JSON.stringify(reports);
    if (text === this.#lastTold) return;
    this.#lastTold = text;
    this.#onProgress?.(reports);
    for (const listener of this.#listeners) listener();
  }

  async allReady(signal: AbortSignal): Promise<void> {
    const done = Promise.withResolvers<void>();
    const look = () => {
      if (this.reports().every(({ ready }) => ready)) done.resolve();
    };
    const giveUp = () => done.reject(signal.reason as Error);
    signal.addEventListener('abort', giveUp, { once: true });
    this.#listeners.add(look);
    try {
      if (signal.aborted) giveUp();
      look();
      await done.promise;
    } finally {
      this.#listeners.delete(look);
      signal.removeEventListener('abort', giveUp);
    }
  }
}
