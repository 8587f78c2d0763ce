import type { Lease } from 'kubernetes-types/coordination/v1.d.ts';
import { atLeastSince, atMostSince, type Clock, type Mark, mark, randomOf, sleep, systemClock } from './clock.ts';
import { seconds } from './duration.ts';
import { isAlreadyExists, isConflict } from './error.ts';
import type { EventRecorder } from './events.ts';
import { getIfPresent } from './get.ts';
import type { Kube } from './port.ts';
import { LEASES, type ObjectKey } from './resource.ts';
import { formatRfc3339Micro } from './time.ts';

export interface LeaseOptions {
  readonly kube: Kube;
  readonly lease: ObjectKey;
  /** Tells this process from every other, also from an earlier one on the same machine. */
  readonly identity: string;
  readonly leaseDurationMs?: number | undefined;
  readonly renewDeadlineMs?: number | undefined;
  readonly retryMs?: number | undefined;
  /** How long at most the clock goes unread while leading; where clocks neither jump nor stop, nobody needs to look often. */
  readonly clockCheckMs?: number | undefined;
  readonly clock?: Clock | undefined;
  readonly random?: (() => number) | undefined;
  readonly events?: Pick<EventRecorder, 'event'> | undefined;
  readonly onError?: ((error: unknown) => void) | undefined;
  /** Called at each attempt that finds the lease in other hands. */
  readonly onHeld?: ((holder: string) => void) | undefined;
}

/** What OpenShift's operators use: a control plane may be away for a minute without a change of leader. */
const LEASE_DURATION_MS = seconds(137);
const RENEW_DEADLINE_MS = seconds(107);
const RETRY_MS = seconds(26);
/** Candidates that wait are spread over this much more than the retry period. */
const RETRY_SPREAD = 1.2;
/** How long at most the machine's clocks go unread while leading, unless told otherwise: after a suspend, the loss is noticed this fast. */
const CLOCK_CHECK_MS = seconds(1);

/** The time during which this process, and no other, may act. */
export interface Leadership {
  /** Aborts at the latest when the renewal deadline is over, which is before anybody else may take the lease. */
  readonly signal: AbortSignal;
  /** Grows with every change of leader: lets a receiver tell an old leader from a new one. Throws after the loss. */
  token(): number;
  /** The same API, which refuses writes after the loss and cuts off those under way. */
  fenced(kube: Kube): Kube;
  /** Stops leading, and only then gives the lease away. */
  release(): Promise<void>;
}

export class LeadershipLost extends Error {
  override readonly name = 'LeadershipLost';
}

/** Waits until the lease is ours, then keeps it. Rejects only when `signal` aborts first. */
export async function acquireLease(options: LeaseOptions, signal?: AbortSignal): Promise<Leadership> {
  assertOrdered(options);
  const { clock = systemClock, retryMs = RETRY_MS, random = randomOf(clock) } = options;
  const holder = new Holder(options);
  for (;;) {
    signal?.throwIfAborted();
    const term = await holder.tryAcquire(signal);
    if (term !== undefined) return term;
    await sleep(clock, retryMs * (1 + RETRY_SPREAD * random()), signal);
  }
}

/** Without this order a leader would act on after another one has begun. */
function assertOrdered(options: LeaseOptions): void {
  const { leaseDurationMs = LEASE_DURATION_MS, renewDeadlineMs = RENEW_DEADLINE_MS, retryMs = RETRY_MS } = options;
  if (retryMs < renewDeadlineMs && renewDeadlineMs < leaseDurationMs) return;
  const found = `${retryMs}, ${renewDeadlineMs} and ${leaseDurationMs} ms`;
  throw new RangeError(`expected retry < renew deadline < lease duration, found ${found}`);
}

/** What was last seen of the lease, and since when it has looked like that: other machines' clocks are not trusted. */
interface Observation {
  readonly lease: Lease;
  readonly since: Mark;
}

class Holder {
  readonly #options: LeaseOptions;
  readonly #clock: Clock;
  #seen: Observation | undefined;

  constructor(options: LeaseOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
  }

