import { isDeepStrictEqual } from 'node:util';
import { ONLY_KEY } from './reconcile.ts';
import type { Trigger } from './trigger.ts';

/** Whatever can tell of changes of files. */
interface WatchedFiles {
  watch(paths: readonly string[], changed: (path: string) => void, signal: AbortSignal): Promise<void>;
}

/** Asks for a pass when one of some files may have changed; which files these are may change too. */
export class FileWatch implements Trigger {
  readonly synced: Promise<void> = Promise.resolve();
  readonly #files: WatchedFiles;
  readonly #onError: (error: unknown) => void;
  #paths: readonly string[];
  #watching: AbortController | undefined;
  #enqueue: ((key: string) => void) | undefined;

  constructor(files: WatchedFiles, paths: readonly string[], onError: (error: unknown) => void) {
    this.#files = files;
    this.#paths = paths;
    this.#onError = onError;
  }

  start(enqueue: (key: string) => void): () => void {
    this.#enqueue = enqueue;
    this.#arm();
    return () => {
      this.#enqueue = undefined;
      this.#watching?.abort();
    };
  }

  /** Watches these from now on. */
  watch(paths: readonly string[]): void {
    if (isDeepStrictEqual(paths, this.#paths)) return;
    this.#paths = paths;
    if (this.#enqueue !== undefined) this.#arm();
  }

  /** Without a watch the resync still finds what was changed. */
  #arm(): void {
    this.#watching?.abort();
    this.#watching = new AbortController();
    this.#files.watch(this.#paths, () => this.#enqueue?.(ONLY_KEY), this.#watching.signal).catch(this.#onError);
  }
}
