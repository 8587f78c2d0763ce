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
  /** Who did not answer, and how that was noticed, the commonest first. */
  readonly silences: readonly Silence[];
}

export interface Refusal extends Silence {
  readonly by: 'client' | 'server';
}

export interface Silence {
  readonly reason: string;
  /** Where the client was and where it connected to, the last time. */
  readonly from: string;
  readonly to: string;
  readonly count: number;
  readonly firstAt: string;
  readonly lastAt: string;
}

export interface EdgeCounter {
  count(outcome: HandshakeOutcome, route: Place, at: Date): void;
  skip(reason: string | undefined): void;
  report(): EdgeReport;
}

interface Place {
  readonly from: string;
  readonly host: string;
  readonly port: number;
}

/** So many reasons are told apart on one edge; what comes on top is counted together. */
const MOST_REASONS = 20;
const OTHERS = 'other reasons';

export function newEdgeCounter(edge: string): EdgeCounter {
  const refusals = new Map<string, Refusal>();
  const silences = new Map<string, Silence>();
  let [accepted, refused, unreachable] = [0, 0, 0];
  let lastAcceptedAt: string | undefined;
  let skipped: string | undefined;
  return {
    count(outcome, route, at) {
      if (outcome.kind === 'accepted') {
        accepted++;
        lastAcceptedAt = formatRfc3339(at);
      } else if (outcome.kind === 'refused') {
        refused++;
        const { by, reason } = outcome;
        note(refusals, `${by} ${reason}`, reason, route, at, { by });
      } else {
        unreachable++;
        const { reason } = outcome;
        note(silences, `${route.host} ${route.port} ${reason}`, reason, route, at, {});
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
      refusals: commonestFirst(refusals),
      silences: commonestFirst(silences),
    }),
  };
}

function note<T extends Silence>(
  notes: Map<string, T>,
  wanted: string,
  text: string,
  { from, host, port }: Place,
  at: Date,
  more: Omit<T, keyof Silence>,
): void {
  const now = formatRfc3339(at);
  const key = notes.has(wanted) || notes.size < MOST_REASONS ? wanted : OTHERS;
  const { count = 0, firstAt = now } = notes.get(key) ?? {};
  const reason = key === OTHERS ? OTHERS : text;
  const found: Silence = { reason, from, to: `${host}:${port}`, count: count + 1, firstAt, lastAt: now };
  notes.set(key, { ...more, ...found } as T);
}

function commonestFirst<T extends Silence>(notes: ReadonlyMap<string, T>): T[] {
  return [...notes.values()].sort((a, b) => b.count - a.count);
}
