import { minutes } from '../kube/duration.ts';
import { ConnectionError, KubeError } from '../kube/error.ts';
import type { Resource } from '../kube/resource.ts';
import type { Weather } from './api.ts';
import { below, type Random } from './random.ts';

/** What may lie on somebody's way to the API. */
export type Front = 'storm' | 'fog' | 'stale lists' | 'api away';

/** Of an event on its way: how often it is heard twice, its watch breaks, or falls silent. */
const HEARD_TWICE = 0.1;
const BREAKS = 0.05;
const FALLS_SILENT = 0.05;
const MOST_CHANGES_BEHIND = 30;

/** The weather between the API and its clients, made by faults that come and go. */
export class Fronts implements Weather {
  readonly #random: Random;
  /** How many of each are over somebody; `api away` is over everybody. */
  readonly #over = new Map<string, number>();
  /** After how many writes somebody is killed. */
  readonly #crashes = new Map<string, number>();
  readonly #kill: (who: string) => void;

  constructor(random: Random, kill: (who: string) => void) {
    this.#random = random;
    this.#kill = kill;
  }

  comes(front: Front, who = ''): void {
    this.#count(front, who, 1);
  }

  goes(front: Front, who = ''): void {
    this.#count(front, who, -1);
  }

  crashAt(who: string, write: number): void {
    this.#crashes.set(who, write);
  }

  call({ by, verb, resource }: Parameters<Weather['call']>[0]): ReturnType<Weather['call']> {
    if (this.#isOver('api away')) return { before: new ConnectionError('ECONNREFUSED', 'the API is away') };
    if (!READS.has(verb) && this.#isLastWrite(by)) {
      // It dies before this write, or after it was carried out and before it hears of that.
      const isDone = this.#random() < 0.5;
      if (!isDone) this.#kill(by);
      return isDone ? { onDone: () => this.#kill(by) } : {};
    }
    return this.#isOver('storm', by) ? this.#storm(verb, resource) : {};
  }

  watch(by: string): ReturnType<Weather['watch']> {
    if (!this.#isOver('fog', by)) return CLEAR;
    return {
      next: () => {
        const lot = this.#random();
        if (lot < FALLS_SILENT) return 'silent';
        if (lot < FALLS_SILENT + BREAKS) return 'breaks';
        return { delayMs: this.#random() * minutes(2), isTwice: this.#random() < HEARD_TWICE };
      },
    };
  }

  changesBehind(by: string): number {
    return this.#isOver('stale lists', by) ? below(this.#random, MOST_CHANGES_BEHIND) : 0;
  }

  #isLastWrite(by: string): boolean {
    const left = this.#crashes.get(by);
    if (left === undefined) return false;
    if (left > 1) this.#crashes.set(by, left - 1);
    else this.#crashes.delete(by);
    return left <= 1;
  }

  #storm(verb: string, { plural }: Resource): ReturnType<Weather['call']> {
    const lot = this.#random();
    if (lot < 0.1) return { before: new ConnectionError('ECONNRESET', 'the connection broke') };
    if (lot < 0.2) return { after: new ConnectionError('ECONNRESET', 'the connection broke') };
    if (lot < 0.25) return { before: new KubeError(500, 'InternalError', 'etcdserver: request timed out') };
    if (lot < 0.35 && (verb === 'update' || verb === 'updateStatus'))
      return { before: new KubeError(409, 'Conflict', `${plural}: the object has been modified`) };
    return {};
  }

  #isOver(front: Front, who = ''): boolean {
    return (this.#over.get(`${front} ${who}`) ?? 0) > 0;
  }

  #count(front: Front, who: string, by: number): void {
    const id = `${front} ${who}`;
    this.#over.set(id, (this.#over.get(id) ?? 0) + by);
  }
}

const READS = new Set(['get', 'list', 'watch']);
const CLEAR = { next: () => ({ delayMs: 0, isTwice: false }) };
