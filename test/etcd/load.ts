import { Agent, request } from 'undici';
import type { MaterialSource } from '../../src/etcd/client/material.ts';
import { PATIENCE_MS } from '../tools/eventually.ts';

/** How long one attempt may take before the next member is asked. */
const ATTEMPT_LIMIT_MS = 3000;

/** A client with several endpoints that tries the next one when one does not answer, with the certificate of that moment. */
export class LoadClient {
  readonly #endpoints: readonly string[];
  readonly #material: MaterialSource;
  #agent: Agent | undefined;
  #next = 0;
  /** Attempts that were repeated at another endpoint. */
  retries = 0;

  constructor(endpoints: readonly string[], material: MaterialSource) {
    this.#endpoints = endpoints;
    this.#material = material;
  }

  async put(key: string, value: string): Promise<void> {
    await this.call('/v3/kv/put', { key: base64(key), value: base64(value) });
  }

  async get(key: string): Promise<string | undefined> {
    const { kvs = [] } = await this.call<{ kvs?: { value: string }[] }>('/v3/kv/range', { key: base64(key) });
    return kvs[0] === undefined ? undefined : Buffer.from(kvs[0].value, 'base64').toString();
  }

  async count(prefix: string): Promise<number> {
    const end = base64(`${prefix.slice(0, -1)}${String.fromCharCode(prefix.charCodeAt(prefix.length - 1) + 1)}`);
    const { count = '0' } = await this.call<{ count?: string }>('/v3/kv/range', {
      key: base64(prefix),
      range_end: end,
      count_only: true,
    });
    return Number(count);
  }

  async call<T>(path: string, body: object): Promise<T> {
    const giveUpAt = Date.now() + PATIENCE_MS;
    for (;;) {
      try {
        return await this.attempt<T>(path, body);
      } catch (error) {
        if (Date.now() > giveUpAt) throw error;
        this.retries++;
        this.#next++;
        await this.close();
        await new Promise(resolve => setTimeout(resolve, 50));
      }
    }
  }

  async close(): Promise<void> {
    const agent = this.#agent;
    this.#agent = undefined;
    await agent?.destroy().catch(() => {});
  }

  /** One attempt, at the endpoint whose turn it is. */
  async attempt<T>(path: string, body: object, limitMs = ATTEMPT_LIMIT_MS): Promise<T> {
    if (this.#agent === undefined) {
      const { ca, cert, key } = await this.#material();
      this.#agent = new Agent({ allowH2: false, connections: 1, connect: { ca, cert, key, timeout: limitMs } });
    }
    const endpoint = this.#endpoints[this.#next % this.#endpoints.length] as string;
    const response = await request(new URL(path, endpoint), {
      method: 'POST',
      body: JSON.stringify(body),
      dispatcher: this.#agent,
      signal: AbortSignal.timeout(limitMs),
    });
    const text = await response.body.text();
    if (response.statusCode !== 200)
      throw new Error(`${endpoint} answered ${response.statusCode}: ${text.slice(0, 200)}`);
    return JSON.parse(text) as T;
  }
}

export interface LoadReport {
  readonly acknowledged: ReadonlyMap<string, string>;
  readonly failures: readonly string[];
  readonly reads: number;
  readonly retries: number;
  /** The fewest members that answered at any moment. */
  readonly fewestUp: number;
}

/** Writes and reads without a pause, and looks at every member all the time, until it is told to stop. */
export class Load {
  readonly #stop = new AbortController();
  readonly #work: Promise<unknown>;
  readonly #acknowledged = new Map<string, string>();
  readonly #failures: string[] = [];
  #reads = 0;
  #retries = 0;
  #fewestUp = Number.POSITIVE_INFINITY;

  constructor(endpoints: readonly string[], material: MaterialSource) {
    this.#work = Promise.all([
      this.#write(endpoints, material),
      this.#read(endpoints, material),
      this.#watch(endpoints, material),
    ]);
  }

  get writes(): number {
    return this.#acknowledged.size;
  }

  get reads(): number {
    return this.#reads;
  }

  async stop(): Promise<LoadReport> {
    this.#stop.abort();
    await this.#work;
    return {
      acknowledged: this.#acknowledged,
      failures: this.#failures,
      reads: this.#reads,
      retries: this.#retries,
      fewestUp: this.#fewestUp,
    };
  }

  async #write(endpoints: readonly string[], material: MaterialSource): Promise<void> {
    const client = new LoadClient(endpoints, material);
    for (let n = 0; !this.#stop.signal.aborted; n++) {
      const [key, value] = [`load/${n}`, `value ${n}`];
      await client.put(key, value).then(
        () => this.#acknowledged.set(key, value),
        error => this.#failures.push(`put ${key}: ${String(error)}`),
      );
      await pause(5);
    }
    this.#retries += client.retries;
    await client.close();
  }

  /** What was acknowledged must be there from then on. */
  async #read(endpoints: readonly string[], material: MaterialSource): Promise<void> {
    const client = new LoadClient([...endpoints].reverse(), material);
    while (!this.#stop.signal.aborted) {
      const [key, value] = [...this.#acknowledged].at(-1) ?? [];
      if (key !== undefined) {
        const found = await client.get(key).catch((error: unknown) => `failed: ${String(error)}`);
        if (found !== value) this.#failures.push(`get ${key}: expected ${value}, found ${found}`);
        this.#reads++;
      }
      await pause(20);
    }
    this.#retries += client.retries;
    await client.close();
  }

  async #watch(endpoints: readonly string[], material: MaterialSource): Promise<void> {
    const clients = endpoints.map(endpoint => new Single(endpoint, material));
    while (!this.#stop.signal.aborted) {
      const down = await silent(clients);
      // Two that are found silent one after the other need not be so at the same time, unless both still are when all were asked.
      const stillDown = down.length > 1 ? await silent(down) : down;
      this.#fewestUp = Math.min(this.#fewestUp, clients.length - stillDown.length);
      await pause(100);
    }
    await Promise.all(clients.map(client => client.close()));
  }
}

async function silent(clients: readonly Single[]): Promise<Single[]> {
  const answers = await Promise.all(clients.map(client => client.isUp()));
  return clients.filter((_, index) => answers[index] !== true);
}

/** Asks one member for its own copy. */
class Single {
  readonly #client: LoadClient;

  constructor(endpoint: string, material: MaterialSource) {
    this.#client = new LoadClient([endpoint], material);
  }

  /** A connection of before may have ended with a restart that is over: only a new one that fails tells of a member that is down. */
  async isUp(): Promise<boolean> {
    return (await this.#answers()) || this.#answers();
  }

  async #answers(): Promise<boolean> {
    try {
      // One that takes its time is up.
      await this.#client.attempt('/v3/kv/range', { key: base64('health'), serializable: true }, PATIENCE_MS);
      return true;
    } catch {
      await this.#client.close();
      return false;
    }
  }

  close(): Promise<void> {
    return this.#client.close();
  }
}

function pause(ms: number): Promise<void> {
  return new Promise(resolve => setTimeout(resolve, ms));
}

function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
