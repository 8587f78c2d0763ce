import { Agent, request } from 'undici';
import { errorText } from '../../controller/aggregate-error.ts';
import { seconds } from '../../kube/duration.ts';
import type { Member } from '../quorum/member.ts';
import type { TlsMaterial } from './material.ts';

/** How long a connection may take to come up, handshake included. */
export const DIAL_LIMIT_MS: number = seconds(15);
/** How long one request may take in all. */
export const REQUEST_LIMIT_MS: number = seconds(30);
/** Nothing we ask for is larger; a member list of a thousand members has 200 KB. */
const LARGEST_ANSWER_BYTES = 1024 * 1024;

export interface CallOptions {
  /** Only this endpoint is asked; otherwise all in turn until one answers. */
  readonly endpoint?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface GatewayLimits {
  readonly dialMs?: number | undefined;
  readonly requestMs?: number | undefined;
}

/** One client of etcd over its JSON gateway: HTTPS with a client certificate, the same calls as gRPC. */
export class GatewayClient {
  readonly material: TlsMaterial;
  endpoints: readonly string[];
  readonly #agent: Agent;
  readonly #limitMs: number;

  constructor(endpoints: readonly string[], material: TlsMaterial, limits: GatewayLimits = {}) {
    const { dialMs = DIAL_LIMIT_MS, requestMs = REQUEST_LIMIT_MS } = limits;
    this.endpoints = endpoints;
    this.material = material;
    this.#limitMs = requestMs;
    this.#agent = new Agent({
      connections: 1,
      maxResponseSize: LARGEST_ANSWER_BYTES,
      connect: { ca: material.ca, cert: material.cert, key: material.key, timeout: dialMs, minVersion: 'TLSv1.2' },
    });
  }

  async members(options: CallOptions = {}): Promise<Member[]> {
    const { members = [] } = await this.#call<{ members?: readonly WireMember[] }>(
      '/v3/cluster/member/list',
      {},
      options,
    );
    return members.map(memberOf);
  }

  /**
   * Reads a key that need not exist. A voter must ask the others, so that an answer means that it takes part; a learner may
   * only answer for itself (spec 40, Q-7).
   */
  async readHealthKey({ isLearner }: Pick<Member, 'isLearner'>, options: CallOptions = {}): Promise<void> {
    await this.#call('/v3/kv/range', { key: HEALTH_KEY, serializable: isLearner }, options);
  }

  async addLearner(peerURL: string, options: CallOptions = {}): Promise<void> {
    await this.#call('/v3/cluster/member/add', { peerURLs: [peerURL], isLearner: true }, options);
  }

  async promote(memberId: string, options: CallOptions = {}): Promise<void> {
    await this.#call('/v3/cluster/member/promote', { ID: memberId }, options);
  }

  async remove(memberId: string, options: CallOptions = {}): Promise<void> {
    await this.#call('/v3/cluster/member/remove', { ID: memberId }, options);
  }

  /** Lets what is under way finish. */
  close(): Promise<void> {
    return this.#agent.close();
  }

  async #call<T>(path: string, body: object, { endpoint, signal }: CallOptions): Promise<T> {
    const endpoints = endpoint === undefined ? this.endpoints : [endpoint];
    const problems: string[] = [];
    for (const url of endpoints) {
      try {
        return await this.#ask<T>(url, path, body, signal);
      } catch (error) {
        // An answer is an answer, whoever gives it; only silence makes us ask the next one.
        if (error instanceof EtcdRefusal || signal?.aborted) throw error;
        problems.push(`${url}: ${errorText(error)}`);
      }
    }
    throw new Error(problems.length === 0 ? 'there is no etcd endpoint to ask' : problems.join('; '));
  }

  async #ask<T>(url: string, path: string, body: object, signal: AbortSignal | undefined): Promise<T> {
    const limit = AbortSignal.timeout(this.#limitMs);
    const response = await request(new URL(path, url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      dispatcher: this.#agent,
      signal: signal === undefined ? limit : AbortSignal.any([signal, limit]),
    });
    const text = await response.body.text();
    if (response.statusCode === 200) return JSON.parse(text) as T;
    const { code, message } = readRefusal(text);
    // The member is there and cannot serve (no leader, shutting down): another one may.
    if (response.statusCode >= 500) throw new Error(message);
    throw new EtcdRefusal(code, message);
  }
}

/** etcd answered, and the answer is no. */
export class EtcdRefusal extends Error {
  override readonly name = 'EtcdRefusal';
  /** The gRPC code. */
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

const HEALTH_KEY = Buffer.from('health').toString('base64');
const LONGEST_REFUSAL = 500;

function readRefusal(text: string): { code: number; message: string } {
  try {
    const { code = 2, message, error } = JSON.parse(text) as { code?: number; message?: string; error?: string };
    return { code, message: (message ?? error ?? 'etcd gave no reason').slice(0, LONGEST_REFUSAL) };
  } catch {
    return { code: 2, message: `expected JSON from etcd, found ${JSON.stringify(text.slice(0, 100))}` };
  }
}

/** Fields that have their zero value are left out on the wire. */
interface WireMember {
  readonly ID?: string;
  readonly name?: string;
  readonly peerURLs?: readonly string[];
  readonly clientURLs?: readonly string[];
  readonly isLearner?: boolean;
}

function memberOf({ ID = '0', name = '', peerURLs = [], clientURLs = [], isLearner = false }: WireMember): Member {
  return { id: ID, name, peerURLs, clientURLs, isLearner };
}
