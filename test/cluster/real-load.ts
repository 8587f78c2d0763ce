import type { ConfigMap } from 'kubernetes-types/core/v1.d.ts';
import type { Access } from '../../src/kube/access.ts';
import { HttpKube } from '../../src/kube/client.ts';
import { ConnectionError, isConflict, isGone, isTransient, KubeError } from '../../src/kube/error.ts';
import { CONFIG_MAPS } from '../../src/kube/resource.ts';

/** Somebody who uses the API all the time. */
export interface LoadUser {
  readonly name: string;
  readonly access: Access;
}

export interface LoadReport {
  readonly users: number;
  /** Each began with a handshake. */
  readonly clients: number;
  readonly lists: number;
  readonly updates: number;
  /** Attempts that had to be repeated, and were successful then. */
  readonly retries: number;
  /** Requests that were not successful with all repetitions, or for which there is no use in repeating. */
  readonly failures: readonly string[];
  /** Either side did not accept the other. */
  readonly refusals: readonly string[];
  readonly events: number;
  /** Watches that ended and went on where they were. */
  readonly resumed: number;
  /** Watches that could not go on where they were, or missed something. */
  readonly lost: readonly string[];
}

const PAUSE_MS = 300;
/** As standard clients have it: a request is repeated up to so many times, later and later. */
const MOST_ATTEMPTS = 10;
const FIRST_RETRY_MS = 100;
const LONGEST_RETRY_MS = 5_000;
const REQUEST_TIMEOUT_MS = 20_000;
/** Rounds after which a user makes new connections: a handshake with what it has then. */
const ROUNDS_A_CLIENT = 15;
const MOST_NOTED = 20;

/** Codes of connections that end because of what one side has shown to the other; repeating them would hide what is looked for. */
const TRUST = /CERT|TLS|SSL|UNABLE_TO|SELF_SIGNED|ALTNAME/;

/** Lists, updates and watches with every user, until it is stopped. Each user counts up a number that its own watch has to see. */
export class ApiLoad {
  readonly #namespace: string;
  readonly #began: number = Date.now();
  readonly #stop = new AbortController();
  readonly #work: Promise<unknown>;
  readonly #counts = { clients: 0, lists: 0, updates: 0, retries: 0, events: 0, resumed: 0 };
  readonly #failures: string[] = [];
  readonly #refusals: string[] = [];
  readonly #lost: string[] = [];
  readonly #users: number;

  /** The namespace has to be there. */
  constructor(namespace: string, users: readonly LoadUser[]) {
    this.#namespace = namespace;
    this.#users = users.length;
    this.#work = Promise.all(users.map(user => this.#use(user)));
  }

