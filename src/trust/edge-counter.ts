import { formatRfc3339 } from '../kube/time.ts';
import type { HandshakeOutcome } from './handshake.ts';

/** What became of the connections over one edge. Nothing in it is secret. */
export interface EdgeReport {
  readonly edge: string;
  readonly accepted: number;
  readonly refused: number;
  /** Nobody answered; no question of trust. */
  readonly unreachable: number;
  /** Why no connection is made at present. */
  readonly skipped?: string | undefined;
  readonly lastAcceptedAt?: string | undefined;
  /** Why connections were refused, the commonest first. */
  readonly refusals: readonly Refusal[];
}

export interface Refusal {
  readonly by: 'client' | 'server';
  readonly reason: string;
  /** Where the client was and where it connected to, the last time. */
  readonly from: string;
  readonly to: string;
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

export interface EdgeCounter {
  count(outcome: HandshakeOutcome, route: { from: string; host: string; port: number }, at: Date): void;
  skip(reason: string | undefined): void;
  report(): EdgeReport;
}

/** So many reasons are told apart on one edge; what comes on top is counted together. */
const MOST_REASONS = 20;
const OTHERS = 'other reasons';

export function newEdgeCounter(edge: string): EdgeCounter {
  const refusals = new Map<string, Refusal>();
  let [accepted, refused, unreachable] = [0, 0, 0];
  let lastAcceptedAt: string | undefined;
  let skipped: string | undefined;
  return {
    count(outcome, { from, host, port }, at) {
      const now = formatRfc3339(at);
      if (outcome.kind === 'accepted') {
        accepted++;
        lastAcceptedAt = now;
      } else if (outcome.kind !== 'refused') {
        unreachable++;
      } else {
        refused++;
        const full = `${outcome.by} ${outcome.reason}`;
        const key = refusals.has(full) || refusals.size < MOST_REASONS ? full : OTHERS;
        const { count = 0, firstAt = now } = refusals.get(key) ?? {};
        const reason = key === OTHERS ? OTHERS : outcome.reason;
        refusals.set(key, {
          by: outcome.by,
          reason,
          from,
          to: `${host}:${port}`,
          count: count + 1,
          firstAt,
          lastAt: now,
        });
      }
    },
    skip(reason) {
      skipped = reason;
    },
    report: () => ({
      edge,
      accepted,
      refused,
      unreachable,
      skipped,
      lastAcceptedAt,
      refusals: [...refusals.values()].sort((a, b) => b.count - a.count),
    }),
  };
}
