import { errorText } from '../../controller/aggregate-error.ts';
import { type Clock, mark, sleep } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';

/** What a pool needs to know about its clients. */
export interface ClientKind<C> {
  /** Where etcd is; asked before every hand-out. */
  endpoints(): Promise<readonly string[]>;
  create(endpoints: readonly string[]): Promise<C>;
  /** Points a client that was made earlier to the endpoints of now. */
  redirect(client: C, endpoints: readonly string[]): void;
  /** Rejects when the client is no good. */
  check(client: C): Promise<void>;
  /** Whether a client that comes back may be lent again; one made with certificates of yesterday may not. */
  isCurrent?(client: C): boolean;
  close(client: C): Promise<void>;
}

/** In use and idle together. */
export const MOST_OPEN_CLIENTS = 20;
export const MOST_IDLE_CLIENTS = 10;
/** How long a request waits for a client when all are in use. */
export const ACQUIRE_LIMIT_MS: number = seconds(5);
export const ATTEMPTS = 3;
/** The pause before attempt n + 1 is n times this. */
export const ATTEMPT_PAUSE_MS: number = seconds(2);

/** A few clients, checked each time they are handed out (spec 40, Q-7). */
export class ClientPool<C> {
  readonly #kind: ClientKind<C>;
  readonly #clock: Clock;
  readonly #onError: (what: string, error: unknown) => void;
  readonly #idle: C[] = [];
  readonly #waiting: (() => void)[] = [];
  #open = 0;

  constructor(kind: ClientKind<C>, clock: Clock, onError: (what: string, error: unknown) => void = () => {}) {
    this.#kind = kind;
    this.#clock = clock;
    this.#onError = onError;
  }

  /** Lends a client to `work`. */
  async use<T>(work: (client: C) => Promise<T>, signal?: AbortSignal): Promise<T> {
    const client = await this.get(signal);
    try {
      return await work(client);
    } finally {
      this.return(client);
    }
  }

  /** A client that has just answered. Rejects when there is none to be had. */
  async get(signal?: AbortSignal): Promise<C> {
    const endpoints = await this.#kind.endpoints().catch((error: unknown) => {
      throw new Error(`getting cache client could not retrieve endpoints: ${errorText(error)}`, { cause: error });
    });
    let last: unknown;
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (attempt > 0) await sleep(this.#clock, attempt * ATTEMPT_PAUSE_MS, signal);
      let client: C;
      try {
        client = await this.#take(endpoints, signal);
      } catch (error) {
        if (error instanceof TooManyClients || signal?.aborted) throw error;
        this.#onError('could not make a client', error);
        last = error;
        continue;
      }
      try {
        await this.#kind.check(client);
        return client;
      } catch (error) {
        this.#onError('a client is not healthy', error);
        last = error;
        this.#drop(client);
      }
    }
    throw new Error(`giving up getting a cached client after ${ATTEMPTS} tries: ${errorText(last)}`, { cause: last });
  }

  return(client: C): void {
    if (this.#idle.length < MOST_IDLE_CLIENTS && this.#kind.isCurrent?.(client) !== false) {
      this.#idle.push(client);
      this.#waiting.shift()?.();
    } else {
      this.#drop(client);
    }
  }

  /** Closes what is not in use, for instance because it was made with certificates of yesterday. */
  closeIdle(): void {
    for (const client of this.#idle.splice(0)) this.#drop(client);
  }

  async #take(endpoints: readonly string[], signal: AbortSignal | undefined): Promise<C> {
    let idle = this.#idle.shift();
    const untilMs = mark(this.#clock).monotonicMs + ACQUIRE_LIMIT_MS;
    // Whoever came in between may have taken what was freed for this one.
    while (idle === undefined && this.#open >= MOST_OPEN_CLIENTS) {
      await this.#room(untilMs - mark(this.#clock).monotonicMs, signal);
      idle = this.#idle.shift();
    }
    if (idle !== undefined) {
      this.#kind.redirect(idle, endpoints);
      return idle;
    }
    this.#open++;
    try {
      return await this.#kind.create(endpoints);
    } catch (error) {
      this.#free();
      throw error;
    }
  }

  async #room(limitMs: number, signal: AbortSignal | undefined): Promise<void> {
    const freed = Promise.withResolvers<void>();
    const settled = new AbortController();
    this.#waiting.push(freed.resolve);
    const late = sleep(this.#clock, limitMs, AbortSignal.any([settled.signal, ...(signal ? [signal] : [])]));
    try {
      await Promise.race([freed.promise, late.then(() => Promise.reject(new TooManyClients()))]);
    } finally {
      settled.abort();
      late.catch(() => {});
      const index = this.#waiting.indexOf(freed.resolve);
      if (index >= 0) this.#waiting.splice(index, 1);
    }
  }

  #drop(client: C): void {
    this.#kind.close(client).catch((error: unknown) => this.#onError('could not close a client', error));
    this.#free();
  }

  #free(): void {
    this.#open--;
    this.#waiting.shift()?.();
  }
}

export class TooManyClients extends Error {
  override readonly name = 'TooManyClients';

  constructor() {
    super('too many active cache clients, rejecting to create new one');
  }
}