  async tryAcquire(signal: AbortSignal | undefined): Promise<Term | undefined> {
    const { kube, lease: key, identity, onError } = this.#options;
    try {
      const stored = await getIfPresent(kube, LEASES, key, { signal });
      // Measured from before the write: whoever else sees it, sees it later.
      const since = mark(this.#clock);
      if (stored === undefined) {
        const spec = this.#spec(0, formatRfc3339Micro(this.#clock.now()));
        const created = await kube.create(LEASES, { metadata: { ...metadataOf(key) }, spec }, { signal });
        return new Term(this.#options, created, since);
      }
      this.#observe(stored);
      const current = stored.spec ?? {};
      if (current.holderIdentity && current.holderIdentity !== identity && !this.#hasExpired(stored)) {
        this.#options.onHeld?.(current.holderIdentity);
        return undefined;
      }
      const isOurs = current.holderIdentity === identity;
      const transitions = (current.leaseTransitions ?? 0) + (isOurs ? 0 : 1);
      const acquired = (isOurs ? current.acquireTime : undefined) ?? formatRfc3339Micro(this.#clock.now());
      const spec = { ...current, ...this.#spec(transitions, acquired) };
      return new Term(this.#options, await kube.update(LEASES, { ...stored, spec }, { signal }), since);
    } catch (error) {
      if (signal?.aborted) throw signal.reason;
      if (!isConflict(error) && !isAlreadyExists(error)) onError?.(error);
      return undefined;
    }
  }

  #spec(leaseTransitions: number, acquireTime: string): NonNullable<Lease['spec']> {
    const { identity, leaseDurationMs = LEASE_DURATION_MS } = this.#options;
    return {
      holderIdentity: identity,
      leaseDurationSeconds: Math.ceil(leaseDurationMs / 1000),
      acquireTime,
      renewTime: formatRfc3339Micro(this.#clock.now()),
      leaseTransitions,
    };
  }

  #observe(lease: Lease): void {
    const isUnchanged = this.#seen?.lease.metadata?.resourceVersion === lease.metadata?.resourceVersion;
    if (this.#seen === undefined || !isUnchanged) this.#seen = { lease, since: mark(this.#clock) };
  }

  /** Expired is a lease that has not moved for as long as its holder promised to move it, by our own clock. */
  #hasExpired({ spec = {} }: Lease): boolean {
    const { leaseDurationMs = LEASE_DURATION_MS } = this.#options;
    const promisedMs = spec.leaseDurationSeconds === undefined ? leaseDurationMs : seconds(spec.leaseDurationSeconds);
    return this.#seen !== undefined && atLeastSince(this.#clock, this.#seen.since) > promisedMs;
  }
}

/** One time in office. */
class Term implements Leadership {
  readonly #options: LeaseOptions;
  readonly #clock: Clock;
  readonly #renewDeadlineMs: number;
  readonly #lost = new AbortController();
  readonly #watching: Promise<unknown>;
  #lease: Lease;
  /** Just before the last renewal that succeeded was sent. */
  #renewed: Mark;

  constructor(options: LeaseOptions, lease: Lease, renewed: Mark) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#renewDeadlineMs = options.renewDeadlineMs ?? RENEW_DEADLINE_MS;
    this.#lease = lease;
    this.#renewed = renewed;
    options.events?.event('Normal', 'LeaderElection', `${options.identity} became leader`);
    this.#watching = Promise.all([this.#watchClock(), this.#renewOnAndOn(options.retryMs ?? RETRY_MS)]);
  }

  get signal(): AbortSignal {
    return this.#lost.signal;
  }

  token(): number {
    this.#assertLeading();
    return this.#lease.spec?.leaseTransitions ?? 0;
  }

  fenced(kube: Kube): Kube {
    // The clock is read at each write: after a suspend, a write may be faster than the timer that would stop it.
    const guarded = <O extends { readonly signal?: AbortSignal | undefined }>(options: O | undefined): O => {
      this.#assertLeading();
      const signal = options?.signal === undefined ? this.signal : AbortSignal.any([options.signal, this.signal]);
      return { ...(options as O), signal };
    };
    return {
      get: (resource, key, options) => kube.get(resource, key, options),
      list: (resource, options) => kube.list(resource, options),
      watch: (resource, options) => kube.watch(resource, options),
      create: async (resource, object, options) => kube.create(resource, object, guarded(options)),
      update: async (resource, object, options) => kube.update(resource, object, guarded(options)),
      updateStatus: async (resource, object, options) => kube.updateStatus(resource, object, guarded(options)),
      patch: async (resource, key, patch, options) => kube.patch(resource, key, patch, guarded(options)),
      delete: async (resource, key, options) => kube.delete(resource, key, guarded(options)),
      evict: async (pod, options) => kube.evict(pod, guarded(options)),
    };
  }

  async release(): Promise<void> {
    const wasLeading = !this.#isOver();
    this.#lose('released');
    await this.#watching;
    if (!wasLeading) return;
    const { identity, onError } = this.#options;
    try {
      await this.#giveAway();
    } catch (error) {
      if (!isConflict(error)) onError?.(error);
    }
    this.#options.events?.event('Normal', 'LeaderElection', `${identity} stopped leading`);
  }

  async #giveAway(): Promise<void> {
    const { kube, lease: key, identity } = this.#options;
    const now = formatRfc3339Micro(this.#clock.now());
    const released = ({ spec, ...lease }: Lease): Lease => ({
      ...lease,
      spec: { ...spec, holderIdentity: '', leaseDurationSeconds: 1, renewTime: now, acquireTime: now },
    });
    try {
      // With the version we wrote last: if somebody else has the lease by now, it is theirs.
      await kube.update(LEASES, released(this.#lease));
    } catch (error) {
      if (!isConflict(error)) throw error;
      // The renewal that was cut off may have been stored all the same; then the lease still names us.
      const stored = await getIfPresent(kube, LEASES, key);
      if (stored?.spec?.holderIdentity === identity) await kube.update(LEASES, released(stored));
    }
  }

  #isOver(): boolean {
    return this.signal.aborted || atMostSince(this.#clock, this.#renewed) >= this.#renewDeadlineMs;
  }

  #assertLeading(): void {
    if (this.#isOver()) this.#lose(`not renewed within ${this.#renewDeadlineMs / 1000} s`);
    this.signal.throwIfAborted();
  }

  #lose(why: string): void {
    if (this.signal.aborted) return;
    const { namespace, name } = this.#options.lease;
    this.#lost.abort(new LeadershipLost(`no longer the leader of ${namespace}/${name}: ${why}`));
  }

  async #watchClock(): Promise<void> {
    while (!this.#isOver()) {
      const leftMs = this.#renewDeadlineMs - atMostSince(this.#clock, this.#renewed);
      const { clockCheckMs = CLOCK_CHECK_MS } = this.#options;
      await sleep(this.#clock, Math.min(leftMs, clockCheckMs), this.signal).catch(() => {});
    }
    this.#lose(`not renewed within ${this.#renewDeadlineMs / 1000} s`);
  }

  async #renewOnAndOn(retryMs: number): Promise<void> {
    while (!this.#isOver()) {
      await sleep(this.#clock, retryMs, this.signal).catch(() => {});
      if (this.signal.aborted) return;
      try {
        await this.#renew();
      } catch (error) {
        if (!this.signal.aborted) this.#options.onError?.(error);
      }
    }
  }

  async #renew(): Promise<void> {
    const { kube, lease: key, identity } = this.#options;
    const since = mark(this.#clock);
    const spec = { ...this.#lease.spec, renewTime: formatRfc3339Micro(this.#clock.now()) };
    try {
      this.#lease = await kube.update(LEASES, { ...this.#lease, spec }, { signal: this.signal });
    } catch (error) {
      if (!isConflict(error)) throw error;
      // Somebody touched the lease. As long as it names us, it is ours: go on from what is stored.
      const stored = await kube.get(LEASES, key, { signal: this.signal });
      if (stored.spec?.holderIdentity !== identity) {
        this.#lose(`taken by ${stored.spec?.holderIdentity || 'nobody'}`);
        return;
      }
      this.#lease = await kube.update(
        LEASES,
        { ...stored, spec: { ...stored.spec, renewTime: spec.renewTime } },
        { signal: this.signal },
      );
    }
    this.#renewed = since;
  }
}

function metadataOf({ name, namespace }: ObjectKey): { name: string; namespace?: string } {
  return namespace === undefined ? { name } : { name, namespace };
}
