import { inByteOrder } from '../pki/hosts.ts';

/** Host names that change while a creator uses them, and the notices that they did (spec 10, C-1). */
export class HostnameSource {
  #hostnames: ReadonlySet<string>;
  readonly #waiting = new Set<() => void>();

  constructor(hostnames: Iterable<string> = []) {
    this.#hostnames = new Set(hostnames);
  }

  get(): string[] {
    return inByteOrder(this.#hostnames);
  }

  /** Stores a different set first and then gives notice; an equal set does nothing. */
  set(hostnames: Iterable<string>): void {
    const wanted = new Set(hostnames);
    if (wanted.symmetricDifference(this.#hostnames).size === 0) return;
    this.#hostnames = wanted;
    for (const wake of this.#waiting) wake();
  }

  /** One item for each change, merged while the reader is busy. Ends when `signal` aborts; it never spins (14.11). */
  async *changes(signal: AbortSignal): AsyncGenerator<void> {
    let changed = false;
    let wake = () => {};
    const notice = () => {
      changed = true;
      wake();
    };
    this.#waiting.add(notice);
    signal.addEventListener('abort', notice, { once: true });
    try {
      while (!signal.aborted) {
        if (!changed) {
          await new Promise<void>(resolve => {
            wake = resolve;
          });
        }
        if (signal.aborted) return;
        changed = false;
        yield;
      }
    } finally {
      this.#waiting.delete(notice);
      signal.removeEventListener('abort', notice);
    }
  }
}
