import type { ChainAnswer } from '../pki/chain.ts';
import { verifyChain } from '../pki/chain.ts';
import type { Material } from './material.ts';

/** What one side says of what the other shows, and for how long it says so. */
export interface Verdict {
  readonly answer: ChainAnswer;
  readonly fromMs: number;
  readonly untilMs: number;
}

export interface Showing {
  readonly shown: Material;
  readonly roots: Material;
  readonly by: 'client' | 'server';
  /** The name that a server's certificate has to be good for. */
  readonly host?: string | undefined;
  readonly nowMs: number;
}

/** More verdicts than this are worked out anew. */
const MOST_VERDICTS = 50_000;

/** The real verification of chains; the same question is answered once, until time alone changes the answer. */
export class Handshakes {
  readonly #verdicts = new Map<string, Verdict>();

  verdict({ shown, roots, by, host, nowMs }: Showing): Verdict {
    const key = `${shown.id} ${roots.id} ${by} ${host ?? ''}`;
    const known = this.#verdicts.get(key);
    if (known !== undefined && nowMs >= known.fromMs && nowMs < known.untilMs) return known;
    const { certificates, problem } = shown;
    const [leaf, ...intermediates] = certificates;
    const usage = by === 'client' ? 'serverAuth' : 'clientAuth';
    const now = new Date(nowMs);
    const answer: ChainAnswer =
      leaf === undefined
        ? { ok: false, code: 'UNKNOWN_AUTHORITY', reason: problem ?? 'nothing is shown' }
        : verifyChain({ leaf, intermediates, roots: roots.certificates, now, usage, host });
    const edges = [...certificates, ...roots.certificates].flatMap(({ notBefore, notAfter }) => [
      notBefore.getTime(),
      notAfter.getTime() + 1,
    ]);
    const untilMs = Math.min(Number.POSITIVE_INFINITY, ...edges.filter(edge => edge > nowMs));
    const verdict = { answer, fromMs: nowMs, untilMs };
    if (this.#verdicts.size >= MOST_VERDICTS) this.#verdicts.clear();
    this.#verdicts.set(key, verdict);
    return verdict;
  }
}