  report(): LoadReport {
    const [failures, refusals, lost] = [this.#failures, this.#refusals, this.#lost];
    return { users: this.#users, ...this.#counts, failures, refusals, lost };
  }

  async stop(): Promise<LoadReport> {
    this.#stop.abort();
    await this.#work;
    return this.report();
  }

  async #use({ name, access }: LoadUser): Promise<void> {
    const key = { namespace: this.#namespace, name: `load-${name}-${this.#began.toString(36)}` };
    let kube = this.#client(access);
    const first = await this.#attempt(`${name} creates`, () =>
      kube.create(CONFIG_MAPS, { metadata: key, data: { count: '0' } }),
    );
    if (first === undefined) return;
    const seen = { count: 0 };
    const watchEnd = new AbortController();
    const watching = this.#watch(name, access, first, seen, watchEnd.signal);
    let count = 0;
    for (let round = 1; !this.#stop.signal.aborted; round++) {
      if (await this.#attempt(`${name} lists`, () => kube.list(CONFIG_MAPS, { namespace: key.namespace })))
        this.#counts.lists++;
      const wanted = String(count + 1);
      if (await this.#attempt(`${name} updates`, () => set(kube, key, wanted))) {
        this.#counts.updates++;
        count++;
      }
      await pause(PAUSE_MS);
      if (round % ROUNDS_A_CLIENT !== 0) continue;
      await kube.close();
      kube = this.#client(access);
    }
    for (let waits = 0; seen.count < count && waits < 100; waits++) await pause(PAUSE_MS);
    if (seen.count < count) this.#lost.push(`${name} has written ${count} and its watch has seen ${seen.count}`);
    watchEnd.abort();
    await watching;
    await kube.close();
  }

  /** Goes on where it was whenever the connection ends. */
  async #watch(
    name: string,
    access: Access,
    from: ConfigMap,
    seen: { count: number },
    signal: AbortSignal,
  ): Promise<void> {
    const kube = this.#client(access);
    let resourceVersion = from.metadata?.resourceVersion;
    const selection = { namespace: this.#namespace, fieldSelector: `metadata.name=${from.metadata?.name}` };
    for (let inVain = 0; !signal.aborted; ) {
      try {
        const options = { ...selection, resourceVersion, allowWatchBookmarks: true, signal };
        for await (const { type, object } of kube.watch<ConfigMap>(CONFIG_MAPS, options)) {
          inVain = 0;
          resourceVersion = object.metadata?.resourceVersion;
          if (type === 'BOOKMARK') continue;
          const count = Number(object.data?.count);
          this.#counts.events++;
          if (count > seen.count + 1) this.#note(this.#lost, `${name} saw ${count} after ${seen.count}`);
          seen.count = Math.max(seen.count, count);
        }
      } catch (error) {
        if (isRefusal(error)) this.#note(this.#refusals, `${name} watches: ${textOf(error)}`);
        if (isGone(error) || ++inVain === MOST_ATTEMPTS) {
          this.#note(this.#lost, `${name} cannot go on at ${resourceVersion}: ${textOf(error)}`);
        }
        // A standard client never gives up; what is gone it asks for anew.
        if (isGone(error)) resourceVersion = undefined;
        await pause(backoffMs(inVain));
      }
      if (!signal.aborted) this.#counts.resumed++;
    }
    await kube.close();
  }

  #client(access: Access): HttpKube {
    this.#counts.clients++;
    return new HttpKube(access, { requestTimeoutMs: REQUEST_TIMEOUT_MS });
  }

  /** With the repetitions of a standard client. Undefined when that was not enough. */
  async #attempt<T>(what: string, call: () => Promise<T>): Promise<T | undefined> {
    for (let attempt = 1; ; attempt++) {
      try {
        return await call();
      } catch (error) {
        if (isRefusal(error)) {
          this.#note(this.#refusals, `${what}: ${textOf(error)}`);
          return undefined;
        }
        if (attempt >= MOST_ATTEMPTS || !(isTransient(error) || isConflict(error))) {
          this.#note(this.#failures, `${what}, ${attempt} times: ${textOf(error)}`);
          return undefined;
        }
        this.#counts.retries++;
        await pause(backoffMs(attempt));
      }
    }
  }

  #note(list: string[], text: string): void {
    if (list.length < MOST_NOTED) list.push(`${new Date().toISOString()} ${text}`);
  }
}

/** As a controller does it: what is there is read, and written unless it is already as wanted. */
async function set(kube: HttpKube, key: { namespace: string; name: string }, count: string): Promise<ConfigMap> {
  const found = await kube.get(CONFIG_MAPS, key);
  if (found.data?.count === count) return found;
  return kube.update(CONFIG_MAPS, { ...found, data: { count } });
}

function isRefusal(error: unknown): boolean {
  if (error instanceof KubeError) return error.code === 401 || error.code === 403;
  return error instanceof ConnectionError && TRUST.test(error.code);
}

function textOf(error: unknown): string {
  const { code, message } = error as { code?: unknown; message?: string };
  return `${String(code)} ${message?.slice(0, 300)}`;
}

function backoffMs(attempt: number): number {
  return Math.min(FIRST_RETRY_MS * 2 ** (attempt - 1), LONGEST_RETRY_MS);
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}
