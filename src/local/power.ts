import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Clock, sleep, systemClock } from '../kube/clock.ts';
import { milliseconds } from '../kube/duration.ts';

const LOOK_EVERY_MS = milliseconds(300);

/** The switch of a node: a file below its root, so that another process can turn it, and it stays as it is over a restart. */
export class Power {
  readonly #folder: string;
  readonly #clock: Clock;

  constructor(root: string, clock: Clock = systemClock) {
    this.#folder = join(root, 'run/rotunda');
    this.#clock = clock;
  }

  get isOn(): boolean {
    return !existsSync(this.#file);
  }

  turn(to: 'on' | 'off'): void {
    if (to === 'on') return rmSync(this.#file, { force: true });
    mkdirSync(this.#folder, { recursive: true });
    writeFileSync(this.#file, '');
  }

  /** Works as long as the node is on, and begins again whenever it is turned on, until `signal` aborts. */
  async whileOn(signal: AbortSignal, work: (signal: AbortSignal) => Promise<unknown>): Promise<void> {
    while (!signal.aborted) {
      await this.#turned('on', signal);
      if (signal.aborted) return;
      const off = new AbortController();
      const watching = this.#turned('off', AbortSignal.any([signal, off.signal])).then(() =>
        off.abort(new NodeIsOff()),
      );
      try {
        await work(AbortSignal.any([signal, off.signal]));
      } catch (error) {
        if (!(off.signal.aborted && off.signal.reason instanceof NodeIsOff)) throw error;
      } finally {
        if (!off.signal.aborted) off.abort();
        await watching;
      }
      if (!(off.signal.reason instanceof NodeIsOff)) return;
    }
  }

  get #file(): string {
    return join(this.#folder, 'off');
  }

  async #turned(to: 'on' | 'off', signal: AbortSignal): Promise<void> {
    while (!signal.aborted && this.isOn !== (to === 'on'))
      await sleep(this.#clock, LOOK_EVERY_MS, signal).catch(() => {});
  }
}

class NodeIsOff extends Error {
  override readonly name = 'NodeIsOff';
}
