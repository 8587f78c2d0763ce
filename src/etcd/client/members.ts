import { errorText } from '../../controller/aggregate-error.ts';
import type { Clock } from '../../kube/clock.ts';
import { seconds } from '../../kube/duration.ts';
import type { EtcdMembers, EtcdMembership, HealthRequest, Member, MemberHealth } from '../quorum/member.ts';
import { hasStarted, memberName } from '../quorum/member.ts';
import { type ConnectEtcd, type EtcdClient, GatewayClient, type GatewayLimits } from './gateway.ts';
import { isSameMaterial, type MaterialSource, type TlsMaterial } from './material.ts';
import { ClientPool } from './pool.ts';

export interface GatewayOptions {
  readonly endpoints: (signal?: AbortSignal) => Promise<readonly string[]>;
  readonly material: MaterialSource;
  readonly clock: Clock;
  readonly limits?: GatewayLimits | undefined;
  /** Over HTTPS unless told otherwise. */
  readonly connect?: ConnectEtcd | undefined;
  readonly onError?: ((what: string, error: unknown) => void) | undefined;
  /** Told of every round. */
  readonly onHealth?: ((health: readonly MemberHealth[]) => void) | undefined;
}

/** A running etcd, asked over mutual TLS with whatever certificate is the current one. */
export class EtcdGateway implements EtcdMembers, EtcdMembership {
  readonly #options: GatewayOptions;
  readonly #connect: ConnectEtcd;
  readonly #pool: ClientPool<EtcdClient>;
  #material: TlsMaterial | undefined;

  constructor(options: GatewayOptions) {
    this.#options = options;
    const { endpoints, limits, onError, connect = overHttps } = options;
    this.#connect = connect;
    this.#pool = new ClientPool(
      {
        endpoints: async () => {
          await this.#refreshMaterial();
          return endpoints();
        },
        create: async urls => connect(urls, await this.#refreshMaterial(), limits),
        redirect: (client, urls) => {
          client.endpoints = urls;
        },
        check: async client => {
          await client.members();
        },
        isCurrent: ({ material }) => isSameMaterial(this.#material, material),
        close: client => client.close(),
      },
      options.clock,
      onError,
    );
  }

  /** Every member is asked over a connection of its own that begins now: a handshake is part of being healthy. */
  async health({ signal }: HealthRequest = {}): Promise<MemberHealth[]> {
    const members = await this.#pool.use(client => client.members({ signal }), signal);
    const material = await this.#refreshMaterial(signal);
    const health = await Promise.all(members.map(member => this.#healthOf(member, material, signal)));
    this.#options.onHealth?.(health);
    return health;
  }

  addLearner(peerURL: string, signal?: AbortSignal): Promise<void> {
    return this.#pool.use(client => client.addLearner(peerURL, { signal }), signal);
  }

  promote(memberId: string, signal?: AbortSignal): Promise<void> {
    return this.#pool.use(client => client.promote(memberId, { signal }), signal);
  }

  remove(memberId: string, signal?: AbortSignal): Promise<void> {
    return this.#pool.use(client => client.remove(memberId, { signal }), signal);
  }

  close(): void {
    this.#pool.closeIdle();
  }

  async #healthOf(member: Member, material: TlsMaterial, signal: AbortSignal | undefined): Promise<MemberHealth> {
    const [endpoint] = member.clientURLs;
    if (!hasStarted(member) || endpoint === undefined) return { member, healthy: false, error: 'has not started' };
    const client = this.#connect([endpoint], material, this.#options.limits);
    try {
      const raftTerm = await client.readHealthKey(member, { endpoint, signal });
      return { member, healthy: true, raftTerm };
    } catch (error) {
      this.#options.onError?.(`health check for member (${memberName(member)}) failed`, error);
      return { member, healthy: false, error: errorText(error) };
    } finally {
      client.close().catch(() => {});
    }
  }

  async #refreshMaterial(signal?: AbortSignal): Promise<TlsMaterial> {
    const material = await this.#options.material(signal);
    if (!isSameMaterial(this.#material, material)) {
      this.#material = material;
      this.#pool.closeIdle();
    }
    return material;
  }
}

const overHttps: ConnectEtcd = (endpoints, material, limits) => new GatewayClient(endpoints, material, limits);

/** How long an answer counts, and is shared (spec 40, Q-7). */
export const MEMBER_CACHE_MS: number = seconds(60);

/**
 * Asks again when the last answer is older than whoever asks allows. Those who ask at the same time share one answer; one that failed is
 * not kept, and an old one is never given in its place.
 */
export function cachedMembers(source: EtcdMembers, clock: Clock, cacheMs: number = MEMBER_CACHE_MS): EtcdMembers {
  const nowMs = () => clock.monotonicMs?.() ?? clock.now().getTime();
  let known: Answer | undefined;
  let asking: { readonly atMs: number; readonly answer: Promise<Answer> } | undefined;
  const answerAt = async (atMs: number): Promise<Answer> => {
    try {
      known = { atMs, health: await source.health() };
      return known;
    } finally {
      asking = undefined;
    }
  };
  const ask = () => {
    // The age counts from the question: what changed while it was answered may not be in the answer.
    const atMs = nowMs();
    const answer = answerAt(atMs);
    asking = { atMs, answer };
    return answer;
  };
  return {
    async health({ maxAgeMs = cacheMs, signal } = {}) {
      if (known !== undefined && nowMs() - known.atMs < maxAgeMs) return known.health;
      const since = nowMs();
      while (asking !== undefined && since - asking.atMs > maxAgeMs) {
        await unlessAborted(
          asking.answer.catch(() => {}),
          signal,
        );
      }
      const { health } = await unlessAborted(asking?.answer ?? ask(), signal);
      return health;
    },
  };
}

/** Stops waiting when the signal aborts; others go on waiting for the same answer. */
async function unlessAborted<T>(answer: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return answer;
  const left = Promise.withResolvers<never>();
  const leave = () => left.reject(signal.reason);
  signal.addEventListener('abort', leave, { once: true });
  if (signal.aborted) leave();
  try {
    return await Promise.race([answer, left.promise]);
  } finally {
    signal.removeEventListener('abort', leave);
  }
}

interface Answer {
  readonly atMs: number;
  readonly health: readonly MemberHealth[];
}
