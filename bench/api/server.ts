import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import type { Connection } from '../../src/kube/access.ts';
import { loadAccess } from '../../src/kube/kubeconfig.ts';
import type { Rate } from './measure.ts';

export type Order =
  | { readonly name: 'write'; readonly writers: number; readonly forMs: number }
  | { readonly name: 'fill'; readonly count: number }
  | { readonly name: 'memory' };

export interface Memory {
  /** What the runtime counts as in use after a collection, buffers included. */
  readonly kept: number;
  /** What the system counts. */
  readonly resident: number;
}

export interface Answers {
  write: Rate;
  fill: object;
  memory: Memory;
}

/** The embedded API, running in another process so that it shares no core with whoever measures it. */
export class ApiProcess {
  readonly connection: Connection;
  readonly #child: ChildProcess;

  private constructor(child: ChildProcess, connection: Connection) {
    this.#child = child;
    this.connection = connection;
  }

  static async start(dir: string): Promise<ApiProcess> {
    const main = new URL('server-main.ts', import.meta.url).pathname;
    const child = fork(main, [dir], { execArgv: ['--expose-gc'] });
    const { kubeconfigPath } = await answerOf<{ kubeconfigPath: string }>(child);
    return new ApiProcess(child, await (await loadAccess({ path: kubeconfigPath })).connection());
  }

  ask<N extends Order['name']>(order: Extract<Order, { name: N }>): Promise<Answers[N]> {
    this.#child.send(order);
    return answerOf<Answers[N]>(this.#child);
  }

  async stop(): Promise<void> {
    if (this.#child.exitCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.send('stop');
    await exited;
  }

  /** For the way out after a failure. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }
}

async function answerOf<T>(child: ChildProcess): Promise<T> {
  const ended = new AbortController();
  const { signal } = ended;
  try {
    const died = once(child, 'exit', { signal }).then(([code]) => {
      throw new Error(`the API's process ended with code ${String(code)}`);
    });
    const [answer] = await Promise.race([once(child, 'message', { signal }), died]);
    return answer as T;
  } finally {
    ended.abort();
  }
}
