import { Agent, request } from 'undici';
import { errorText } from '../../controller/aggregate-error.ts';
import { aborted } from '../../kube/aborted.ts';
import { seconds } from '../../kube/duration.ts';
import type { Member } from '../quorum/member.ts';
import type { TlsMaterial } from './material.ts';

/** How long a connection may take to come up, handshake included. */
export const DIAL_LIMIT_MS: number = seconds(15);
/** How long one request may take in all, however many endpoints are asked. */
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

/** One client of etcd, with one certificate: what the operator asks of the members, whatever carries it. */
export interface EtcdClient {
  readonly material: TlsMaterial;
  endpoints: readonly string[];
  members(options?: CallOptions): Promise<Member[]>;
  /**
   * Reads a key that need not exist. A voter must ask the others, so that an answer means that it takes part; a learner may
   * only answer for itself (spec 40, Q-7). Returns the raft term the member is in, where it says so.
   */
  readHealthKey(member: Pick<Member, 'isLearner'>, options?: CallOptions): Promise<number | undefined>;
  addLearner(peerURL: string, options?: CallOptions): Promise<void>;
  promote(memberId: string, options?: CallOptions): Promise<void>;
  remove(memberId: string, options?: CallOptions): Promise<void>;
  /** Lets what is under way finish. */
  close(): Promise<void>;
}

/** Makes clients; they speak to nobody before they are asked something. */
export type ConnectEtcd = (endpoints: readonly string[], material: TlsMaterial, limits?: GatewayLimits) => EtcdClient;

/** A client over etcd's JSON gateway: HTTPS with a client certificate, the same calls as gRPC. */
export class GatewayClient implements EtcdClient {
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
      // Over HTTP/2, which etcd would choose, a call that is given up can make Node's session fill the memory and never come back.
      allowH2: false,
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

  async readHealthKey(
    { isLearner }: Pick<Member, 'isLearner'>,
    options: CallOptions = {},
  ): Promise<number | undefined> {
    const body = { key: HEALTH_KEY, serializable: isLearner };
    const { header } = await this.#call<{ header?: { raft_term?: string } }>('/v3/kv/range', body, options);
    return header?.raft_term === undefined ? undefined : Number(header.raft_term);
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

  close(): Promise<void> {
    return this.#agent.close();
  }

  async #call<T>(path: string, body: object, { endpoint, signal }: CallOptions): Promise<T> {
    const endpoints = endpoint === undefined ? this.endpoints : [endpoint];
    const problems: string[] = [];
    const endMs = performance.now() + this.#limitMs;
    for (const [index, url] of endpoints.entries()) {
      // The limit is for all together (spec 40, Q-7); one that keeps silent leaves half of it to the others.
      const leftMs = Math.max(0, endMs - performance.now());
      const limit = AbortSignal.timeout(Math.ceil(index === endpoints.length - 1 ? leftMs : leftMs / 2));
      try {
        return await this.#ask<T>(url, path, body, signal === undefined ? limit : AbortSignal.any([signal, limit]));
      } catch (error) {
        // An answer is an answer, whoever gives it; only silence makes us ask the next one.
        if (error instanceof EtcdRefusal || signal?.aborted) throw error;
        problems.push(`${url}: ${errorText(error)}`);
      }
    }
    throw new Error(problems.length === 0 ? 'there is no etcd endpoint to ask' : problems.join('; '));
  }

  async #ask<T>(url: string, path: string, body: object, signal: AbortSignal): Promise<T> {
    const asked = request(new URL(path, url), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
      dispatcher: this.#agent,
      signal,
    });
    // As long as the connection is not up, undici does not look at the signal.
    const response = await Promise.race([asked, aborted(signal).then(() => Promise.reject(signal.reason as Error))]);
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
