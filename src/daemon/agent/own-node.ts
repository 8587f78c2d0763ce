import type { Node } from 'kubernetes-types/core/v1.d.ts';
import { type Clock, sleep } from '../../kube/clock.ts';
import type { Informer } from '../../kube/informer.ts';

/** The Node this agent runs on, as the API last told. What it gives is frozen and never shared in a changing state (D-23). */
export class OwnNode {
  readonly name: string;
  readonly #informer: Pick<Informer<Node>, 'get' | 'subscribe'>;
  readonly #clock: Clock;

  constructor(name: string, informer: Pick<Informer<Node>, 'get' | 'subscribe'>, clock: Clock) {
    this.name = name;
    this.#informer = informer;
    this.#clock = clock;
  }

  get(): Node | undefined {
    return this.#informer.get({ name: this.name });
  }

  annotations(): Readonly<Record<string, string>> {
    return this.get()?.metadata?.annotations ?? {};
  }

  /**
   * Waits until the node is like that, told by the watch and not by asking again and again (spec 60, 10.1.5). False: it is not so in
   * time. Rejects with the signal's reason.
   */
  async until(isSo: (node: Node) => boolean, withinMs: number, signal: AbortSignal): Promise<boolean> {
    signal.throwIfAborted();
    const over = new AbortController();
    const seen = new Promise<boolean>(resolve => {
      const look = (node: Node) => {
        if (isSo(node)) resolve(true);
      };
      const unsubscribe = this.#informer.subscribe({ add: look, update: (_before, after) => look(after), delete() {} });
      over.signal.addEventListener('abort', unsubscribe, { once: true });
    });
    const ended = AbortSignal.any([signal, over.signal]);
    const late = sleep(this.#clock, withinMs, ended).then(
      () => false,
      () => false,
    );
    try {
      const outcome = await Promise.race([seen, late]);
      signal.throwIfAborted();
      return outcome;
    } finally {
      over.abort();
    }
  }
}
