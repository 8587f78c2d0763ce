import { Counter, Gauge, type Registry } from '@prometheus-io/client';
import { days } from '../kube/duration.ts';
import { ETCD_NAMESPACE } from './names.ts';
import type { MemberHealth } from './quorum/member.ts';

/** Tells Prometheus how long certificates live, and what they wait for. */
export interface ExpirationMetrics {
  /** `name`: `signer-ca` or `metrics-signer-ca` (spec 40, 3.5). */
  signer(name: string, notAfter: Date, now: Date): void;
  leaf(leaf: LeafExpiry): void;
  /** Forgets leaves that are not among these any more. */
  keepLeaves(secrets: readonly string[]): void;
  /** Whether leaves are held back, by the gate or by a rollout. */
  held(isHeld: boolean): void;
}

export interface LeafExpiry {
  readonly secret: string;
  /** Empty for client certificates. */
  readonly node: string;
  readonly issuer: string;
  readonly notBefore: Date;
  readonly notAfter: Date;
}

export const SIGNER_EXPIRATION = 'openshift_etcd_operator_signer_expiration_days';
export const LEAF_NOT_AFTER = 'rotunda_etcd_leaf_not_after_timestamp_seconds';
export const LEAF_NOT_BEFORE = 'rotunda_etcd_leaf_not_before_timestamp_seconds';
export const LEAVES_HELD = 'rotunda_etcd_leaves_held';
export const RAFT_TERMS = 'etcd_debugging_raft_terms_total';

/** The gauges of the etcd operator. The days of the first are upstream's; the others are absolute, as is the habit (spec 70, 8.2). */
export function expirationMetrics(registry: Registry): ExpirationMetrics {
  const registers = [registry];
  const labelNames = ['namespace', 'name', 'node', 'issuer'];
  const signers = new Gauge({
    name: SIGNER_EXPIRATION,
    help: 'Days until a signer in use expires; negative afterwards.',
    labelNames: ['name'],
    registers,
  });
  const ends = new Gauge({
    name: LEAF_NOT_AFTER,
    help: 'When a certificate of etcd ends, in Unix seconds.',
    labelNames,
    registers,
  });
  const starts = new Gauge({
    name: LEAF_NOT_BEFORE,
    help: 'When a certificate of etcd began, in Unix seconds.',
    labelNames,
    registers,
  });
  const held = new Gauge({ name: LEAVES_HELD, help: '1 while leaves wait for bundles to be rolled out.', registers });
  const known = new Map<string, Record<string, string>>();
  const forget = (labels: Record<string, string> | undefined) => {
    if (labels === undefined) return;
    ends.remove(labels);
    starts.remove(labels);
  };
  return {
    signer: (name, notAfter, now) => signers.set({ name }, remainingDays(notAfter, now)),
    leaf({ secret, node, issuer, notBefore, notAfter }) {
      if (known.get(secret)?.issuer !== issuer) forget(known.get(secret));
      const labels = { namespace: ETCD_NAMESPACE, name: secret, node, issuer };
      known.set(secret, labels);
      ends.set(labels, notAfter.getTime() / 1000);
      starts.set(labels, notBefore.getTime() / 1000);
    },
    keepLeaves(secrets) {
      const kept = new Set(secrets);
      for (const [secret, labels] of known) {
        if (kept.has(secret)) continue;
        forget(labels);
        known.delete(secret);
      }
    },
    held: isHeld => held.set(isHeld ? 1 : 0),
  };
}

/** Counts raft terms as each member last told them, and forgets members that are gone (spec 40, Q-7). */
export function raftTermMetrics(registry: Registry): (health: readonly MemberHealth[]) => void {
  const terms = new Map<string, number>();
  registry.registerMetric(
    new Counter({
      name: RAFT_TERMS,
      help: 'Number of raft terms as observed by each member of etcd.',
      labelNames: ['member'],
      registers: [],
      collect() {
        this.reset();
        for (const [member, term] of terms) this.inc({ member }, term);
      },
    }),
  );
  return health => {
    const names = new Set(health.map(({ member }) => member.name));
    for (const name of terms.keys()) if (!names.has(name)) terms.delete(name);
    for (const { member, raftTerm } of health) if (raftTerm !== undefined) terms.set(member.name, raftTerm);
  };
}

/** Whole and fractional days, negative after the end. */
export function remainingDays(notAfter: Date, now: Date): number {
  return (notAfter.getTime() - now.getTime()) / days(1);
}

/** For whoever does not want any. */
export const noExpirationMetrics: ExpirationMetrics = {
  signer: () => {},
  leaf: () => {},
  keepLeaves: () => {},
  held: () => {},
};
